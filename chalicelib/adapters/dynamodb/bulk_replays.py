"""Bulk replays in DynamoDB: a row with a cursor, moved in one transaction with what it begins."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.auditing import recorded
from chalicelib.adapters.dynamodb.records import Insert, Put, Span, Tables, Write
from chalicelib.adapters.dynamodb.replaying import generation_writes
from chalicelib.application.ports import Generations, Owing, StoredEvent, Walked
from chalicelib.domain import audit, ids, retention
from chalicelib.domain.bulk_replay import BulkReplay, BulkState, Wanted
from chalicelib.domain.change import Op, Record, Test
from chalicelib.domain.delivery import Status

_SHARD = "0"
_ONE_DELIVERY = 1_000
_LAST_ENTROPY = (1 << ids.ENTROPY_BITS) - 1


class DynamoBulkReplays:
    """Keeps bulk replays."""

    def __init__(self, tables: Tables) -> None:
        """Write to these tables."""
        self._tables = tables

    def start(self, replay: BulkReplay, record: audit.Record) -> None:
        """Write a new one, and the audit's record of it."""
        new = Insert(keys.replay(replay.tenant, replay.id), replay_row(replay))
        self._tables.together([new, recorded(record)])

    def get(self, tenant: str, replay_id: str) -> BulkReplay | None:
        """Read one strongly consistent."""
        at = keys.replay(tenant, replay_id)
        record = self._tables.get([at]).get(at)
        return replay_of(record) if record else None

    def running(self) -> Iterator[tuple[str, str, int]]:
        """Walk those that run: tenant, id, and when the next run may begin (Unix ms); a moment late."""
        for record in self._tables.indexed(keys.REPLAYS, keys.RUNNING_INDEX, _SHARD):
            yield record["pk"], record["sk"], record["running_until"]

    def walk(self, replay: BulkReplay, limit: int) -> Walked:
        """Read on from a replay's cursor, about so many rows of history."""
        partition = keys.endpoint_partition(replay.tenant, replay.endpoint_id)
        stretch = self._tables.query(keys.HISTORY, partition, _span(replay), limit)
        groups = [(name, list(group)) for name, group in groupby(stretch.records, _delivery_of)]
        if stretch.more and len(groups) > 1:
            groups.pop()
        elif stretch.more:
            groups = [(name, self._whole(partition, name)) for name, _ in groups]
        found = (_generations(replay.endpoint_id, *group) for group in groups)
        return Walked(tuple(found), stretch.more)

    def events(self, tenant: str, event_ids: Sequence[str], now_ms: int) -> dict[str, StoredEvent]:
        """Read events by id; those past their retention are absent."""
        at = {each: keys.event(tenant, each) for each in event_ids}
        found = self._tables.get(list(at.values()))
        kept = {name: found[key] for name, key in at.items() if key in found}
        return {name: rows.event_of(each) for name, each in kept.items() if each["ttl"] * 1000 > now_ms}

    def replace(self, old: BulkReplay, new: BulkReplay) -> bool:
        """Write one over what was read; False when somebody else has changed it."""
        return not self._tables.together([_moved(old, new)])

    def turn(self, old: BulkReplay, new: BulkReplay, record: audit.Record) -> bool:
        """Write one that its owner has turned, and the audit's record of that; False as for `replace`."""
        return not self._tables.together([_moved(old, new), recorded(record)])

    def advance(
        self, old: BulkReplay, new: BulkReplay, owing: Sequence[Owing], now_ms: int
    ) -> frozenset[str] | None:
        """Write next generations and how far their replay is, in one transaction."""
        writes: list[tuple[str, Write]] = [("", _moved(old, new))]
        writes += [(one.owed.delivery_id, each) for one in owing for each in generation_writes(one, now_ms)]
        refused = {writes[place][0] for place in self._tables.together([each for _, each in writes])}
        return None if "" in refused else frozenset(refused)

    def _whole(self, partition: str, delivery_id: str) -> list[Record]:
        """Read the last rows of a delivery that has more than one page of them."""
        span = Span(f"{delivery_id}#", f"{delivery_id}#~", backwards=True)
        return list(self._tables.query(keys.HISTORY, partition, span, _ONE_DELIVERY).records[::-1])


def replay_row(replay: BulkReplay) -> dict[str, Any]:
    """Write a bulk replay; only one that runs stands in the index."""
    wanted = replay.wanted
    row: dict[str, Any] = {
        "endpoint": replay.endpoint_id,
        "since_ms": wanted.since_ms,
        "until_ms": wanted.until_ms,
        "ended_as": wanted.status.value,
        "event_types": list(wanted.event_types),
        "created_ms": replay.created_ms,
        "matched": replay.matched,
        "exact": int(replay.exact),
        "stage": replay.state.value,
        "reason": replay.reason,
        "last_id": replay.cursor,
        "replayed": replay.replayed,
        "skipped": replay.skipped,
        "due_ms": replay.due_ms,
        "wait_ms": replay.wait_ms,
        "ended_ms": replay.ended_ms,
        "version": replay.version,
    }
    if replay.state is BulkState.RUNNING:
        row |= {"running_shard": _SHARD, "running_until": replay.due_ms}
    if replay.ended_ms:
        row["ttl"] = retention.history_until_s(replay.ended_ms)
    return row


def replay_of(record: Record) -> BulkReplay:
    """Read a bulk replay."""
    return BulkReplay(
        record["pk"],
        record["sk"],
        record["endpoint"],
        Wanted(
            record["since_ms"],
            record["until_ms"],
            Status(record["ended_as"]),
            tuple(record["event_types"]),
        ),
        record["created_ms"],
        record["matched"],
        bool(record["exact"]),
        BulkState(record["stage"]),
        record["reason"],
        record["last_id"],
        record["replayed"],
        record["skipped"],
        record["due_ms"],
        record["wait_ms"],
        record["ended_ms"],
        record["version"],
    )


def _moved(old: BulkReplay, new: BulkReplay) -> Put:
    same = (Test("version", Op.EQ, old.version),)
    return Put(keys.replay(new.tenant, new.id), replay_row(new), same)


def _span(replay: BulkReplay) -> Span:
    """Say where in history the rest of a replay lies: delivery ids sort by when their events came."""
    wanted = replay.wanted
    low = f"{replay.cursor}#~" if replay.cursor else str(ids.uuid7(wanted.since_ms, 0))
    last = ids.uuid7(max(0, wanted.until_ms - 1), _LAST_ENTROPY)
    return Span(low, max(low, f"{last}#~"))


def _delivery_of(record: Record) -> str:
    return str(record["sk"]).partition("#")[0]


def _generations(endpoint_id: str, delivery_id: str, records: Sequence[Record]) -> Generations:
    history = tuple(rows.history_of(record) for record in records)
    return Generations(endpoint_id, delivery_id, history, leased=False)
