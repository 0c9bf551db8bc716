"""Hours of an endpoint: handed on once, read newest first together with what the gate still counts."""

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Merge
from chalicelib.domain.change import Change
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import HoldReason, Spell, Tally
from chalicelib.domain.retention import stats_until_s
from tests.contract.given import NOW_MS, NOW_US, TENANT, Stores, endpoint, posted, success

ALL = 9_999_999
HOUR = NOW_MS // 3_600_000


def created(stores: Stores) -> Endpoint:
    made = endpoint()
    stores.endpoints.create(made)
    return made


def noted(stores: Stores, of: Endpoint, *tallies: Tally) -> None:
    stores.work.insert([], [((TENANT, of.id), each) for each in tallies])


def hours(stores: Stores, of: Endpoint, before: int = ALL, limit: int = 10) -> list[Tally]:
    return stores.reading.hours(TENANT, of.id, before, limit, NOW_MS)


def test_an_hour_is_written_once_beside_attempts_and_holds(stores: Stores) -> None:
    made = created(stores)
    owed = posted(stores, 1, made)
    held = {HoldReason.RATE_LIMIT: 12_000, HoldReason.BREAKER_OPEN: 7}
    tally = Tally(HOUR, 5, 2, 1, {0: 1, 17: 4}, {3: 5}, held)
    spell = Spell(HoldReason.RATE_LIMIT, NOW_US, NOW_US + 1)
    notes: list[tuple[tuple[str, str], Spell | Tally]] = [
        ((TENANT, made.id), spell),
        ((TENANT, made.id), tally),
    ]
    assert stores.work.insert([(owed, success(owed))], notes) == [True]
    noted(stores, made, Tally(HOUR, 6, 3, 2))
    assert hours(stores, made) == [tally]
    at = keys.stats(TENANT, made.id, HOUR)
    assert stores.tables.get([at])[at]["ttl"] == stats_until_s(HOUR) > NOW_MS // 1000 + 390 * 86_400


def test_hours_come_newest_first_a_page_at_a_time(stores: Stores) -> None:
    made = created(stores)
    some = [Tally(HOUR - n, n + 1, 0, 0) for n in range(5)]
    noted(stores, made, *some)
    assert hours(stores, made) == some
    assert hours(stores, made, limit=2) == some[:2]
    assert hours(stores, made, before=HOUR - 1, limit=2) == some[2:4]
    assert hours(stores, made, before=HOUR - 4) == []


def test_what_the_gate_still_counts_is_among_them_and_never_twice(stores: Stores) -> None:
    made = created(stores)
    noted(stores, made, Tally(HOUR - 2, 1, 0, 0))
    running = {"hour": HOUR, "hour_base": [10, 2, 1], "sent": 17, "failed": 5, "timeouts": 2}
    past = {"hour_past": Tally(HOUR - 1, 9, 2, 1, {5: 9}, {6: 9}, {HoldReason.RAMP: 1}).record()}
    running |= {"C5": 7, "C9": 0, "P0": 7}
    (changed,) = stores.gates.change([((TENANT, made.id), Change((), {**running, **past}, {}))])
    assert changed.made
    handed_on = Tally(HOUR - 1, 9, 2, 1, {5: 9}, {6: 9}, {HoldReason.RAMP: 1})
    expected = [Tally(HOUR, 7, 3, 1, {5: 7}, {0: 7}), handed_on, Tally(HOUR - 2, 1, 0, 0)]
    assert hours(stores, made) == expected
    assert hours(stores, made, limit=2) == expected[:2]
    assert hours(stores, made, before=HOUR) == expected[1:]
    noted(stores, made, handed_on)
    assert hours(stores, made) == expected


def test_an_hour_past_its_thirteen_months_is_absent(stores: Stores) -> None:
    made = created(stores)
    old = Tally(HOUR - 24 * 398, 1, 0, 0)
    noted(stores, made, old, Tally(HOUR, 1, 0, 0))
    assert [each.hour for each in hours(stores, made)] == [HOUR]


def test_an_endpoint_without_a_gate_still_has_its_hours(stores: Stores) -> None:
    made = endpoint(1)
    stores.tables.together(
        [Merge(keys.stats(TENANT, made.id, HOUR), {"attempts": 2, "failed": 1, "timed_out": 0, "ttl": 2**32})]
    )
    assert hours(stores, made) == [Tally(HOUR, 2, 1, 0)]
    assert hours(stores, endpoint(2)) == []
