"""A test of an endpoint: a sample to it alone, tried once, and never held against anybody."""

import json
from dataclasses import replace

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.application.questions import Delivery
from chalicelib.application.try_endpoint import PAUSES_MS, WAIT_MS, TryEndpoint
from chalicelib.domain.delivery import Status
from chalicelib.domain.endpoint import Endpoint, EndpointState, Limits, Ordering
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.event import TEST_TYPE, valid_pattern
from chalicelib.domain.gate import Breaker, HoldReason
from chalicelib.domain.outcome import DeathReason, Fault, Reply
from tests.fakes.fixed_clock import BusyPatience
from tests.fakes.scripted_sender import DIES, Answer, Script, in_turn, status
from tests.unit.application.invariants import check
from tests.unit.application.world import (
    BY,
    FAILS,
    MINUTE_MS,
    OK,
    RULES,
    TAKE_OVER_MS,
    TENANT,
    World,
    posted,
)


def trying(world: World, patience: BusyPatience | None = None) -> TryEndpoint:
    """Give the use case as a process has it, which waits while the queues are worked off."""
    patience = patience or BusyPatience(world.clock, lambda: work_off(world))
    return replace(world.usual.try_endpoint, patience=patience)


def work_off(world: World) -> None:
    """Do what the queues ask for, with what the use case has rung for so far."""
    world.run(lambda _: None, world.usual)
    world.work_off()


def tried(world: World, endpoint: Endpoint, script: Script | Answer = OK) -> Delivery:
    """Send a test that is answered so."""
    world.sender.script = (lambda _: script) if isinstance(script, Answer) else script
    world.clock.advance(ms=1)
    found = world.run(lambda _: trying(world).run(endpoint.tenant, endpoint.id), world.usual)
    assert found is not None
    return found


def switch(world: World, endpoint: Endpoint, state: EndpointState) -> None:
    world.change(endpoint, state=state)


@pytest.fixture
def world() -> World:
    return World()


def test_it_reaches_its_endpoint_whatever_that_subscribes_to_and_no_other(world: World) -> None:
    endpoint, *_ = world.endpoint("order.paid"), world.endpoint("*")
    found = tried(world, endpoint)
    (attempt,) = found.attempts
    assert (found.status, attempt.status, attempt.number) == (Status.SUCCEEDED, 200, 1)
    (sent,) = world.sender.sent
    headers = dict(sent.request.headers)
    assert sent.request.url == endpoint.url
    assert (headers["Relay-Event-Type"], headers["Relay-Generation"]) == (TEST_TYPE, "0")
    body = json.loads(sent.request.body)
    assert (body["type"], body["endpoint_id"]) == (TEST_TYPE, endpoint.id)
    assert world.owed() == []
    check(world)


@pytest.mark.parametrize(
    "answer",
    [FAILS, status(404), status(410), status(503, headers=(("retry-after", "5"),))]
    + [Answer(Reply(fault=each)) for each in (Fault.TIMEOUT, Fault.REFUSED, Fault.TLS_FAILED)],
)
def test_one_that_fails_is_tried_once_and_is_nobody_s_loss(world: World, answer: Answer) -> None:
    endpoint = world.endpoint()
    before = world.gate(endpoint)
    found = tried(world, endpoint, answer)
    assert (found.status, len(found.attempts), found.next_ms) == (Status.DEAD, 1, 0)
    assert found.attempts[0].next_ms == 0
    world.pass_time(80 * 60 * MINUTE_MS)
    assert len(world.sender.sent) == 1
    assert (world.owed(), world.records_of(keys.DEAD_LETTERS), world.heard) == ([], [], [])
    assert "alert_until" not in repr(world.records_of(keys.GATES))
    after = world.gate(endpoint)
    assert (after.fails, after.bad, after.state) == (before.fails, before.bad, Breaker.CLOSED)
    assert world.now(endpoint).state is EndpointState.ENABLED
    check(world)


def test_any_number_of_failed_tests_opens_no_breaker_and_counts_in_no_hour(world: World) -> None:
    endpoint = world.endpoint()
    for _ in range(2 * RULES.threshold):
        tried(world, endpoint, FAILS)
    assert world.gate(endpoint).state is Breaker.CLOSED
    hours = world.usual.questions.hours(TENANT, endpoint.id, 9_999_999, 10)
    assert hours.items == ()


