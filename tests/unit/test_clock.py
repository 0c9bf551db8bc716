"""The clock: the machine's, unless the store says that it is off."""

from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import pairwise

import pytest

from chalicelib.adapters.clock import SECOND_NS, SystemClock

TRUE_S = 1_764_000_000


class Machine:
    """A machine whose clock is off by some seconds, and a clock that reads it."""

    def __init__(self, off_s: float) -> None:
        self.off_ns = int(off_s * SECOND_NS)
        self.passed_ns = 0
        self.clock = SystemClock(
            lambda: TRUE_S * SECOND_NS + self.passed_ns + self.off_ns, lambda: 77 + self.passed_ns
        )

    def passes(self, seconds: float) -> None:
        self.passed_ns += int(seconds * SECOND_NS)

    def hears_the_store(self) -> None:
        self.clock.hear(date(TRUE_S + self.passed_ns // SECOND_NS))

    @property
    def error_s(self) -> float:
        return self.clock.now_us() / 1e6 - TRUE_S - self.passed_ns / SECOND_NS


def date(at_s: int) -> str:
    return format_datetime(datetime.fromtimestamp(at_s, UTC), usegmt=True)


@pytest.mark.parametrize("off_s", [-120, -2.5, 3.5, 120, 86_400])
def test_f134_a_machine_that_is_off_goes_by_the_store(off_s: float) -> None:
    machine = Machine(off_s)
    machine.hears_the_store()
    for _ in range(20):
        machine.passes(0.7)
        assert abs(machine.error_s) < 0.501
        machine.hears_the_store()


@pytest.mark.parametrize("off_s", [-0.9, 0, 0.9])
def test_a_machine_that_is_right_within_a_second_goes_by_itself(off_s: float) -> None:
    machine = Machine(off_s)
    for _ in range(20):
        machine.passes(0.3)
        machine.hears_the_store()
        assert machine.error_s == pytest.approx(off_s, abs=1e-4)


@pytest.mark.parametrize("stale_s", [1, 1.9])
def test_a_date_that_is_a_second_or_two_old_sets_no_clock_back(stale_s: float) -> None:
    """A busy server writes its `Date` late; set back by that, a gate seems to be spent for seconds."""
    machine = Machine(0)
    for _ in range(30):
        machine.passes(0.3)
        told_s = TRUE_S + (machine.passed_ns - int(stale_s * SECOND_NS)) // SECOND_NS
        machine.clock.hear(date(told_s))
        assert machine.error_s == pytest.approx(0, abs=1e-4)


def test_time_does_not_jump_with_the_seconds_that_the_store_tells() -> None:
    machine = Machine(120)
    machine.hears_the_store()
    moments = []
    for _ in range(50):
        machine.passes(0.1)
        machine.hears_the_store()
        moments.append(machine.clock.now_ms())
    steps = {later - earlier for earlier, later in pairwise(moments)}
    assert steps == {100}


def test_a_machine_that_was_set_right_goes_by_itself_again() -> None:
    machine = Machine(120)
    machine.hears_the_store()
    machine.off_ns = 0
    machine.hears_the_store()
    assert machine.error_s == 0


@pytest.mark.parametrize("nonsense", ["", "yesterday", "Mon, 99 Nov 2026 25:61:00 GMT"])
def test_what_is_no_date_says_nothing(nonsense: str) -> None:
    machine = Machine(0)
    machine.clock.hear(nonsense)
    assert machine.error_s == 0
