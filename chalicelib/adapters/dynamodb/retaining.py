"""What may expire, in DynamoDB: pages through whole tables, and moves and meets the rows' `ttl`."""

import json
from collections.abc import Iterator, Mapping, Sequence

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.records import Delete, Key, Merge, Span, Stretch, Tables, Update, Write
from chalicelib.application.ports import Expired, Letter, Page, Stand
from chalicelib.domain import ids
from chalicelib.domain.change import Change, Op, Record, Test
from chalicelib.domain.delivery import Owed
from chalicelib.domain.endpoint import REPLAY_LANE, Endpoint

_GENERATION_ROWS = 10_000
_FIRST = Span(" ", "~")


class DynamoRetaining:
    """The store of retention. A cursor is the key of the last record seen, which may be gone by then."""

    def __init__(self, tables: Tables) -> None:
        """Read and write these tables."""
        self._tables = tables

    def stands(self) -> dict[str, Stand]:
        """Read how far each chore has come."""
        at = keys.retention()
        record = self._tables.get([at]).get(at, {})
        return {name: Stand(*value) for name, value in record.items() if name not in at.parts}

    def note(self, chore: str, stand: Stand) -> None:
        """Write how far a chore has come."""
        row = {chore: [stand.cursor, stand.began_ms, stand.before_ms]}
        self._tables.together([Merge(keys.retention(), row)])

    def owed(self, after: str, limit: int) -> Page[Owed]:
        """Page through all that is owed."""
        page, cursor = self._browse(keys.OWED, after, limit)
        return Page(tuple(rows.owed_of(each) for each in page.records), cursor)

    def dead(self, after: str, limit: int) -> Page[Letter]:
        """Page through all dead letters."""
        page, cursor = self._browse(keys.DEAD_LETTERS, after, limit)
        return Page(tuple(_dead_letter(each) for each in page.records), cursor)

    def endpoints(self, after: str, limit: int) -> Page[Endpoint]:
        """Page through all endpoints, deleted ones too; what else the table holds makes a page short."""
        page, cursor = self._browse(keys.ENDPOINTS, after, limit)
        found = (rows.endpoint_of(each) for each in page.records if ids.is_id(each["sk"], "ep"))
        return Page(tuple(found), cursor)

    def living(self, events: Sequence[tuple[str, str]], now_s: int) -> set[tuple[str, str]]:
        """Say which events (tenant, id) are there and not past their time."""
        at = {keys.event(*each): each for each in events}
        return {at[key] for key, record in self._tables.get(list(at)).items() if record["ttl"] > now_s}

    def keep_events(self, until_s: Mapping[tuple[str, str], int]) -> int:
        """Make sure that events, and the hours that list them, last until a moment; how many did not.

        They are read first: a condition that fails costs as much as a write of all an event holds.
        """
        wanted = {keys.event(*each): moment for each, moment in until_s.items()}
        for (tenant, event_id), moment in until_s.items():
            hour = keys.listed_hour(tenant, keys.hour_of(ids.created_ms(event_id)))
            wanted[hour] = max(wanted.get(hour, 0), moment)
        found = self._tables.get(list(wanted))
        short = {at: wanted[at] for at, record in found.items() if record["ttl"] < wanted[at]}
        self._tables.each([_prolonged(at, moment) for at, moment in short.items()])
        return sum(ids.is_id(at.sk, "evt") for at in short)

    def keep_history(self, owed: Sequence[Owed], until_s: int) -> int:
        """Make sure that history has these generations until a moment; how many rows it would not."""
        short = [at for each in owed for at in self._history_before(each, until_s)]
        self._tables.each([_prolonged(at, until_s) for at in short])
        return len(short)

    def mark_kept(self, letters: Sequence[Letter]) -> None:
        """Note of dead letters that their events are kept as long."""
        self._tables.each([Update(_letter_key(each), Change((), {"kept": 1}, {})) for each in letters])

    def oldest_until_s(self, endpoint: Endpoint) -> int | None:
        """Say when the oldest row of an endpoint's history is over; None when it has none."""
        partition = keys.endpoint_partition(endpoint.tenant, endpoint.id)
        first = self._tables.query(keys.HISTORY, partition, _FIRST, 1).records
        return int(first[0]["ttl"]) if first else None

    def listed_until_s(self, tenant: str) -> int | None:
        """Say when the oldest hour is over in which a tenant has events; None when it has none."""
        first = self._tables.query(keys.EVENTS, keys.hours_partition(tenant), _FIRST, 1).records
        return int(first[0]["ttl"]) if first else None

    def forget(self, endpoint: Endpoint) -> bool:
        """Remove a deleted endpoint with its gate and what its owner was told, if nothing leads to it."""
        if self._leads_to(endpoint):
            return False
        owner = (endpoint.tenant, endpoint.id)
        same = (Test("version", Op.EQ, endpoint.version),)
        writes: list[Write] = [
            Delete(keys.endpoint(*owner), same),
            Delete(keys.tagged(*owner)),
            Delete(keys.gate(*owner)),
            Delete(keys.sequence(*owner)),
            Delete(keys.told(*owner)),
        ]
        return not self._tables.together(writes)

    def expire(self, after: str, limit: int, now_s: int) -> Expired:
        """Remove what is past its time from the next rows of a table, then go on with the next table."""
        table, at = _key_of(after) if after else (keys.EXPIRING[0], None)
        page = self._tables.browse(table, at, limit)
        found = [(Key.of(table, each), "ttl" in each and each["ttl"] <= now_s) for each in page.records]
        over = [Delete(key, (Test("ttl", Op.LE, now_s),)) for key, gone in found if gone]
        removed = sum(each.done for each in self._tables.each(over)) if over else 0
        if not page.more:
            following = keys.EXPIRING[keys.EXPIRING.index(table) + 1 :]
            return Expired(removed, _cursor(following[0], None) if following else "")
        # Best from a row that stays: not every emulator goes on from one that is gone.
        stays = [key for key, gone in found if not gone]
        return Expired(removed, _cursor(table, stays[-1] if stays else at))

    def _leads_to(self, endpoint: Endpoint) -> bool:
        partition = keys.endpoint_partition(endpoint.tenant, endpoint.id)
        lanes = [f"{partition}#{number}" for number in (*endpoint.lanes, REPLAY_LANE)]
        places = [(keys.HISTORY, partition), (keys.DEAD_LETTERS, partition)]
        places += [(keys.OWED, lane) for lane in lanes]
        return any(self._tables.query(table, pk, _FIRST, 1).records for table, pk in places)

    def _history_before(self, owed: Owed, until_s: int) -> Iterator[Key]:
        """Give the rows of a generation that would be gone before a moment."""
        lane = owed.lane
        partition = keys.endpoint_partition(lane.tenant, lane.endpoint_id)
        prefix = f"{owed.delivery_id}#{owed.generation:04d}#"
        span = Span(prefix, prefix + "~")
        stretch = self._tables.query(keys.HISTORY, partition, span, _GENERATION_ROWS)
        return (Key.of(keys.HISTORY, each) for each in stretch.records if each["ttl"] < until_s)

    def _browse(self, table: str, after: str, limit: int) -> tuple[Stretch, str]:
        page = self._tables.browse(table, _key_of(after)[1] if after else None, limit)
        more = page.more and page.records
        return page, _cursor(table, Key.of(table, page.records[-1])) if more else ""


def _prolonged(at: Key, until_s: int) -> Update:
    return Update(at, Change((Test("ttl", Op.LT, until_s),), {"ttl": until_s}, {}))


def _dead_letter(record: Record) -> Letter:
    tenant, endpoint_id = keys.gate_owner(record["pk"])
    delivery, generation = record["sk"].split("#")
    kept = record.get("kept") == 1
    return Letter(
        tenant,
        endpoint_id,
        delivery,
        int(generation),
        record["event"],
        record["at_ms"],
        kept,
        record["ttl"],
    )


def _letter_key(letter: Letter) -> Key:
    return keys.dead_letter(letter.tenant, letter.endpoint_id, letter.delivery_id, letter.generation)


def _cursor(table: str, at: Key | None) -> str:
    return json.dumps([table, at.pk, at.sk] if at else [table])


def _key_of(cursor: str) -> tuple[str, Key | None]:
    table, *key = json.loads(cursor)
    return table, Key(table, *key) if key else None
