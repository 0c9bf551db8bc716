"""A batch: the lanes of one invocation worked off side by side, none waiting for another.

Each lane goes from wanting over sending to done, perhaps several rounds; what several lanes need
at the same moment is asked of the store in one call.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile

from chalicelib.application.admission import Admission, Decisions
from chalicelib.application.lane_bells import BELL_DELAY_MAX_S
from chalicelib.application.ports import Clock, Finished, Outbox, Receipts, Unavailable, Work
from chalicelib.application.sending import MARGIN_MS, Sending
from chalicelib.application.settlement import Arrival, Settlement
from chalicelib.application.visit import TOGETHER_US, Attempted, Stage, Visit, trusted_ms
from chalicelib.domain import metrics
from chalicelib.domain.delivery import Owed
from chalicelib.domain.gate import Hold

PEEK = 11
SUSPECT_UNKNOWNS = 2
ROUNDS = 5
AHEAD_MS = 1_000
WAVE_S = 0.05
IN_PLACE_MS = 2_000
HIDE_MS = 60_000
AFTER_FAILURE_S = 5


class Batch:
    """The lanes of one invocation; `attempted`, `kept` and `failures` are what became of them."""

    def __init__(  # noqa: PLR0913 - what one round needs, each of its own kind
        self,
        visits: list[Visit],
        *,
        work: Work,
        admission: Admission,
        sending: Sending,
        settlement: Settlement,
        clock: Clock,
        receipts: Receipts,
        time_left_ms: Callable[[], int],
    ) -> None:
        """Begin with every lane wanting."""
        self.attempted: list[Attempted] = []
        self.kept: set[str] = set()
        self.failures: list[Unavailable] = []
        self._open = visits
        self._trusted_ms = trusted_ms(len(visits))
        self._work = work
        self._admission = admission
        self._sending = sending
        self._settlement = settlement
        self._holding = settlement.holding
        self._bells = settlement.bells
        self._counting = settlement.counting
        self._clock = clock
        self._receipts = receipts
        self._time_left_ms = time_left_ms
        self._finished: list[str] = []

    def work_off(self, outbox: Outbox) -> None:
        """Go round until every lane is done."""
        while self._open:
            now_ms = self._clock.now_ms()
            due = [each for each in self._open if each.stage is Stage.WANTING and each.wake_ms <= now_ms]
            self._begin(due, outbox)
            self._start_due(outbox)
            self._let_go()
            self._end(self._collect(outbox))
            self._let_go()

    def _begin(self, visits: Sequence[Visit], outbox: Outbox) -> None:
        ready: list[Visit] = []
        for visit in visits:
            with self._alone(visit):
                ready += [visit] if self._peek(visit) else []
        now_us = self._clock.now_us()
        for visit in ready:
            visit.asked_us = visit.asked_us or now_us
        if ready:
            with self._alone(*ready):
                self._act_on(self._admission.decide(ready, now_us), outbox)

    def _act_on(self, decisions: Decisions, outbox: Outbox) -> None:
        for visit in decisions.opened:
            self._counting.count(metrics.BREAKER_TRIPS)
            self._bells.ring_when_it_cools(visit)
        for visit in decisions.gone:
            self._finish(visit)
        for visit, dead in decisions.dead:
            with self._alone(visit):
                self.attempted += self._sending.bury(visit, dead)
        for visit, hold in decisions.held:
            self._hold(visit, hold)
        admitted = [each.visit for each in decisions.admitted]
        if admitted:
            with self._alone(*admitted):
                self._send(admitted, outbox)

    @contextmanager
    def _alone(self, *visits: Visit) -> Iterator[None]:
        """Let a failure of ours end these visits and no other: what they had in flight will be unknown."""
        try:
            yield
        except Unavailable as error:
            self.failures.append(error)
            for visit in visits:
                if visit.stage is not Stage.DONE:
                    self._keep(visit, AFTER_FAILURE_S)

    def _peek(self, visit: Visit) -> bool:
        """Find what a lane could send now; False when there is nothing, and the visit waits or ends."""
        now_ms = self._clock.now_ms()
        visit.more = False
        first = visit.round == 0 and not visit.waited_ms and not visit.buried
        hinted = first and not visit.lane.ordered
        visit.wanted = visit.call.rows(now_ms, self._trusted_ms) if hinted else []
        if visit.wanted:
            return True
        self._look(visit, now_ms)
        if not visit.wanted and self._holding.drained(visit, known=not first or bool(visit.call.hints)):
            self._bells.ring_after_quiet(visit)
            self._look(visit, now_ms)
        if visit.wanted:
            return True
        if 0 < visit.next_ms <= now_ms + AHEAD_MS and self._time_for_more():
            visit.wait_until(visit.next_ms, now_ms)
        else:
            self._finish(visit)
        return False

    def _look(self, visit: Visit, now_ms: int) -> None:
        """Ask the store what a lane owes; in an ordered one nothing may pass the first."""
        rows = self._work.peek(visit.lane, PEEK)
        ready = list(takewhile(lambda row: row.ready_ms <= now_ms, rows))
        visit.wanted = _suspect(ready) or ready
        visit.more = len(ready) == PEEK or len(ready) > len(visit.wanted)
        visit.full = visit.full + 1 if len(ready) == PEEK else 0
        visit.next_ms = rows[len(ready)].ready_ms if len(ready) < len(rows) else 0

    def _hold(self, visit: Visit, hold: Hold) -> None:
        visit.held = True
        self._counting.count(metrics.DEFERRED, hold.reason, max(1, len(visit.wanted)))
        now_ms = self._clock.now_ms()
        if hold.until is None:
            visit.next_ms = 0
            self._delete(visit)
            return
        until_ms = -(-hold.until // 1000)
        wait_ms = until_ms - now_ms
        if wait_ms <= IN_PLACE_MS and visit.waited_ms < IN_PLACE_MS and self._time_for_more():
            visit.wait_until(max(until_ms, now_ms), now_ms)
            return
        self._holding.begun(visit, hold, until_ms)
        if wait_ms <= HIDE_MS:
            self._keep(visit, max(1, -(-wait_ms // 1000)))
        else:
            self._bells.ring_at(visit, min(until_ms, now_ms + BELL_DELAY_MAX_S * 1000))
            self._delete(visit)

    def _start_due(self, outbox: Outbox) -> None:
        """Start what was granted for this moment: paced sends, and an ordered lane's next."""
        now_us = self._clock.now_us()
        going = [each for each in self._open if each.stage is Stage.SENDING and each.due(now_us)]
        if not going:
            return
        late = [] if self._time_for_more() else [each for each in going if each.lane.ordered]
        for visit in late:
            visit.stop()
        with self._alone(*going):
            self._settle_over(late)
            self._send([each for each in going if each.granted], outbox)

    def _send(self, visits: Sequence[Visit], outbox: Outbox) -> None:
        """Start what is due, and go on at once where that turned out to be nothing.

        What a clock that was set back meanwhile puts off is due later, like all that is paced.
        """
        for visit in visits:
            visit.stage = Stage.SENDING
        now_us = self._clock.now_us()
        while going := [each for each in visits if each.stage is Stage.SENDING and each.due(now_us)]:
            now_us = min(now_us, self._clock.now_us())
            try:
                started = self._sending.start(going, outbox)
            except Unavailable:
                self._give_back(going)
                raise
            self.failures += started.failures
            with self._alone(*(each for each in going if not each.sending)):
                self._settle_over(going, started.arrived)

    def _settle_over(self, visits: Sequence[Visit], arrived: Sequence[Arrival] = ()) -> None:
        """Give back the leases of those among visits that have nothing left to send; rows that arrived go."""
        over = [visit for visit in visits if visit.over]
        self._settlement.close(arrived, over)
        for visit in over:
            self._next(visit)

    def _give_back(self, visits: Sequence[Visit]) -> None:
        """Give back the leases under which nothing was started, so that nothing is taken for unknown."""
        idle = [visit for visit in visits if not visit.sending]
        for visit in idle:
            visit.stop()
        with suppress(Unavailable):
            self._settlement.close([], idle)

    def _collect(self, outbox: Outbox) -> list[Finished]:
        """Wait for the first send to end, then a moment for others; or until a lane is due again."""
        pending = sum(len(visit.sending) for visit in self._open)
        wakes = [each for visit in self._open if (each := _wakes_ms(visit)) is not None]
        if not pending and not wakes:
            return []
        ended = outbox.finished(self._patience_s(wakes))
        wave_over_ms = min([self._clock.now_ms() + int(WAVE_S * 1000), *wakes])
        while ended and len(ended) < pending and wave_over_ms > self._clock.now_ms():
            ended += outbox.finished((wave_over_ms - self._clock.now_ms()) / 1000)
        return ended

    def _patience_s(self, wakes: Sequence[int]) -> float:
        if not wakes:
            return self._sending.request_timeout_ms / 1000
        return max(0.0, (min(wakes) - self._clock.now_ms()) / 1000)

    def _end(self, ended: Sequence[Finished]) -> None:
        if not ended:
            return
        sending = [visit for visit in self._open if visit.stage is Stage.SENDING]
        owner = {key: visit for visit in sending for key in visit.sending}
        live = [(owner[each.key], each) for each in ended if each.key in owner]
        results = [each for each in (self._settlement.judged(*one) for one in live) if each is not None]
        over = [visit for visit in self._open if visit.over]
        with self._alone(*(visit for visit, _ in live), *over):
            self.attempted += self._settlement.wave(results, over)
            for visit in over:
                self._next(visit)
            self._settle_over(sending)

    def _next(self, visit: Visit) -> None:
        visit.round += 1
        visit.asked_us = 0
        if visit.stuck:
            self._keep(visit, AFTER_FAILURE_S)
        elif not visit.elsewhere and self._goes_on(visit) and visit.round < ROUNDS and self._time_for_more():
            hold = self._admission.foresee(visit, self._clock.now_us())
            visit.stage = Stage.WANTING
            visit.wake_ms = 0
            if hold is not None:
                self._hold(visit, hold)
        else:
            self._finish(visit)

    def _goes_on(self, visit: Visit) -> bool:
        """Say whether a lane has more, or has to be looked at before it may be rung again."""
        return visit.more or self._holding.is_quiet(visit)

    def _time_for_more(self) -> bool:
        return self._time_left_ms() > self._sending.request_timeout_ms + 2 * MARGIN_MS

    def _finish(self, visit: Visit) -> None:
        if self._goes_on(visit) and self._bells.ring_again(visit):
            self._keep(visit, 1)
            return
        if visit.next_ms:
            self._bells.ring_at(visit, visit.next_ms)
        self._delete(visit)

    def _delete(self, visit: Visit) -> None:
        visit.stage = Stage.DONE
        self._finished += visit.call.receipts

    def _let_go(self) -> None:
        """Delete the bells of the lanes that are done while others still work, in one call.

        Those done last are deleted by the answer of the invocation. One that cannot be deleted
        comes back and finds nothing to do; that ends nobody's sends.
        """
        self._open = [each for each in self._open if each.stage is not Stage.DONE]
        if self._open and self._finished:
            with suppress(Unavailable):
                self._receipts.delete(self._finished)
            self._finished = []

    def _keep(self, visit: Visit, seconds: int) -> None:
        """Leave one bell of a lane in the queue, out of sight for a while; it stands for them all."""
        visit.stage = Stage.DONE
        first, *others = visit.call.receipts
        with suppress(Unavailable):
            self._receipts.hide([first], seconds)
        self._finished += others
        self.kept.add(first)


def _wakes_ms(visit: Visit) -> int | None:
    """Say when a visit has to be looked at though nothing of it has ended."""
    if visit.stage is Stage.WANTING:
        return visit.wake_ms
    starts_us = visit.starts_us
    return None if starts_us is None else -(-(starts_us - TOGETHER_US) // 1000)


def _suspect(ready: Sequence[Owed]) -> list[Owed]:
    """Single out a row whose senders died twice, the least tried first: if it kills, it kills alone.

    In an ordered lane only the first can have been sent.
    """
    among = ready[:1] if ready and ready[0].lane.ordered else ready
    suspects = [row for row in among if row.unknowns >= SUSPECT_UNKNOWNS]
    return [min(suspects, key=lambda row: row.unknowns)] if suspects else []
