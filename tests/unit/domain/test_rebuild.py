"""Rebuilding: history tells of every delivery what the work list said of it, whatever had happened."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import gate as gates
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.delivery import (
    Again,
    Arrived,
    Attempt,
    Created,
    Dead,
    Ended,
    Held,
    HistoryRow,
    Lane,
    Owed,
    Step,
    Timing,
    after_send,
    after_unknown,
    given_up,
)
from chalicelib.domain.endpoint import ORDERED_LANE, REPLAY_LANE, EndpointState, Limits, Ordering
from chalicelib.domain.gate import SECOND, Breaker, HoldReason, Rules, Spell
from chalicelib.domain.outcome import DeathReason, Reply, judge
from chalicelib.domain.rebuild import Holds, gate_again, holds_of, owed_again
from tests.unit.domain.examples import RECEIVED_MS, endpoint, owed

RULES = Rules()
NOW_US = (RECEIVED_MS + 3_600_000) * 1000
HOUR_US = 3_600 * SECOND
NEVER_HELD = Holds((), 0, NOW_US)
lanes = st.sampled_from(["0", "3", ORDERED_LANE, REPLAY_LANE])
words = st.lists(st.sampled_from([200, 404, 500, 503, "unknown"]), max_size=14)


def begun(lane: str, generation: int) -> tuple[Owed, Created]:
    """Begin a delivery in a lane."""
    sequence = 0 if lane.isdigit() else 7
    row = replace(owed(), generation=generation, sequence=sequence)
    row = replace(row, lane=Lane(row.lane.tenant, row.lane.endpoint_id, lane))
    created = Created(row.delivery_id, generation, row.event_id, "order.paid", lane, row.ready_ms, sequence)
    return row, created


def after(row: Owed, word: int | str, at_ms: int, held_ms: int) -> Step:
    """Say what becomes of a row after an answer, or after a death in the middle of it."""
    if isinstance(word, str):
        return after_unknown(row, at_ms, held_ms)
    reply = Reply(status=word)
    verdict = judge(reply, datetime.fromtimestamp(at_ms / 1000, UTC))
    return after_send(
        row, reply, verdict, RetryProfile.DEFAULT, Timing(at_ms, at_ms + 5, 0.5, Held(0, None, held_ms))
    )


@given(lane=lanes, generation=st.integers(0, 3), told=words)
def test_history_tells_what_is_owed_after_anything_that_can_happen(
    lane: str, generation: int, told: list[int | str]
) -> None:
    row, created = begun(lane, generation)
    rows: list[HistoryRow] = [created]
    wanted: Owed | None = row
    for word in told:
        assert wanted is not None
        step = after(wanted, word, wanted.ready_ms + 20, held_ms=0)
        rows += [step.attempt] if step.attempt else []
        rows += [step.ended] if isinstance(step, Dead) else []
        wanted = step.owed if isinstance(step, Again) else None
        assert owed_again((row.lane.tenant, row.lane.endpoint_id), rows, NEVER_HELD) == wanted
        if wanted is None:
            return
    assert owed_again((row.lane.tenant, row.lane.endpoint_id), rows, NEVER_HELD) == wanted


def test_nothing_is_owed_of_what_has_ended_or_was_never_created() -> None:
    row, created = begun("0", 0)
    owner = (row.lane.tenant, row.lane.endpoint_id)
    ended = given_up(row, DeathReason.SKIPPED, RECEIVED_MS).ended
    arrived = after(row, 200, RECEIVED_MS, 0)
    failed = after(row, 500, RECEIVED_MS, 0)
    assert isinstance(arrived, Arrived)
    assert isinstance(failed, Again)
    histories: list[list[Created | Attempt | Ended]] = [
        [created, ended],
        [created, arrived.attempt],
        [failed.attempt],
        [ended],
    ]
    assert [owed_again(owner, rows, NEVER_HELD) for rows in histories] == [None] * 4


def test_what_was_held_before_a_first_attempt_is_told_from_holds() -> None:
    row, created = begun("0", 0)
    first_us = row.ready_ms * 1000 + 20_000
    spells = [
        Spell(HoldReason.RATE_LIMIT, first_us - 9 * SECOND, first_us - 4 * SECOND),
        Spell(HoldReason.BREAKER_OPEN, first_us - SECOND, first_us + 3 * SECOND),
    ]
    holds = holds_of(spells, None, endpoint(), NOW_US)
    failed = after(row, 500, row.ready_ms + 20, 0)
    assert isinstance(failed, Again)
    found = owed_again((row.lane.tenant, row.lane.endpoint_id), [created, failed.attempt], holds)
    assert found is not None
    assert (holds.total, found.held_before_ms) == (9 * SECOND, 6_000)


def test_times_of_several_holds_at_once_count_once() -> None:
    spells = [
        Spell(HoldReason.BREAKER_OPEN, NOW_US - 10 * SECOND, NOW_US - 4 * SECOND),
        Spell(HoldReason.DISABLED, NOW_US - 8 * SECOND, NOW_US - 6 * SECOND),
        Spell(HoldReason.DISABLED, NOW_US - 5 * SECOND, NOW_US - 2 * SECOND),
    ]
    assert holds_of(spells, None, endpoint(), NOW_US).total == 8 * SECOND


@given(
    moments=st.lists(st.integers(0, 1_000), max_size=12),
    asked=st.integers(0, 1_000),
)
def test_held_before_and_held_since_are_what_was_held_in_all(moments: list[int], asked: int) -> None:
    edges = sorted(moments)
    pairs = zip(edges[::2], edges[1::2], strict=False)
    spells = [Spell(HoldReason.RATE_LIMIT, since * 1000, until * 1000) for since, until in pairs]
    holds = holds_of(spells, None, endpoint(), 1_000_000)
    before = sum(max(0, min(each.until, asked * 1000) - each.since) for each in spells)
    assert holds.before_ms(asked) == before // 1000


@pytest.mark.parametrize("state", [EndpointState.ENABLED, EndpointState.DELETED])
def test_a_gate_made_again_is_closed_full_and_on_its_ramp(state: EndpointState) -> None:
    of = endpoint(state=state, limits=Limits(5, 7, 25), state_ms=RECEIVED_MS)
    spell = Spell(HoldReason.RATE_LIMIT, NOW_US - 9 * SECOND, NOW_US - 2 * SECOND)
    gate = gates.read(gate_again(of, {"0", "4"}, holds_of([spell], None, of, NOW_US), RULES))
    assert (gate.state, gate.slots, gate.cap, gate.rate, gate.burst) == (Breaker.CLOSED, 25, 25, 5, 7)
    assert (gate.enabled, gate.tat, gate.ramp_from, gate.lanes, gate.ordered) == (True, 0, NOW_US, 5, False)
    assert gates.held_sum(gate, NOW_US) == gates.held_sum(gate, NOW_US + HOUR_US) == 7 * SECOND
    assert gates.current_hold(gate, NOW_US) is None
    assert gates.not_noted(gate, NOW_US) == ()


def test_a_gate_made_again_knows_that_its_owner_switched_it_off() -> None:
    of = endpoint(state=EndpointState.DISABLED, ordering=Ordering.ENDPOINT, state_ms=RECEIVED_MS)
    holds = holds_of([], None, of, NOW_US)
    gate = gates.read(gate_again(of, {ORDERED_LANE, REPLAY_LANE}, holds, RULES))
    assert (gate.enabled, gate.off_from, gate.ordered, gate.lanes) == (False, RECEIVED_MS * 1000, True, 1)
    assert gates.held_sum(gate, NOW_US) == holds.total == NOW_US - RECEIVED_MS * 1000
    assert gates.held_sum(gate, NOW_US + HOUR_US) == holds.total + HOUR_US


def test_a_gate_that_is_there_says_itself_how_long_it_was_held() -> None:
    of = endpoint()
    record = gates.new_record(10, 20, 8, rules=RULES) | {"held_sum": 99 * SECOND}
    spell = Spell(HoldReason.RATE_LIMIT, NOW_US - 9 * SECOND, NOW_US - 2 * SECOND)
    holds = holds_of([spell], gates.read(record), of, NOW_US)
    assert (holds.total, holds.before_ms(NOW_US // 1000 - 9_000)) == (99 * SECOND, 92_000)
