"""The work list and the record of what was tried: peek, re-read, insert, close, move."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.adapters.aws_limits.dynamodb_values import item_size
from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.counting import DynamoCounters
from chalicelib.adapters.dynamodb.render import attributes
from chalicelib.application.ports import Changed
from chalicelib.domain import counts, metrics
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change
from chalicelib.domain.delivery import Again, Dead, Owed, after_unknown, given_up, owed_of_key
from chalicelib.domain.endpoint import Endpoint, Limits
from chalicelib.domain.gate import HoldReason, Spell
from chalicelib.domain.outcome import DeathReason
from tests.contract.given import (
    NOW_MS,
    NOW_US,
    TENANT,
    Stores,
    capture,
    endpoint,
    event,
    failure,
    lane_of,
    posted,
    stores_over,
    success,
    uncounted,
    without_moto,
)
from tests.fakes.faults import Killed
from tests.fakes.memory_tables import MemoryTables

Calls = Callable[[], int]


def owed_now(stores: Stores, of: Endpoint, lane: str = "0") -> list[Owed]:
    return stores.work.peek(lane_of(of, lane), 100)


def history(stores: Stores, row: Owed) -> list[str]:
    found = stores.reading.delivery(row.lane.tenant, row.lane.endpoint_id, row.delivery_id, NOW_US)
    assert found is not None
    return [type(each).__name__ for each in found.rows]


def held(stores: Stores, of: Endpoint) -> list[Spell]:
    found = stores.reading.health(of.tenant, of.id, 100, NOW_MS)
    assert found is not None
    return list(found.holds)


def again(row: Owed, wait_ms: int = 5_000) -> Again:
    ready_ms = row.ready_ms + wait_ms
    moved = replace(row, ready_ms=ready_ms, made=row.made + 1, counted=row.counted + 1, first_ms=NOW_MS)
    return Again(replace(failure(row), next_ms=ready_ms), moved)


class TestPeek:
    def test_the_row_that_is_ready_first_comes_first(self, stores: Stores) -> None:
        of = endpoint()
        late = posted(stores, 1, of, NOW_MS + 2_000)
        early = posted(stores, 2, of, NOW_MS - 1)
        middle = posted(stores, 3, of, NOW_MS)
        assert stores.work.peek(lane_of(of), 11) == [early, middle, late]
        assert stores.work.peek(lane_of(of), 2) == [early, middle]

    def test_rows_of_other_lanes_stay_out(self, stores: Stores) -> None:
        of, other = endpoint(1, limits=Limits(10, 20, 100)), endpoint(2)
        owed = [posted(stores, number, of) for number in range(6)]
        posted(stores, 9, other)
        lanes = {row.lane.number for row in owed}
        assert len(lanes) > 1
        for lane in lanes:
            expected = {row.delivery_id for row in owed if row.lane.number == lane}
            assert {row.delivery_id for row in owed_now(stores, of, lane)} == expected
        assert owed_now(stores, of, "99") == []


class TestReread:
    def test_all_that_a_send_needs_comes_in_one_call(self, stores: Stores, calls: Calls) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        first, second = posted(stores, 1, of), posted(stores, 2, of)
        stores.work.insert([(second, success(second))])
        calls()
        found = stores.work.reread([first, second])
        assert calls() == 1
        assert found.owed == {first.key: first, second.key: second}
        assert found.attempts == {second.key: success(second)}
        assert {at: each.event for at, each in found.events.items()} == {
            (TENANT, first.event_id): event(1),
            (TENANT, second.event_id): event(2),
        }
        assert found.endpoints == {(TENANT, of.id): of}

    def test_what_is_gone_is_left_out(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        stores.work.close(uncounted(row), [])
        found = stores.work.reread([row])
        assert (found.owed, found.attempts, found.endpoints) == ({}, {}, {})

    def test_a_row_that_moved_on_is_told_as_it_is(self, stores: Stores) -> None:
        row = posted(stores, 1, endpoint())
        stores.work.move([(row, again(row, 0))])
        (found,) = stores.work.reread([row]).owed.values()
        assert (found.made, found.counted) == (1, 1)

    def test_a_row_known_by_its_key_alone_gets_its_row_and_attempt(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        row = posted(stores, 1, of)
        named = owed_of_key(row.lane, row.key)
        stores.work.insert([(row, success(row))])
        found = stores.work.reread([named])
        assert (found.owed, found.attempts) == ({named.key: row}, {named.key: success(row)})
        assert (found.events, found.endpoints) == ({}, {})
        assert stores.work.reread([]).owed == {}


class TestInsert:
    def test_an_attempt_is_there_once(self, stores: Stores) -> None:
        of = endpoint()
        first, second = posted(stores, 1, of), posted(stores, 2, of)
        assert stores.work.insert([(first, success(first))]) == [True]
        late = replace(success(first, NOW_MS + 1), status=500)
        assert stores.work.insert([(second, success(second)), (first, late)]) == [True, False]
        found = stores.work.reread([first]).attempts
        assert found == {first.key: success(first)}

    @without_moto
    def test_one_with_all_its_times_is_told_as_it_was_and_costs_one_write_unit(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        held = replace(
            success(row), held_for=HoldReason.BREAKER_OPEN, held_ms=200_000_000, processing_ms=12_345
        )
        sent = replace(held, queue_ms=259_200_000, connect_ms=4_999, tls_ms=3_999, first_byte_ms=9_998)
        told = replace(sent, total_ms=10_001, response=b"x" * 512)
        assert stores.work.insert([(row, told)]) == [True]
        found = stores.reading.delivery(TENANT, of.id, row.delivery_id, NOW_US)
        assert found is not None
        assert found.rows[-1] == told
        at = keys.attempt(TENANT, of.id, (row.delivery_id, 0, 1))
        assert item_size(attributes(stores.tables.get([at])[at])) < 1_024

    def test_f116_two_hundred_attempts_are_two_hundred_rows(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        tries = [replace(row, made=number) for number in range(200)]
        attempts = [replace(failure(each), response=b"\xff" * 2_048) for each in tries]
        assert stores.work.insert(list(zip(tries, attempts, strict=True))) == [True] * 200
        found = stores.reading.delivery(TENANT, of.id, row.delivery_id, NOW_US)
        assert found is not None
        assert found.rows[1:] == tuple(attempts)

    def test_holds_and_attempts_go_in_together_in_one_call(self, stores: Stores, calls: Calls) -> None:
        first, second = endpoint(1), endpoint(2)
        row = posted(stores, 1, first)
        for each in (first, second):
            stores.endpoints.create(each)
        past = Spell(HoldReason.RATE_LIMIT, NOW_US - 9, NOW_US - 5)
        opened = Spell(HoldReason.BREAKER_OPEN, NOW_US - 5, NOW_US)
        calls()
        noting = [((TENANT, first.id), past), ((TENANT, second.id), past), ((TENANT, first.id), opened)]
        assert stores.work.insert([(row, success(row))], noting) == [True]
        assert calls() == 1
        assert stores.work.reread([row]).attempts == {row.key: success(row)}
        assert (held(stores, first), held(stores, second)) == ([opened, past], [past])

    def test_a_hold_that_is_there_stays_as_it_is_and_is_in_no_attempts_way(self, stores: Stores) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        rows = [posted(stores, number, of) for number in range(2)]
        past = Spell(HoldReason.RAMP, NOW_US - 9, NOW_US - 5)
        assert stores.work.insert([], [((TENANT, of.id), past)]) == []
        late = replace(past, until=NOW_US)
        for row in rows:
            assert stores.work.insert([(row, success(row))], [((TENANT, of.id), late)]) == [True]
        assert held(stores, of) == [past]
        assert stores.work.insert([(rows[0], success(rows[0]))], [((TENANT, of.id), late)]) == [False]
        assert stores.work.insert([], []) == []

    def test_twenty_five_are_one_call_whatever_they_are(self, stores: Stores, calls: Calls) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        attempts = [(each, success(each)) for each in (replace(row, made=number) for number in range(20))]
        spells = [Spell(HoldReason.RATE_LIMIT, NOW_US + place, NOW_US + 10) for place in range(6)]
        calls()
        assert stores.work.insert(attempts, [((TENANT, of.id), each) for each in spells[:5]]) == [True] * 20
        assert calls() == 1
        again = stores.work.insert(attempts, [((TENANT, of.id), each) for each in spells])
        assert (again, calls()) == ([False] * 20, 2)


class TestClose:
    def test_rows_go_and_gates_change_in_one_call(self, stores: Stores, calls: Calls) -> None:
        first, second = endpoint(1), endpoint(2)
        for each in (first, second):
            stores.endpoints.create(each)
        rows = [posted(stores, number, first) for number in range(3)]
        changes = [
            ((TENANT, first.id), gates.hold_until(NOW_US)),
            ((TENANT, "ep_gone"), gates.hold_until(NOW_US)),
            ((TENANT, second.id), Change((), {}, {"slots": -1})),
        ]
        calls()
        answers, _ = stores.work.close(uncounted(*rows[:2]), changes)
        assert calls() == 1
        assert [answer.made for answer in answers] == [True, False, True]
        assert answers[1] == Changed(made=False, gate=None)
        assert answers[2].gate is not None
        assert answers[2].gate.slots == second.limits.max_concurrency - 1
        assert owed_now(stores, first) == rows[2:]

    def test_a_row_that_is_gone_is_no_error(self, stores: Stores) -> None:
        row = posted(stores, 1, endpoint())
        assert stores.work.close(uncounted(row), []) == ([], {})
        assert stores.work.close(uncounted(row), []) == ([], {})
        assert stores.work.close([], []) == ([], {})

    def test_what_attempts_count_for_is_counted_in_the_calls_that_remove_their_rows(
        self, stores: Stores, calls: Calls
    ) -> None:
        of = endpoint()
        stores.endpoints.create(of)
        arrived = counts.counted(metrics.ATTEMPTS, "success")
        tripped = counts.counted(metrics.BREAKER_TRIPS)
        rows = [posted(stores, number, of) for number in range(30)]
        stores.work.close([(rows[0], arrived)], [], tripped)
        changes = [((TENANT, of.id), gates.hold_until(NOW_US))]
        calls()
        answers, left = stores.work.close([(row, arrived) for row in rows[1:]], changes, tripped)
        assert calls() == 2
        assert ([each.made for each in answers], left) == ([True], {})
        found = DynamoCounters(stores.tables, 1).read()
        told = {cell: count for cell, count in found.items() if count}
        assert told == {(metrics.ATTEMPTS.name, "success"): 30, (metrics.BREAKER_TRIPS.name, ""): 2}
        assert owed_now(stores, of) == []

    def test_each_call_counts_what_it_removes(self) -> None:
        """Died between the two calls of a large wave."""
        tables = MemoryTables()
        stores = stores_over(tables)
        of = endpoint()
        stores.endpoints.create(of)
        arrived = counts.counted(metrics.ATTEMPTS, "success")
        rows = [posted(stores, number, of) for number in range(31)]
        stores.work.close([(rows[0], arrived)], [])
        tables.faults.steps.clear()
        tables.faults.before = lambda _: tables.faults.die() if len(tables.faults.steps) > 1 else None
        with pytest.raises(Killed):
            stores.work.close([(row, arrived) for row in rows[1:]], [], counts.counted(metrics.BREAKER_TRIPS))
        tables.faults.clear()
        found = DynamoCounters(tables, 1).read()
        told = {cell: count for cell, count in found.items() if count}
        assert told == {(metrics.ATTEMPTS.name, "success"): 31 - len(owed_now(stores, of))}


class TestMove:
    def test_a_retry_is_recorded_and_waits_for_its_time(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        step = again(row)
        assert stores.work.move([(row, step)]) == [True]
        assert owed_now(stores, of) == [step.owed]
        assert history(stores, row) == ["Created", "Attempt"]

    def test_an_unknown_attempt_leaves_the_row_in_its_place(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        step = after_unknown(row, NOW_MS)
        assert isinstance(step, Again)
        assert stores.work.move([(row, step)]) == [True]
        assert owed_now(stores, of) == [step.owed]
        assert (step.owed.made, step.owed.ready_ms) == (1, row.ready_ms)
        assert history(stores, row) == ["Created", "Attempt"]

    def test_a_death_ends_the_row_and_leaves_a_dead_letter(self, stores: Stores) -> None:
        of = endpoint()
        first, second = posted(stores, 1, of), posted(stores, 2, of)
        tried = Dead(failure(first), given_up(first, DeathReason.PERMANENT_FAILURE, NOW_MS).ended)
        untried = given_up(second, DeathReason.UNSUBSCRIBED, NOW_MS)
        assert stores.work.move([(first, tried), (second, untried)]) == [True, True]
        assert owed_now(stores, of) == []
        assert history(stores, first) == ["Created", "Attempt", "Ended"]
        assert history(stores, second) == ["Created", "Ended"]
        letters = {record["sk"]: record["reason"] for record in stores.tables.walk(keys.DEAD_LETTERS)}
        assert letters == {
            f"{first.delivery_id}#0000": "permanent_failure",
            f"{second.delivery_id}#0000": "unsubscribed",
        }

    def test_of_two_that_move_a_row_the_second_changes_nothing(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        assert stores.work.move([(row, again(row))]) == [True]
        late: list[Again | Dead] = [
            again(row, 60_000),
            given_up(row, DeathReason.EXPIRED, NOW_MS),
            after_unknown(row, NOW_MS),
        ]
        assert stores.work.move([(row, step) for step in late]) == [False, False, False]
        assert owed_now(stores, of) == [again(row).owed]
        assert history(stores, row) == ["Created", "Attempt"]

    def test_an_attempt_that_is_in_already_stops_the_move(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        stores.work.insert([(row, success(row))])
        assert stores.work.move([(row, again(row)), (row, after_unknown(row, NOW_MS))]) == [False, False]
        assert owed_now(stores, of) == [row]

    def test_a_row_in_its_place_with_another_count_is_another_race(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        moved = replace(again(row, 0), owed=replace(row, made=1))
        assert stores.work.move([(row, moved)]) == [True]
        later = replace(row, counted=3)
        assert stores.work.move([(later, given_up(later, DeathReason.SKIPPED, NOW_MS))]) == [False]
        assert owed_now(stores, of) == [moved.owed]

    def test_a_row_that_is_gone_is_never_brought_back(self, stores: Stores) -> None:
        of = endpoint()
        row = posted(stores, 1, of)
        stores.work.close(uncounted(row), [])
        steps: list[Again | Dead] = [
            again(row),
            after_unknown(row, NOW_MS),
            given_up(row, DeathReason.EXPIRED, NOW_MS),
        ]
        assert stores.work.move([(row, step) for step in steps]) == [False, False, False]
        assert owed_now(stores, of) == []
        assert history(stores, row) == ["Created"]

    def test_one_lost_race_harms_no_other_move(self, stores: Stores) -> None:
        of = endpoint()
        first, second = posted(stores, 1, of), posted(stores, 2, of)
        stores.work.close(uncounted(first), [])
        assert stores.work.move([(first, again(first)), (second, again(second))]) == [False, True]
        assert owed_now(stores, of) == [again(second).owed]


def test_a_delivery_planned_twice_is_written_once(stores: Stores) -> None:
    of = endpoint()
    row = posted(stores, 1, of)
    assert capture(event(1), [of]).owing[0].owed == row
    assert owed_now(stores, of) == [row]
