"""Ending deliveries in pages: of deleted endpoints, of what an owner skips, of what waited too long.

A page is one transaction with the cursor behind it: killed anywhere it goes on, and of two at once one stops.
What a lease names is left to who holds it; who is let in later reads of the end, and sends nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from chalicelib.application.counting import Counting
from chalicelib.application.ports import Advanced, Bells, Clock, Endings, Endpoints, Gates, Work
from chalicelib.application.sending import left_behind
from chalicelib.domain import counts
from chalicelib.domain import gate as gates
from chalicelib.domain.delivery import Dead, Lane, Owed, given_up
from chalicelib.domain.ending import DAY_MS, Cause, Ending, ending_of, lanes_of
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.gate import TAKE_OVER_GRACE, Gate
from chalicelib.domain.outcome import Outcome

PAGE = 100
MARGIN_MS = 10_000
TRIES = 20
_BEHIND_LANE = "|"


@dataclass(frozen=True, slots=True)
class EndOwed:
    """Works off what is being ended."""

    store: Endings
    endpoints: Endpoints
    gates: Gates
    work: Work
    bells: Bells
    clock: Clock
    counting: Counting

    def run(self, tenant: str, endpoint_id: str, time_left_ms: Callable[[], int]) -> int:
        """End what an endpoint's endings say from where they were left; the number ended by this run.

        When time runs out, or others keep getting in between, it calls itself again.
        """
        now_ms = self.clock.now_ms()
        due = [each for each in self.store.of(tenant, endpoint_id) if each.due_ms <= now_ms]
        return sum(self._work_off(each, time_left_ms) for each in due)

    def call_waiting(self) -> int:
        """Call for every ending that is due, also those under way; how many there are."""
        now_ms = self.clock.now_ms()
        due = {(each.tenant, each.endpoint_id) for each in self.store.waiting() if each.due_ms <= now_ms}
        for owner in sorted(due):
            self.bells.call_ending(*owner)
        return len(due)

    def _work_off(self, ending: Ending, time_left_ms: Callable[[], int]) -> int:
        ended = tries = 0
        left: Ending | None = ending
        while left is not None and left.due_ms <= self.clock.now_ms():
            if time_left_ms() < MARGIN_MS or tries >= TRIES:
                self.bells.call_ending(left.tenant, left.endpoint_id)
                break
            page = self._next_page(left)
            made = self.store.advance(left, page.then, page.ends, page.endpoint) if page else None
            if page is None or made is Advanced.OVERTAKEN:
                break
            tries = 0 if made is Advanced.MADE else tries + 1
            if made is Advanced.MADE:
                self.counting.add(counts.added(*(counts.of_end(dead) for _, dead in page.ends)))
                ended, left = ended + len(page.ends), page.then
        return ended

    def _next_page(self, ending: Ending) -> "_Page | None":
        """Say what comes next of an ending; None when it concerns nothing any more.

        The endpoint is read before the gate: who is let in later reads there that nothing is to be sent.
        """
        owner = (ending.tenant, ending.endpoint_id)
        endpoint = self.endpoints.get(*owner)
        if endpoint is None or not ending.concerns(endpoint):
            self.store.drop(ending)
            return None
        gate = self.gates.read([owner]).get(owner)
        numbers = lanes_of(endpoint, gate)
        number, _, after = (ending.cursor or numbers[0] + _BEHIND_LANE).partition(_BEHIND_LANE)
        lane = Lane(*owner, number)
        sending = self._being_sent(lane, gate)
        rows = self.store.page(lane, after, PAGE)
        ends = self._ends(endpoint, [row for row in rows if row.place not in sending])
        fitting = ends[: self.store.fitting(ends)]
        if len(fitting) < len(ends):
            cursor = f"{number}{_BEHIND_LANE}{fitting[-1][0].place}"
        elif len(rows) == PAGE:
            cursor = f"{number}{_BEHIND_LANE}{rows[-1].place}"
        else:
            cursor = _next_lane(numbers, number)
        then = replace(ending, cursor=cursor) if cursor else self._over(ending, endpoint)
        return _Page(endpoint, self._not_arrived(fitting), then)

    def _being_sent(self, lane: Lane, gate: Gate | None) -> set[str]:
        """Name the rows that are perhaps being sent; what a dead holder left is told of, and is none."""
        lease = gate.leases.get(lane.number) if gate else None
        if gate is None or lease is None:
            return set()
        now_us = self.clock.now_us()
        if lease.until + TAKE_OVER_GRACE > now_us:
            return {key.rpartition("#")[0] for key in lease.keys}
        held_ms = gates.held_sum(gate, now_us) // 1000
        moves = left_behind(self.work, lane, lease, now_us // 1000, held_ms)
        for (owed, step), made in zip(moves, self.work.move(moves) if moves else (), strict=True):
            self.counting.add(counts.of_move(owed, step) if made else counts.NOTHING)
        released = gates.and_alert(gates.release(lease, lane.number), now_us, refused=True)
        self.gates.change([((lane.tenant, lane.endpoint_id), released)])
        return set()

    def _ends(self, endpoint: Endpoint, rows: Sequence[Owed]) -> list[tuple[Owed, Dead]]:
        now_ms = self.clock.now_ms()
        told = [
            (row, ending_of(endpoint, row.delivery_id, row.generation, row.waits_since_ms, now_ms))
            for row in rows
        ]
        return [(row, given_up(row, reason, now_ms)) for row, reason in told if reason is not None]

    def _not_arrived(self, ends: list[tuple[Owed, Dead]]) -> list[tuple[Owed, Dead]]:
        """Leave out what has an attempt that its owed row does not know of, and finish what has arrived."""
        found = self.work.reread([replace(row, event_id="") for row, _ in ends]).attempts
        arrived = [
            (row, counts.of_attempt(row, found[row.key]))
            for row, _ in ends
            if row.key in found and found[row.key].outcome is Outcome.SUCCESS
        ]
        if arrived:
            self.counting.along(lambda beside: self.work.close(arrived, [], beside))
        return [(row, dead) for row, dead in ends if row.key not in found]

    def _over(self, ending: Ending, endpoint: Endpoint) -> Ending | None:
        """Come back to a disabled endpoint the next day: what came later ends later."""
        if ending.cause is Cause.AGE and endpoint.state is EndpointState.DISABLED:
            return replace(ending, cursor="", due_ms=self.clock.now_ms() + DAY_MS)
        return None


@dataclass(frozen=True, slots=True)
class _Page:
    """What is ended next, of which endpoint as it was read, and what is left then."""

    endpoint: Endpoint
    ends: list[tuple[Owed, Dead]]
    then: Ending | None


def _next_lane(numbers: Sequence[str], number: str) -> str:
    place = numbers.index(number) + 1
    return numbers[place] + _BEHIND_LANE if place < len(numbers) else ""
