"""Endings in DynamoDB: each page's ends and the cursor behind it in one transaction."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.records import Check, Delete, Key, Put, Span, Tables, Update, Write
from chalicelib.adapters.dynamodb.work import move_writes
from chalicelib.application.ports import Advanced
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.delivery import Dead, Lane, Owed
from chalicelib.domain.ending import Ending
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.notice import TOLD

TRANSACTION_MAX = 100
_OF_AN_ENDPOINT = 10
_BESIDE_ENDS = 3  # the cursor, the endpoint, the gate's mark


class DynamoEndings:
    """Where what is being ended is kept."""

    def __init__(self, tables: Tables) -> None:
        """Read and write these tables."""
        self._tables = tables

    def of(self, tenant: str, endpoint_id: str) -> list[Ending]:
        """Read what is being ended of an endpoint, strongly consistent."""
        span = Span(f"{endpoint_id}#", f"{endpoint_id}#~")
        stretch = self._tables.query(keys.ENDINGS, tenant, span, _OF_AN_ENDPOINT)
        return [rows.ending_of(record) for record in stretch.records]

    def waiting(self) -> Iterator[Ending]:
        """Walk all that is being ended, due or not."""
        return (rows.ending_of(record) for record in self._tables.walk(keys.ENDINGS))

    def page(self, lane: Lane, after: str, limit: int) -> list[Owed]:
        """Read a lane's rows behind a place (`Owed.place`; empty: from the start), strongly consistent."""
        span = Span(f"{after}~") if after else Span()
        stretch = self._tables.query(keys.OWED, keys.lane(lane), span, limit)
        return [rows.owed_of(record) for record in stretch.records]

    def fitting(self, ends: Sequence[tuple[Owed, Dead]]) -> int:
        """Count how many ends, from the first, one transaction can take."""
        sizes = accumulate(len(list(move_writes(*each))) for each in ends)
        return sum(size <= TRANSACTION_MAX - _BESIDE_ENDS for size in sizes)

    def advance(
        self, ending: Ending, then: Ending | None, ends: Sequence[tuple[Owed, Dead]], of: Endpoint
    ) -> Advanced:
        """End deliveries and move the ending on (None: it is done), in one transaction."""
        at, same = _at(ending), _same(ending)
        moved: Write = Put(at, rows.ending_row(then), same) if then else Delete(at, same)
        as_read = Check(keys.endpoint(of.tenant, of.id), (Test("version", Op.EQ, of.version),))
        ended = [write for each in ends for write in move_writes(*each)]
        refused = self._tables.together([moved, as_read, *ended, *_marked(of, ends)])
        if not refused:
            return Advanced.MADE
        return Advanced.OVERTAKEN if 0 in refused else Advanced.CHANGED

    def drop(self, ending: Ending) -> None:
        """Forget an ending that concerns nothing any more, unless it was begun anew."""
        self._tables.together([Delete(_at(ending), _same(ending))])


def _marked(of: Endpoint, ends: Sequence[tuple[Owed, Dead]]) -> Iterator[Write]:
    """Mark the gate when the owner has to be told of an end: one they did not ask for."""
    told = [dead.ended.at_ms for _, dead in ends if dead.ended.reason in TOLD]
    if told:
        alert = gates.and_alert(Change((), {}, {}), max(told) * 1000, refused=False)
        yield Update(keys.gate(of.tenant, of.id), alert)


def _at(ending: Ending) -> Key:
    return keys.ending(ending.tenant, ending.endpoint_id, ending.cause)


def _same(ending: Ending) -> tuple[Test, ...]:
    return (Test("version", Op.EQ, ending.version), Test("cursor", Op.EQ, ending.cursor))
