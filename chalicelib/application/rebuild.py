"""Rebuild: makes owed rows, dead letters and gates again from history, endpoint by endpoint.

Only what is missing or wrong is written, and an endpoint's gate last: killed anywhere, it is run again and
goes on. Senders are stopped meanwhile.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from chalicelib.application.ports import Clock, Rebuilding
from chalicelib.domain import rebuild, retention
from chalicelib.domain.delivery import Created, Ended, HistoryRow, Owed
from chalicelib.domain.endpoint import REPLAY_LANE, Endpoint
from chalicelib.domain.event import is_test
from chalicelib.domain.gate import Rules
from chalicelib.domain.rebuild import Holds

CHUNK = 100

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild wrote. `unexplained` counts owed rows that history knows nothing of; they stay."""

    endpoints: int = 0
    gates: int = 0
    owed: int = 0
    corrected: int = 0
    removed: int = 0
    dead_letters: int = 0
    unexplained: int = 0

    def plus(self, other: "Rebuilt") -> "Rebuilt":
        """Add what else was written."""
        return Rebuilt(
            self.endpoints + other.endpoints,
            self.gates + other.gates,
            self.owed + other.owed,
            self.corrected + other.corrected,
            self.removed + other.removed,
            self.dead_letters + other.dead_letters,
            self.unexplained + other.unexplained,
        )


@dataclass(slots=True)
class _Seen:
    """What the walk through an endpoint's history has met."""

    lanes: set[str]
    purged_before_ms: int = 0
    owing: bool = False


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Makes what is derived again from what is on record."""

    store: Rebuilding
    clock: Clock
    rules: Rules

    def run(self) -> Rebuilt:
        """Rebuild everything."""
        done = Rebuilt()
        for endpoint in self.store.endpoints():
            done = done.plus(self._endpoint(endpoint))
        for page in self.store.owed():
            done = done.plus(self._strays(page))
        return done

    def _endpoint(self, endpoint: Endpoint) -> Rebuilt:
        gate = self.store.gate(endpoint)
        holds = rebuild.holds_of(self.store.holds(endpoint), gate, endpoint, self.clock.now_us())
        done, seen = Rebuilt(endpoints=1), _Seen(set(), self.store.purged_before_ms(endpoint))
        for chunk in _chunks(self.store.generations(endpoint)):
            done = done.plus(self._chunk(endpoint, chunk, holds, seen, anew=gate is None))
        replays = REPLAY_LANE in seen.lanes
        now_ms = self.clock.now_ms()
        if gate is None:
            again = rebuild.gate_again(endpoint, seen.lanes, holds, self.rules)
            made = self.store.restore_gate(endpoint, again, now_ms, replays=replays)
            return done.plus(Rebuilt(gates=int(made)))
        if seen.owing:
            self.store.expect(endpoint, now_ms, replays=replays)
        return done

    def _chunk(
        self,
        endpoint: Endpoint,
        chunk: Sequence[tuple[HistoryRow, ...]],
        holds: Holds,
        seen: _Seen,
        *,
        anew: bool,
    ) -> Rebuilt:
        owner = (endpoint.tenant, endpoint.id)
        told = [rebuild.owed_again(owner, rows, holds) for rows in chunk]
        owed = [each for each in told if each is not None]
        seen.lanes |= {rows[0].lane for rows in chunk if isinstance(rows[0], Created)}
        seen.owing |= bool(owed)
        now_s = self.clock.now_ms() // 1000
        ends = [rows[-1] for rows in chunk if not _of_a_test(rows)]
        dead = [end for end in ends if isinstance(end, Ended) and _kept(end, now_s, seen.purged_before_ms)]
        missing, differing = self.store.restore_owed(owed, anew=anew) if owed else (0, 0)
        letters = self.store.restore_dead(endpoint, dead) if dead else 0
        return Rebuilt(owed=missing, corrected=differing, dead_letters=letters)

    def _strays(self, page: Sequence[Owed]) -> Rebuilt:
        """Remove the rows of what has gone on without them."""
        told = list(zip(page, self.store.settled(page), strict=True))
        over = [owed for owed, settled in told if settled]
        if over:
            self.store.remove_owed(over)
        return Rebuilt(removed=len(over), unexplained=sum(settled is None for _, settled in told))


def _of_a_test(rows: tuple[HistoryRow, ...]) -> bool:
    return isinstance(rows[0], Created) and is_test(rows[0].event_type)


def _kept(end: Ended, now_s: int, purged_before_ms: int) -> bool:
    return retention.dead_until_s(end.at_ms) > now_s and end.at_ms >= purged_before_ms


def _chunks(each: Iterable[T]) -> Iterator[list[T]]:
    left = iter(each)
    while chunk := list(islice(left, CHUNK)):
        yield chunk
