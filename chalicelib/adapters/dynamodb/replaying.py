"""Replays in DynamoDB: a next generation is its first row of history and its owed row, written together."""

from collections.abc import Iterator

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.auditing import recorded
from chalicelib.adapters.dynamodb.capturing import ARM_AHEAD_MS
from chalicelib.adapters.dynamodb.records import Insert, Put, Tables, Update, Write
from chalicelib.application.ports import Owing
from chalicelib.domain import audit, ids, retention
from chalicelib.domain.change import Change, Op, Test


class DynamoReplaying:
    """The store of replays."""

    def __init__(self, tables: Tables) -> None:
        """Write to these tables."""
        self._tables = tables

    def expect(self, tenant: str, endpoint_id: str, now_ms: int) -> None:
        """Make sure that reconcile looks at an endpoint and its line of replays for ten minutes and more."""
        armed = {
            "armed_shard": keys.armed_shard(endpoint_id),
            "armed_until": now_ms + ARM_AHEAD_MS,
            "replays": 1,
        }
        self._tables.each([Update(keys.gate(tenant, endpoint_id), Change((), armed, {}))])

    def begin(self, owing: Owing, now_ms: int, record: audit.Record) -> bool:
        """Write a next generation in one transaction; False when it is there already, or the event is not."""
        return not self._tables.together([*generation_writes(owing, now_ms), recorded(record)])


def generation_writes(owing: Owing, now_ms: int) -> Iterator[Write]:
    """Write a generation's first row of history, its owed row, and what keeps its payload from going.

    The first is refused when somebody else has begun this generation.
    """
    owed, created = owing.owed, owing.created
    tenant, endpoint_id = owed.lane.tenant, owed.lane.endpoint_id
    at = keys.attempt(tenant, endpoint_id, (owed.delivery_id, owed.generation, keys.CREATED_NUMBER))
    yield Insert(at, rows.created_row(created))
    yield Put(keys.owed(owed), rows.owed_row(owed))
    if retention.payload_until_s(ids.created_ms(owed.event_id)) < retention.owed_payload_until_s(now_ms):
        alive = Test("ttl", Op.GT, now_ms // 1000)
        longer = {"ttl": retention.dead_until_s(now_ms)}
        yield Update(keys.event(tenant, owed.event_id), Change((alive,), longer, {}))
