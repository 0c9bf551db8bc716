"""Tickets of tunnels in DynamoDB, beside the registry of the nodes that look at them."""

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Insert, Tables
from chalicelib.domain.tunnel import Ticket


class DynamoTickets:
    """The store of tickets."""

    def __init__(self, tables: Tables) -> None:
        """Read and write this table."""
        self._tables = tables

    def issue(self, digest: str, ticket: Ticket) -> None:
        """Keep a new one."""
        row = {
            "tenant": ticket.tenant,
            "endpoint": ticket.endpoint_id,
            "until": ticket.until_ms,
            "ttl": ticket.until_ms // 1000,
        }
        self._tables.each([Insert(keys.ticket(digest), row)])

    def find(self, digest: str) -> Ticket | None:
        """Give one that was issued, ended or not; strongly consistent."""
        at = keys.ticket(digest)
        row = self._tables.get([at]).get(at)
        return Ticket(row["tenant"], row["endpoint"], row["until"]) if row else None
