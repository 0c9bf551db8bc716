"""What signs of the installation mean: ages as of now, and whether Relay is ready."""

import pytest

from chalicelib.domain import metrics
from chalicelib.domain.gauging import LATE_MS, STALE_MS, Failing, Run, Seen, Signs, failing, reading
from chalicelib.domain.metrics import Schedule

NOW_MS = 1_700_000_000_000
QUEUES = ("shard-0.fifo", "shard-1.fifo")
FRESH = dict.fromkeys(QUEUES, NOW_MS)
OLDEST, CANARY = (metrics.OLDEST_PENDING.name, ""), (metrics.CANARY_AGE.name, "")


def seen(age_ms: int = 0, oldest_ms: int | None = None) -> Seen:
    gauges = {} if oldest_ms is None else {OLDEST: oldest_ms / 1000}
    return Seen(NOW_MS - age_ms, gauges)


def test_a_new_installation_is_ready_once_its_canaries_came_through_and_it_was_measured() -> None:
    assert failing(Signs(), NOW_MS, QUEUES) == (Failing.CANARY, Failing.LATENESS)
    assert failing(Signs(1, seen()), NOW_MS, QUEUES) == (Failing.CANARY,)
    assert failing(Signs(1, seen(), FRESH), NOW_MS, QUEUES) == ()


@pytest.mark.parametrize("age_ms, fails", [(STALE_MS, False), (STALE_MS + 1, True)])
def test_one_shard_whose_canary_is_stale_is_enough(age_ms: int, fails: bool) -> None:  # noqa: FBT001 - a parameter
    signs = Signs(1, seen(), FRESH | {QUEUES[1]: NOW_MS - age_ms})
    assert (failing(signs, NOW_MS, QUEUES) == (Failing.CANARY,)) is fails
    assert failing(signs, NOW_MS, QUEUES[:1]) == ()


@pytest.mark.parametrize("oldest_ms, late", [(None, False), (LATE_MS, False), (LATE_MS + 1, True)])
def test_a_delivery_due_for_over_a_minute_is_late(oldest_ms: int | None, late: bool) -> None:  # noqa: FBT001 - a parameter
    signs = Signs(1, seen(oldest_ms=oldest_ms), FRESH)
    assert (failing(signs, NOW_MS, QUEUES) == (Failing.LATENESS,)) is late


@pytest.mark.parametrize("age_ms, late", [(STALE_MS, False), (STALE_MS + 1, True)])
def test_what_nobody_measured_for_minutes_may_be_late(age_ms: int, late: bool) -> None:  # noqa: FBT001 - a parameter
    assert (failing(Signs(1, seen(age_ms), FRESH), NOW_MS, QUEUES) == (Failing.LATENESS,)) is late


def test_ages_grow_while_nobody_reports() -> None:
    signs = Signs(1, seen(oldest_ms=5_000), FRESH, {Schedule.NOTIFY: Run(NOW_MS)})
    first, later = (reading(signs, NOW_MS + each, QUEUES) for each in (0, 90_000))
    for age in (CANARY, (metrics.READING_AGE.name, ""), (metrics.SCHEDULE_AGE.name, Schedule.NOTIFY)):
        assert (first[age], later[age]) == (0, 90)
    assert first[OLDEST] == later[OLDEST] == 5


def test_what_never_happened_is_as_old_as_the_installation() -> None:
    told = reading(Signs(NOW_MS - 60_000, seen(), {QUEUES[0]: NOW_MS}), NOW_MS, QUEUES)
    assert told[CANARY] == 60
    assert {told[metrics.SCHEDULE_AGE.name, each] for each in Schedule} == {60}


def test_of_what_was_never_measured_nothing_is_told() -> None:
    assert reading(Signs(), NOW_MS, QUEUES) == {}


def test_what_is_overdue_is_told() -> None:
    signs = Signs(1, seen(), FRESH, {Schedule.RETENTION: Run(NOW_MS, overdue=3)})
    assert reading(signs, NOW_MS, QUEUES)[metrics.OVERDUE.name, ""] == 3
