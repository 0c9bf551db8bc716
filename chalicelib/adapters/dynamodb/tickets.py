"""Tickets of tunnels in DynamoDB, beside the registry of the nodes that look at them."""

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.auditing import recorded
from chalicelib.adapters.dynamodb.records import Insert, Tables
from chalicelib.domain.audit import Record
from chalicelib.domain.tunnel import Ticket


class DynamoTickets:
    """The store of tickets."""

    def __init__(self, tables: Tables) -> None:
        """Read and write this table."""
        self._tables = tables

    def issue(self, digest: str, ticket: Ticket, record: Record | None = None) -> None:
        """Keep a new one, with the record of who made it where somebody did."""
        row = {
            "tenant": ticket.tenant,
            "endpoint": ticket.endpoint_id,
            "until": ticket.until_ms,
            "ttl": ticket.until_ms // 1000,
        }
        made = Insert(keys.ticket(digest), row)
        if record is None:
            self._tables.each([made])
        else:
            self._tables.together([made, recorded(record)])

    def find(self, digest: str) -> Ticket | None:
        """Give one that was issued, ended or not; strongly consistent."""
        at = keys.ticket(digest)
        row = self._tables.get([at]).get(at)
        return Ticket(row["tenant"], row["endpoint"], row["until"]) if row else None