def test_one_that_succeeds_closes_a_breaker_that_probes(world: World) -> None:
    endpoint = world.endpoint()
    world.sender.script = lambda _: FAILS
    world.accept([posted()] * RULES.threshold, world.usual)
    world.work_off()
    assert world.gate(endpoint).state is Breaker.OPEN
    world.purge()
    world.clock.advance_to(world.gate(endpoint).open_until // 1000 + 1)
    assert tried(world, endpoint).status is Status.SUCCEEDED
    assert world.gate(endpoint).state is Breaker.CLOSED


def test_one_that_is_held_says_so_and_goes_once_that_is_over(world: World) -> None:
    endpoint = world.endpoint()
    until_ms = world.hold(endpoint, 2 * MINUTE_MS)
    found = tried(world, endpoint)
    assert (found.status, found.attempts, found.waits) == (Status.PENDING, (), True)
    assert found.hold is not None
    assert (found.hold.reason, found.hold.until) == (HoldReason.RATE_LIMIT, until_ms * 1000)
    world.work_off(3 * MINUTE_MS)
    assert world.outcomes(found.delivery_id) == ["success"]


def test_one_that_was_held_for_long_is_not_sent_any_more(world: World) -> None:
    endpoint = world.endpoint()
    world.hold(endpoint, 20 * MINUTE_MS)
    found = tried(world, endpoint)
    world.work_off(40 * MINUTE_MS)
    assert world.outcomes(found.delivery_id) == [DeathReason.EXPIRED]
    assert (world.sender.sent, world.records_of(keys.DEAD_LETTERS)) == ([], [])


def test_it_waits_for_no_line_and_no_line_waits_for_it(world: World) -> None:
    endpoint = world.endpoint(ordering=Ordering.ENDPOINT)
    world.sender.script = lambda _: FAILS
    world.post()
    world.work_off()
    found = tried(world, endpoint, FAILS)
    assert found.status is Status.DEAD
    assert "Relay-Event-Sequence" not in dict(world.sends(found.delivery_id)[0].request.headers)
    (waiting,) = world.owed()
    assert waiting.lane.ordered


def test_a_backlog_does_not_keep_it_waiting(world: World) -> None:
    slow = Limits(rate_per_second=10, burst=10, max_concurrency=2)
    endpoint = world.endpoint(limits=slow)
    world.sender.script = lambda _: status(200, took_ms=50)
    world.accept([posted()] * 100, world.usual)
    patience = BusyPatience(world.clock, lambda: world.pass_time(200))
    found = trying(world, patience).run(endpoint.tenant, endpoint.id)
    world.work_off(MINUTE_MS)
    assert found.waits or found.attempts
    assert world.outcomes(found.delivery_id) == ["success"]
    assert len(world.sender.sent) == 101


def test_its_sender_s_death_is_told_and_it_goes_once_more(world: World) -> None:
    endpoint = world.endpoint()
    found = tried(world, endpoint, in_turn([DIES, OK]))
    assert found.waits
    world.clock.advance(ms=TAKE_OVER_MS + MINUTE_MS)
    world.sweep()
    world.work_off(10 * MINUTE_MS)
    assert world.outcomes(found.delivery_id) == ["unknown", "success"]


def test_whoever_asks_waits_fifteen_seconds_and_no_longer(world: World) -> None:
    endpoint = world.endpoint()
    patience = BusyPatience(world.clock)
    began_ms = world.clock.now_ms()
    found = trying(world, patience).run(endpoint.tenant, endpoint.id)
    assert found.waits
    assert world.clock.now_ms() - began_ms == sum(PAUSES_MS) == WAIT_MS
    slow = BusyPatience(world.clock, lambda: world.clock.advance(ms=4_000))
    trying(world, slow).run(endpoint.tenant, endpoint.id)
    assert len(slow.waited) == 4


@pytest.mark.parametrize(
    "state, code",
    [
        (EndpointState.DISABLED, ErrorCode.ENDPOINT_DISABLED),
        (EndpointState.DELETED, ErrorCode.ENDPOINT_DELETED),
        (None, ErrorCode.NOT_FOUND),
    ],
)
def test_an_endpoint_that_takes_nothing_is_told_at_once(
    world: World, state: EndpointState | None, code: ErrorCode
) -> None:
    endpoint = world.endpoint()
    if state is None:
        endpoint = replace(endpoint, tenant="stranger")
    else:
        switch(world, endpoint, state)
    with pytest.raises(RelayError) as refused:
        trying(world).run(endpoint.tenant, endpoint.id)
    assert refused.value.code is code
    assert (world.owed(), world.records_of(keys.EVENTS)) == ([], [])


def test_a_rebuild_makes_no_dead_letter_of_it(world: World) -> None:
    tried(world, world.endpoint(), FAILS)
    rebuilt = world.run(lambda it: it.rebuild.run())
    assert rebuilt is not None
    assert (rebuilt.dead_letters, world.records_of(keys.DEAD_LETTERS)) == (0, [])


def test_it_is_not_replayed(world: World) -> None:
    found = tried(world, world.endpoint("*"), FAILS)
    with pytest.raises(RelayError) as refused:
        world.usual.replay.run(TENANT, found.delivery_id, BY)
    assert refused.value.code is ErrorCode.NOT_SUBSCRIBED


@pytest.mark.parametrize("body", [b'{"n":1}', b'{"type":"relay.test"}'])
def test_nobody_posts_one(world: World, body: bytes) -> None:
    post = replace(posted(TEST_TYPE, body), named_type=None if b"type" in body else TEST_TYPE)
    answers = world.usual.ingest.many([post])
    (refused,) = answers
    assert isinstance(refused, RelayError)
    assert refused.code is ErrorCode.EVENT_TYPE_INVALID


@pytest.mark.parametrize("pattern", [TEST_TYPE, "relay.*", "relay.a.b"])
def test_nobody_subscribes_to_what_is_relay_s_own(pattern: str) -> None:
    with pytest.raises(RelayError):
        valid_pattern(pattern, "event_types")
    assert valid_pattern("relay", "event_types") == "relay"
