"""What a backlog behind slow receivers costs in bells: all of them counted, in simulated time."""

from dataclasses import dataclass

from chalicelib.domain.endpoint import Limits
from tests.fakes.scripted_sender import Answer
from tests.unit.application.world import MINUTE_MS, World, posted

POSTED_A_S = 500
TOOK_MS = 4_000
DONE_WITHIN_MS = 3 * 60 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Backlog:
    """What working a backlog off came to; `rung_late` are the bells of reconcile, part of `bells`."""

    attempts: int
    bells: int
    rung_late: int
    took_ms: int

    @property
    def bells_per_attempt(self) -> float:
        """Say how many bells were rung for each attempt, those of ingest among them."""
        return self.bells / self.attempts


def work_off(endpoints: int, deliveries: int) -> Backlog:
    """Post so many events one by one to endpoints that answer slowly, and deliver them all.

    Reconcile comes round every minute, from the first event on.
    """
    world = World()
    world.sender.script = lambda _: Answer(took_ms=TOOK_MS)
    types = [f"slow.n{number}" for number in range(endpoints)]
    for each in types:
        world.endpoint(each, limits=Limits())
    began_ms = sweep_ms = world.clock.now_ms()
    rung_late = accepted = 0
    while len(world.sender.sent) < deliveries:
        now_ms = world.clock.now_ms()
        assert now_ms < began_ms + DONE_WITHIN_MS, "the backlog is never worked off"
        if now_ms >= sweep_ms:
            rung_late += world.sweep().rung
            sweep_ms += MINUTE_MS
        due = min(deliveries, 1 + (now_ms - began_ms) * POSTED_A_S // 1_000)
        for number in range(accepted, due):
            world.accept([posted(types[number % endpoints])], world.usual)
        accepted = due
        world.pass_time(1 if accepted < deliveries else sweep_ms - world.clock.now_ms())
    assert world.owed() == []
    return Backlog(len(world.sender.sent), world.bells_rung, rung_late, world.clock.now_ms() - began_ms)
