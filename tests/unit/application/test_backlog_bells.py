"""A backlog behind slow receivers is not rung for again and again; `make bench-hold` has it at full size."""

import pytest

from tests.unit.application.backlog import work_off


@pytest.mark.parametrize("endpoints, rung_late", [(10, 0), (20, 0)])
def test_what_is_worked_off_slowly_costs_at_most_a_bell_and_a_twentieth_for_each_attempt(
    endpoints: int, rung_late: int
) -> None:
    """Also with every bell of ingest counted; reconcile adds none while lanes are visited within a minute."""
    backlog = work_off(endpoints, 1_000)
    assert backlog.attempts == 1_000
    assert backlog.bells_per_attempt <= 1.05
    assert backlog.rung_late == rung_late
