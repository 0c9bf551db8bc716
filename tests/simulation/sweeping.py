"""How long reconcile takes to look at every armed endpoint, side by side as it does."""

from dataclasses import replace
from typing import Any, cast

from chalicelib.application.fan_out import WorkedOff
from chalicelib.application.reconcile import LOOKED_AT_ONCE, Reconcile, Swept
from chalicelib.domain import gate as gates
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import Rules
from tests.simulation.figures import Figures
from tests.simulation.loop import Loop
from tests.simulation.numbers import SECOND, Latencies
from tests.simulation.store import Store

BEGAN = 1_800_000_000 * SECOND
LONGEST = 3_600 * SECOND
ARMED_MS = BEGAN // 1000 + 3_600_000


class NoFanOuts:
    """No event is fanned out later here."""

    def run_waiting(self, _: int) -> WorkedOff:
        """Find none."""
        return WorkedOff()


def sweep_s(armed: int, at_once: int = LOOKED_AT_ONCE) -> float:
    """Give how long (s) one sweep over so many armed endpoints with nothing owed takes, so many at once."""
    loop = Loop(BEGAN)
    store = Store(loop, Latencies(), Figures(BEGAN))
    for number in range(armed):
        endpoint = Endpoint("t", f"ep_{number}", "https://receiver.example/", ("*",), 0)
        record = gates.new_record(10, 20, 8, rules=Rules()) | {"armed_until": ARMED_MS}
        store.register(endpoint, record)
    ended: list[tuple[Swept, int]] = []
    reconcile = Reconcile(store, store, store, cast("Any", None), cast("Any", NoFanOuts()), loop)
    if at_once > 1:
        reconcile = replace(reconcile, together=lambda look, some: loop.together(look, some, at_once))
    loop.start(lambda: ended.append((reconcile.run(), loop.now)))
    loop.run(BEGAN + LONGEST)
    swept, moment = ended[0]
    if swept.watched != armed:
        raise AssertionError("the sweep passed somebody over")
    return round((moment - BEGAN) / SECOND, 1)
