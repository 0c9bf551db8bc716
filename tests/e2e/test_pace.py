"""Pace: what an endpoint can take is used, and never exceeded, with the receiver's log as witness."""

from collections.abc import Iterator, Sequence

import pytest

from tests.e2e.customer import Customer, Record
from tests.e2e.stack import RelayStack

NEVER = "0.0001"
RATES = {10: 20, 25: 60, 50: 20, 100: 20}
"""Each rate a second, and for how many seconds its backlog lasts."""
CAP = 8


@pytest.fixture(scope="module")
def customer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    """Give a customer of a stack whose schedules never run."""
    state = tmp_path_factory.mktemp("pace")
    with (
        RelayStack(state, "--fast-emulator", "--schedule-speed", NEVER) as stack,
        Customer(stack, patience_s=90) as customer,
    ):
        yield customer


def arrivals_s(received: Sequence[Record]) -> list[float]:
    return sorted(each["received_at"] / 1000 for each in received)


def most_in_a_window(moments: Sequence[float], burst: float, rate: float) -> float:
    """Give by how much any window holds more than burst + rate x time; at most 0 when none does."""
    worst, lowest = float("-inf"), float("inf")
    for count, moment in enumerate(moments):
        lowest = min(lowest, count - rate * moment)
        worst = max(worst, count + 1 - rate * moment - lowest - burst)
    return worst


def test_a_backlog_is_fed_at_its_rate_and_never_faster_with_no_schedule_running(customer: Customer) -> None:
    hooks = {
        rate: customer.hook(f"/slow/{rate}?ms=20", rate_per_second=rate, burst=2 * rate, max_concurrency=CAP)
        for rate in RATES
    }
    for rate, hook in hooks.items():
        customer.post_many(hook.type, rate * (RATES[rate] + 2))
    for rate, watched_s in RATES.items():
        path = f"/slow/{rate}"
        moments = arrivals_s(customer.arrived(rate * (watched_s + 2), path=path))
        assert most_in_a_window(moments, 2 * rate + CAP, rate) <= 0, f"{rate}/s is exceeded"
        rest = moments[2 * rate :]
        fed = (len(rest) - 1) / (rest[-1] - rest[0])
        assert fed >= 0.95 * rate, f"{rate}/s gets {fed:.1f}/s"
