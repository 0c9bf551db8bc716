"""The bar of a sustained minute: fast enough with nothing lost, or held up by what is not Relay."""

from typing import Any

import pytest

from tests.bench.saturate import cpu_by_part
from tests.bench.stack import Costs
from tests.bench.sustained import holds

FAST = {"lost": 0, "p99_ms": 600.0, "deliveries_per_s": 420.0, "cpu_share_of_others": 0.45}


@pytest.mark.parametrize(
    "changed, reached",
    [
        ({}, True),
        ({"lost": 1}, False),
        ({"deliveries_per_s": 399.0}, False),
        ({"p99_ms": 1_000.0}, False),
        ({"p99_ms": None}, False),
        ({"deliveries_per_s": 300.0, "cpu_share_of_others": 0.6}, True),
        ({"deliveries_per_s": 300.0, "cpu_share_of_others": 0.6, "lost": 1}, False),
    ],
)
def test_the_bar_is_speed_or_the_cpu_of_others_and_never_a_loss(
    changed: dict[str, Any], *, reached: bool
) -> None:
    assert holds(FAST | changed) is reached


def test_the_runtime_s_own_part_of_the_workers_is_told_apart_from_the_functions() -> None:
    costs = Costs({"api": 1.0, "workers": 5.0, "emulator": 2.0}, functions_cpu_s=3.0)
    assert cpu_by_part(costs, 0.5) == {
        "api": 1.0,
        "emulator": 2.0,
        "functions": 3.0,
        "event source": 2.0,
        "producer": 0.5,
    }


def test_what_was_used_in_between_is_the_difference() -> None:
    earlier = Costs({"api": 1.0}, admitted=2, granted=4, log_bytes=10, functions_cpu_s=1.0)
    later = Costs({"api": 3.0}, admitted=5, granted=9, log_bytes=30, functions_cpu_s=4.0)
    assert later.since(earlier) == Costs(
        {"api": 2.0}, admitted=3, granted=5, log_bytes=20, functions_cpu_s=3.0
    )
