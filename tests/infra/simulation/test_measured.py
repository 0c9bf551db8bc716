"""The simulation finds what was measured on one machine, and what arithmetic says of one gate."""

from tests.simulation.measured import CASES, one_gate, simulate
from tests.simulation.sweeping import sweep_s


def test_deliveries_wait_for_their_gate_as_long_as_arithmetic_says() -> None:
    paced = one_gate()
    assert paced.early == 0
    assert paced.sent >= paced.could * 0.95
    assert abs(paced.found_mean_ms / paced.expected_mean_ms - 1) <= 0.02
    assert paced.late_at_most_ms <= 2_000


def test_a_busy_case_of_the_load_test_comes_out_about_as_it_was_measured() -> None:
    case = CASES["8 endpoints, in tens"]
    found = simulate(case)
    assert abs(found["write units a delivery"] / case.measured["write units a delivery"] - 1) <= 0.05
    assert abs(found["rows a visit"] / case.measured["rows a visit"] - 1) <= 0.35
    assert abs(found["calls a delivery"] / case.measured["calls a delivery"] - 1) <= 0.5


def test_a_sweep_looks_at_forty_thousand_within_its_minute_and_would_not_one_by_one() -> None:
    assert sweep_s(2_000) * 20 < 60
    assert sweep_s(2_000, at_once=1) * 20 > 60
