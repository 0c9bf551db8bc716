"""Bulk replays: what an owner wants sent again after an outage, of any size, begun as there is room.

A chunk is one transaction with the cursor behind it: killed anywhere it goes on, and of two at once one
stops.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from chalicelib.application.auditing import Recorder
from chalicelib.application.endpoints import not_found
from chalicelib.application.ports import (
    Bell,
    Bells,
    BulkReplaying,
    Clock,
    Dice,
    Endpoints,
    Generations,
    Owing,
    Replaying,
    Unavailable,
    Work,
)
from chalicelib.application.replay import ancestor, deleted, newest_rows, takes
from chalicelib.domain import audited, bulk_replay, ids
from chalicelib.domain.audit import Action, Actor, Difference, Record
from chalicelib.domain.bulk_replay import OPEN, BulkReplay, BulkState, Wanted
from chalicelib.domain.cloud.address import queue_of
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import REPLAY_LANE, Endpoint, EndpointState
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.replay import next_generation

CHUNK = 30
ROWS = 500
COUNTED_AT_ONCE = 2_000
MARGIN_MS = 10_000
COUNTED_MOST = 20_000
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class OrderReplays:
    """What an owner does with bulk replays: begin, look, pause, resume, cancel."""

    store: BulkReplaying
    endpoints: Endpoints
    bells: Bells
    clock: Clock
    dice: Dice

    def begin(self, of: tuple[str, str], wanted: Wanted, confirmed: int | None, by: Actor) -> BulkReplay:
        """Begin to replay all that match of an endpoint, named by (tenant, id), or raise RelayError.

        More than a thousand only with their count. What comes later, or ends later, is not among them.
        """
        tenant, endpoint_id = of
        endpoint = self.endpoints.get(tenant, endpoint_id) if ids.is_id(endpoint_id, "ep") else None
        if endpoint is None:
            raise not_found("endpoint", endpoint_id)
        if endpoint.state is EndpointState.DELETED:
            raise deleted()
        now_ms = self.clock.now_ms()
        wanted = replace(wanted, until_ms=min(wanted.until_ms, now_ms + 1))
        name = ids.new_id("rp", now_ms, self.dice.bits(ids.ENTROPY_BITS))
        counted = self._count(BulkReplay(tenant, name, endpoint_id, wanted, now_ms, matched=0))
        if not counted.exact or counted.matched > bulk_replay.CONFIRM_ABOVE:
            _must_be_confirmed(counted, confirmed)
        change = audited.bulk_replay_begun(counted)
        self.store.start(counted, self._record(by, Action.REPLAY_BEGUN, counted, change))
        self.bells.call_replay(tenant, name)
        return counted

    def get(self, tenant: str, replay_id: str) -> BulkReplay:
        """Read one, or raise RelayError."""
        found = self.store.get(tenant, replay_id) if ids.is_id(replay_id, "rp") else None
        if found is None:
            raise not_found("replay", replay_id)
        return found

    def pause(self, tenant: str, replay_id: str, by: Actor) -> BulkReplay:
        """Begin no more for now; what it has begun still goes out."""
        return self._turn((tenant, replay_id), BulkState.PAUSED, Action.REPLAY_PAUSED, by)

    def resume(self, tenant: str, replay_id: str, by: Actor) -> BulkReplay:
        """Go on with one that was paused."""
        found = self._turn((tenant, replay_id), BulkState.RUNNING, Action.REPLAY_RESUMED, by)
        self.bells.call_replay(tenant, replay_id)
        return found

    def cancel(self, tenant: str, replay_id: str, by: Actor) -> BulkReplay:
        """End one for good; what it has begun still goes out."""
        return self._turn((tenant, replay_id), BulkState.CANCELLED, Action.REPLAY_CANCELLED, by)

    def _turn(self, of: tuple[str, str], state: BulkState, action: Action, by: Actor) -> BulkReplay:
        for _ in range(_ROUNDS):
            found = self.get(*of)
            if found.state is state:
                return found
            if found.state not in OPEN:
                raise _ended(found)
            new = self._turned(found, state)
            change = Difference({"state": found.state.value}, {"state": state.value})
            if self.store.turn(found, new, self._record(by, action, new, change)):
                return new
        raise Unavailable("a bulk replay changed too often")

    def _record(self, by: Actor, action: Action, of: BulkReplay, change: Difference) -> Record:
        return Recorder(self.clock, self.dice).record(by, action, (of.tenant, of.id), change)

    def _turned(self, found: BulkReplay, state: BulkState) -> BulkReplay:
        if state is BulkState.CANCELLED:
            return found.over(state, self.clock.now_ms())
        return replace(found.next(), state=state, due_ms=0, wait_ms=bulk_replay.SOON_MS)

    def _count(self, replay: BulkReplay) -> BulkReplay:
        """Count what matches; of a range with very many deliveries only the first are looked at."""
        looked = 0
        found = replay
        while True:
            walked = self.store.walk(found, COUNTED_AT_ONCE)
            looked += len(walked.deliveries)
            matched = found.matched + len(_matching(found, walked.deliveries))
            if not walked.more:
                return replace(replay, matched=matched)
            if looked >= COUNTED_MOST:
                return replace(replay, matched=matched, exact=False)
            found = replace(found, matched=matched, cursor=walked.deliveries[-1].delivery_id)


@dataclass(frozen=True, slots=True)
class ReplayMany:
    """Works off bulk replays."""

    store: BulkReplaying
    replaying: Replaying
    endpoints: Endpoints
    work: Work
    bells: Bells
    clock: Clock

    def run(self, tenant: str, replay_id: str, time_left_ms: Callable[[], int]) -> int:
        """Go on with one as far as there is room in its line; the number begun. It calls for its next run."""
        found = self.store.get(tenant, replay_id)
        now_ms = self.clock.now_ms()
        if found is None or found.state is not BulkState.RUNNING or found.due_ms > now_ms:
            return 0
        mine = found.begun(now_ms)
        if not self.store.replace(found, mine):
            return 0
        left = self._work_off(mine, time_left_ms)
        if left is not None and left.state is BulkState.RUNNING:
            self._rest(left, came_on=left.cursor != mine.cursor)
        return left.replayed - mine.replayed if left else 0

    def call_waiting(self) -> int:
        """Call for every one whose next run is due and was not called for, or died; how many there are."""
        now_ms = self.clock.now_ms()
        due = [(tenant, name) for tenant, name, due_ms in self.store.running() if due_ms <= now_ms]
        for owner in due:
            self.bells.call_replay(*owner)
        return len(due)

    def _work_off(self, mine: BulkReplay, time_left_ms: Callable[[], int]) -> BulkReplay | None:
        """Begin chunk after chunk; None when somebody else has changed it meanwhile."""
        endpoint = self.endpoints.get(mine.tenant, mine.endpoint_id)
        if endpoint is None or endpoint.state is EndpointState.DELETED:
            over = mine.over(BulkState.CANCELLED, self.clock.now_ms(), ErrorCode.ENDPOINT_DELETED.value)
            return over if self.store.replace(mine, over) else None
        room = self._room(endpoint)
        if room:
            self.replaying.expect(mine.tenant, mine.endpoint_id, self.clock.now_ms())
        left: BulkReplay | None = mine
        while left is not None and left.state is BulkState.RUNNING and room > 0:
            if time_left_ms() < MARGIN_MS:
                break
            before = left.replayed
            left = self._page(left, endpoint, room)
            room -= left.replayed - before if left else 0
        return left

    def _page(self, replay: BulkReplay, endpoint: Endpoint, room: int) -> BulkReplay | None:
        """Begin what matches of the next page of history, as far as there is room, and say so to the lane.

        A cursor that has passed nothing but what does not match is written with the next that does.
        """
        walked = self.store.walk(replay, ROWS)
        matching = _matching(replay, walked.deliveries)
        end = walked.deliveries[-1].delivery_id if walked.deliveries else replay.cursor
        if not matching and walked.more:
            return replace(replay, cursor=end)
        left = replay
        chosen = matching[:room]
        for start in range(0, max(1, len(chosen)), CHUNK):
            chunk = chosen[start : start + CHUNK]
            last = start + len(chunk) == len(matching)
            cursor = end if last else chunk[-1].delivery_id
            moved = self._chunk(left, endpoint, chunk, cursor, over=last and not walked.more)
            if moved is None:
                return None
            left = moved
        if left.replayed > replay.replayed:
            queue = queue_of(endpoint.transport)
            self.bells.ring([Bell(_lane(replay), self.clock.now_ms(), queue=queue)])
        return left

    def _chunk(
        self,
        replay: BulkReplay,
        endpoint: Endpoint,
        chosen: Sequence[Generations],
        cursor: str,
        *,
        over: bool,
    ) -> BulkReplay | None:
        """Begin a few, and move the cursor behind them."""
        now_ms = self.clock.now_ms()
        moved = replace(replay.next(), cursor=cursor)
        moved = replace(moved, state=BulkState.DONE, ended_ms=now_ms) if over else moved
        return self._advance(replay, moved, self._owing(replay, endpoint, chosen, now_ms), len(chosen))

    def _room(self, endpoint: Endpoint) -> int:
        now_ms = self.clock.now_ms()
        lane = Lane(endpoint.tenant, endpoint.id, REPLAY_LANE)
        rows = self.work.peek(lane, bulk_replay.AHEAD_MOST)
        waiting = sum(row.ready_ms <= now_ms for row in rows)
        return bulk_replay.room(endpoint.limits.rate_per_second, waiting)

    def _owing(
        self, replay: BulkReplay, endpoint: Endpoint, chosen: Sequence[Generations], now_ms: int
    ) -> list[Owing]:
        """Say what is to be sent again of what has been chosen: bytes kept, type still taken."""
        events = self.store.events(replay.tenant, [each.rows[-1].event_id for each in chosen], now_ms)
        kept = [(each, events.get(each.rows[-1].event_id)) for each in chosen]
        return [
            Owing(*next_generation(ancestor(replay.tenant, each, stored.event.type), now_ms))
            for each, stored in kept
            if stored is not None and takes(endpoint, stored.event.type)
        ]

    def _advance(
        self, old: BulkReplay, moved: BulkReplay, owing: Sequence[Owing], chosen: int
    ) -> BulkReplay | None:
        """Write a chunk, but for those that somebody else has begun, or whose event has just gone."""
        left = list(owing)
        for _ in range(_ROUNDS):
            begun, skipped = len(left), chosen - len(left)
            new = replace(moved, replayed=old.replayed + begun, skipped=old.skipped + skipped)
            refused = self.store.advance(old, new, left, self.clock.now_ms())
            if refused is None:
                return None
            if not refused:
                return new
            left = [each for each in left if each.owed.delivery_id not in refused]
        raise Unavailable("deliveries of a bulk replay changed too often")

    def _rest(self, left: BulkReplay, *, came_on: bool) -> None:
        """Say when the next run is due, and call for it, unless the schedule comes as soon."""
        resting = left.rests(self.clock.now_ms(), came_on=came_on)
        if self.store.replace(left, resting) and resting.wait_ms < bulk_replay.LATE_MS:
            self.bells.call_replay(left.tenant, left.id, resting.wait_ms // 1000)


def _matching(replay: BulkReplay, found: Sequence[Generations]) -> list[Generations]:
    return [
        each for each in found if bulk_replay.matches(newest_rows(each), replay.wanted, replay.created_ms)
    ]


def _lane(of: BulkReplay) -> Lane:
    return Lane(of.tenant, of.endpoint_id, REPLAY_LANE)


def _must_be_confirmed(counted: BulkReplay, confirmed: int | None) -> None:
    """Raise RelayError unless the owner has named a count that is not too small."""
    if confirmed is not None and confirmed >= counted.matched:
        return
    much = str(counted.matched) if counted.exact else f"at least {counted.matched}"
    raise RelayError(
        ErrorCode.CONFIRMATION_REQUIRED,
        f"This would replay {much} deliveries.",
        field="confirm",
        expected=f"`confirm`: {counted.matched} or more, or a narrower range",
    )


def _ended(found: BulkReplay) -> RelayError:
    return RelayError(
        ErrorCode.REPLAY_ENDED,
        f"This bulk replay is {found.state.value}; it can no longer be paused, resumed or cancelled.",
        field="id",
        expected="a replay that is running or paused",
    )
