"""Deliver: what binds the next attempt, what ends when, and that lanes do not wait for one another."""

from functools import partial

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Delete
from chalicelib.application.deliver import Report
from chalicelib.domain.backoff import SCHEDULES, RetryProfile
from chalicelib.domain.delivery import Ended
from chalicelib.domain.endpoint import Endpoint, EndpointState, WrappedSecret
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request
from tests.fakes.faults import Faults, Step
from tests.fakes.scripted_sender import HANGS, Answer, Script, in_turn, status
from tests.unit.application.interruptions import deaths, fail, meanwhile, tells_of_attempts
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import (
    FAILS,
    LARGE,
    MINUTE_MS,
    OK,
    TAKE_OVER_MS,
    TENANT,
    World,
    lane_of,
    posted,
)

TIMEOUT_MS = 10_000


def by_url(answers: dict[str, Answer]) -> Script:
    """Answer for each endpoint in its own way; OK for those that are not named."""

    def script(request: Request) -> Answer:
        return answers.get(request.url, OK)

    return script


# What binds the very next attempt.


def waiting_for_a_retry(world: World, endpoint: Endpoint) -> str:
    """Post an event whose first attempt fails, and let its retry come due."""
    (delivery,) = world.deliveries(1)
    world.sender.script = lambda _: FAILS
    world.deliver()
    world.sender.script = lambda _: OK
    assert world.owed()[0].lane == lane_of(endpoint)
    return delivery


def test_a_changed_url_binds_the_next_attempt(world: World) -> None:
    endpoint = world.endpoint()
    delivery = waiting_for_a_retry(world, endpoint)
    world.change(endpoint, url="https://new.example/hook")
    world.work_off(for_ms=MINUTE_MS)
    urls = [each.request.url for each in world.sends(delivery)]
    assert urls == [endpoint.url, "https://new.example/hook"]


CHANGES = pytest.mark.parametrize(
    "changes, told",
    [
        ({"event_types": ("invoice.*",)}, ["unsubscribed"]),
        ({"state": EndpointState.DELETED}, ["endpoint_deleted"]),
        ({"state": EndpointState.DISABLED}, []),
    ],
    ids=["unsubscribed", "deleted", "disabled"],
)


@CHANGES
def test_nothing_is_sent_after_it_was_acknowledged(
    world: World, changes: dict[str, object], told: list[str]
) -> None:
    endpoint = world.endpoint()
    delivery = waiting_for_a_retry(world, endpoint)
    world.change(endpoint, **changes)
    world.work_off(for_ms=MINUTE_MS)
    assert len(world.sends(delivery)) == 1
    assert world.outcomes(delivery) == ["retryable", *told]
    check(world)


@CHANGES
def test_what_is_acknowledged_after_the_admission_binds_it(
    world: World, changes: dict[str, object], told: list[str]
) -> None:
    endpoint = world.endpoint()
    (delivery,) = world.deliveries(1)
    process = Process(world)
    meanwhile(process, lambda: world.change(endpoint, **changes), lambda _: bool(process.faults.steps[2:]))
    world.deliver(process)
    assert world.sender.sent == []
    assert world.outcomes(delivery) == told
    assert world.gate(endpoint).leases == {}
    check(world)


def test_a_url_changed_after_the_admission_is_where_it_goes(world: World) -> None:
    endpoint = world.endpoint()
    world.deliveries(1)
    process = Process(world)
    meanwhile(
        process,
        lambda: world.change(endpoint, url="https://new.example/hook"),
        lambda _: bool(process.faults.steps[2:]),
    )
    world.deliver(process)
    assert [each.request.url for each in world.sender.sent] == ["https://new.example/hook"]


def test_a_disabled_endpoint_s_deliveries_wait_and_go_when_it_is_enabled(world: World) -> None:
    endpoint = world.endpoint()
    world.change(endpoint, state=EndpointState.DISABLED)
    (delivery,) = world.deliveries(1)
    world.work_off(for_ms=MINUTE_MS)
    assert world.outcomes(delivery) == []
    world.change(endpoint, state=EndpointState.ENABLED)
    world.clock.advance(ms=MINUTE_MS)
    world.sweep()
    world.work_off(for_ms=MINUTE_MS)
    assert world.outcomes(delivery) == ["success"]


def test_an_event_that_is_gone_ends_its_deliveries(world: World) -> None:
    world.endpoint()
    answer = world.post()
    world.usual.tables.each([Delete(keys.event(TENANT, answer["event_id"]))])
    world.deliver()
    assert [world.outcomes(each) for each in answer["delivery_ids"]] == [["expired"]]
    check(world)


def test_a_body_that_is_gone_ends_its_deliveries(world: World) -> None:
    world.endpoint()
    answer = world.post(body=LARGE)
    world.kept.clear()
    world.deliver()
    assert [world.outcomes(each) for each in answer["delivery_ids"]] == [["expired"]]
    assert world.sender.sent == []


def test_a_row_without_a_gate_is_left_alone(world: World) -> None:
    endpoint = world.endpoint()
    world.deliveries(1)
    world.usual.tables.each([Delete(keys.gate(TENANT, endpoint.id))])
    assert world.deliver(Process(world)) == Report((), frozenset())
    assert (world.waiting, world.sender.sent) == ([], [])


# What an answer leads to.


def test_410_ends_the_delivery_and_disables_the_endpoint(world: World) -> None:
    endpoint = world.endpoint()
    first, second = world.deliveries(2)
    world.sender.script = in_turn([status(410), OK])
    world.deliver()
    now = world.now(endpoint)
    assert (now.state, now.state_reason) == (EndpointState.DISABLED, "the endpoint answered 410 Gone")
    assert world.outcomes(first) == ["permanent", "permanent_failure"]
    assert world.outcomes(second) == ["success"]
    (third,) = world.deliveries(1)
    world.work_off(for_ms=MINUTE_MS)
    assert world.outcomes(third) == []
    check(world)


def test_several_410s_at_once_disable_once(world: World) -> None:
    endpoint = world.endpoint()
    world.deliveries(3)
    world.sender.script = lambda _: status(410)
    world.deliver()
    now = world.now(endpoint)
    assert (now.state, now.version) == (EndpointState.DISABLED, 2)
    assert len(world.records_of(keys.DEAD_LETTERS)) == 3


@pytest.mark.parametrize(
    "answer, told",
    [
        (status(204), ["success"]),
        (status(404), ["permanent", "permanent_failure"]),
        (status(302), ["permanent", "permanent_failure"]),
        (status(500), ["retryable"]),
        (status(408), ["retryable"]),
        (status(503, headers=(("Retry-After", "7"),)), ["deferred"]),
        (Answer(Reply(fault=Fault.CONNECT_FAILED)), ["retryable"]),
        (Answer(Reply(fault=Fault.REFUSED)), ["permanent", "refused"]),
        (HANGS, ["retryable"]),
    ],
)
def test_every_attempt_is_told_as_it_was(world: World, answer: Answer, told: list[str]) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    world.sender.script = lambda _: answer
    report = world.deliver()
    assert world.outcomes(delivery) == told
    (attempt,) = world.attempts(delivery)
    assert attempt.total_ms == min(answer.took_ms, TIMEOUT_MS)
    assert attempt.fault == (Fault.TIMEOUT if answer is HANGS else answer.reply.fault)
    assert report is not None
    (logged,) = report.attempted
    assert (logged.delivery_id, logged.outcome, logged.attempt) == (delivery, told[0], 1)
    assert logged.reason == (told[1] if len(told) > 1 else "")
    check(world)


def test_a_delivery_that_always_fails_is_tried_as_often_as_its_profile_says_and_no_more(world: World) -> None:
    world.endpoint(retry_profile=RetryProfile.QUICK)
    (delivery,) = world.deliveries(1)
    world.sender.script = lambda _: FAILS
    world.work_off(for_ms=60 * MINUTE_MS)
    attempts = SCHEDULES[RetryProfile.QUICK].attempts
    assert world.outcomes(delivery) == ["retryable"] * attempts + ["attempts_exhausted"]
    assert len(world.sends(delivery)) == attempts
    (ended,) = [each for each in world.history(delivery) if isinstance(each, Ended)]
    assert ended.attempts == attempts


def test_a_permanent_answer_is_not_tried_again_though_its_sender_dies() -> None:
    for death in deaths(at_least=3):
        world = World()
        world.endpoint()
        (delivery,) = world.deliveries(1)
        world.sender.script = lambda _: status(403)
        world.deliver(death.process(world))
        world.work_off(for_ms=10 * MINUTE_MS)
        assert len(world.sends(delivery)) <= 2
        assert world.outcomes(delivery)[-2:] == ["permanent", "permanent_failure"]


# What does not wait for what.


def settles_at(world: World, process: Process) -> list[int]:
    """Note when a process tells of attempts, in milliseconds from now."""
    began_ms = world.clock.now_ms()
    told: list[int] = []

    def note(step: Step) -> None:
        if tells_of_attempts(step):
            told.append(world.clock.now_ms() - began_ms)

    process.faults.before = note
    return told


def test_a_hanging_send_does_not_hold_back_what_has_ended(world: World) -> None:
    world.endpoint()
    world.deliveries(5)
    world.sender.script = in_turn([HANGS, OK])
    process = Process(world)
    told = settles_at(world, process)
    world.deliver(process)
    assert told == [5 + 50, TIMEOUT_MS]
    assert [len(world.sends(each.delivery_id)) for each in world.owed()] == [1]
    check(world)


def test_sends_that_end_close_together_are_settled_together(world: World) -> None:
    world.endpoint()
    world.deliveries(4)
    world.sender.script = in_turn([status(200, took_ms=took) for took in (10, 40, 59, 200)])
    process = Process(world)
    told = settles_at(world, process)
    world.deliver(process)
    assert told == [60, 200]
    making_what_counts = 1
    calls = [step for step in process.faults.steps if step.method == "each"]
    assert len(calls) == 1 + 2 * 2 + making_what_counts


def test_a_lane_that_hangs_holds_no_other_lane_s_bell(world: World) -> None:
    slow, quick = world.endpoint("slow"), world.endpoint("quick")
    world.sender.script = by_url({slow.url: HANGS})
    world.post("slow")
    world.post("quick")
    bell = next(each.receipt for each in world.waiting if each.bell.lane == lane_of(quick))
    process = Process(world)
    began_ms = world.clock.now_ms()
    deleted: dict[str, int] = {}

    def note(step: Step) -> None:
        if step.method == "delete":
            deleted.update({str(each): world.clock.now_ms() - began_ms for each in step.writes})

    process.faults.after = note
    world.deliver(process)
    assert deleted.pop(bell) == 55
    assert not deleted, "the last lane's bell goes with the invocation's answer"


def test_a_lane_that_hangs_keeps_no_other_lane_from_its_next_rounds(world: World) -> None:
    slow, quick = world.endpoint("slow"), world.endpoint("quick")
    world.sender.script = by_url({slow.url: HANGS})
    world.post("slow")
    world.accept([posted("quick")] * 30, world.usual)
    began_ms = world.clock.now_ms()
    world.deliver()
    took_ms = [each.at_ms - began_ms for each in world.sender.sent if each.request.url == quick.url]
    assert len(took_ms) == 30
    assert max(took_ms) < 1_000


def test_a_lane_whose_answers_fail_stops_no_other(world: World) -> None:
    bad, good = world.endpoint("bad"), world.endpoint("good")
    world.sender.script = by_url({bad.url: FAILS})
    (failing,) = world.post("bad")["delivery_ids"]
    (arriving,) = world.post("good")["delivery_ids"]
    world.deliver()
    assert (world.outcomes(failing), world.outcomes(arriving)) == (["retryable"], ["success"])
    assert world.gate(good).fails == 0


def unusable(world: World, endpoint: Endpoint) -> None:
    """Let the key service be unable to open an endpoint's secrets."""
    world.change(endpoint, secrets=(WrappedSecret(b"of another key"),))


def test_secrets_that_cannot_be_opened_stop_their_own_lane_alone(world: World) -> None:
    bad, _ = world.endpoint("bad"), world.endpoint("good")
    secrets = world.now(bad).secrets
    unusable(world, bad)
    (stuck,) = world.post("bad")["delivery_ids"]
    (arriving,) = world.post("good")["delivery_ids"]
    world.deliver()
    assert world.outcomes(arriving) == ["success"]
    assert world.outcomes(stuck) == []
    assert [each.bell.lane for each in world.waiting] == [lane_of(bad)]
    assert world.gate(bad).leases == {}, "nothing was sent, so nobody need wait"
    world.change(bad, secrets=secrets)
    world.work_off(for_ms=MINUTE_MS)
    assert world.outcomes(stuck) == ["success"]
    check(world)


def test_a_body_that_cannot_be_had_stops_its_own_lane_alone(world: World) -> None:
    world.endpoint("bad")
    world.endpoint("good")
    (stuck,) = world.post("bad", body=LARGE)["delivery_ids"]
    (arriving,) = world.post("good")["delivery_ids"]
    world.usual.payloads.faults = Faults()
    world.usual.payloads.faults.fail_next()
    world.deliver()
    assert (world.outcomes(stuck), world.outcomes(arriving)) == ([], ["success"])
    world.work_off(for_ms=MINUTE_MS)
    assert world.outcomes(stuck) == ["success"]


def test_what_a_stuck_lane_has_in_flight_is_still_settled(world: World) -> None:
    world.endpoint()
    (first,) = world.deliveries(1)
    (stuck,) = world.post(body=LARGE)["delivery_ids"]
    world.usual.payloads.faults = Faults()
    world.usual.payloads.faults.fail_next()
    world.deliver()
    assert (world.outcomes(first), world.outcomes(stuck)) == (["success"], [])
    world.work_off(for_ms=MINUTE_MS)
    assert world.outcomes(stuck) == ["success"]
    assert len(world.sender.sent) == 2


def test_a_lane_that_cannot_be_looked_at_stops_no_other(world: World) -> None:
    bad, good = world.endpoint("bad"), world.endpoint("good")
    world.post("bad")
    (arriving,) = world.post("good")["delivery_ids"]
    world.clock.advance(ms=1_000)
    world.usual.faults.fail_next(method="query")
    world.deliver()
    assert world.outcomes(arriving) == ["success"]
    assert {each.bell.lane for each in world.waiting} == {lane_of(bad)}
    assert world.gate(good).leases == {}
    world.work_off(for_ms=MINUTE_MS)
    assert world.owed() == []


def test_a_settlement_that_fails_leaves_what_others_have_in_flight_alone(world: World) -> None:
    slow, quick = world.endpoint("slow"), world.endpoint("quick")
    (later,) = world.post("slow")["delivery_ids"]
    (lost,) = world.post("quick")["delivery_ids"]
    world.sender.script = by_url({slow.url: status(200, took_ms=500), quick.url: OK})
    process = Process(world)
    meanwhile(process, fail, tells_of_attempts)
    world.deliver(process)
    assert world.outcomes(later) == ["success"]
    assert world.outcomes(lost) == []
    assert list(world.gate(quick).leases) == ["0"], "its lease names what was in flight"
    world.clock.advance(ms=TAKE_OVER_MS)
    world.work_off(for_ms=MINUTE_MS)
    assert world.outcomes(lost) == ["unknown", "success"]
    assert len(world.sends(later)) == 1
    check(world)


def test_what_a_failed_lane_still_has_in_flight_may_end_while_others_go_on(world: World) -> None:
    failing, slow = world.endpoint("failing"), world.endpoint("slow")
    world.accept([posted("failing")] * 2, world.usual)
    (later,) = world.post("slow")["delivery_ids"]
    answers = {failing.url: in_turn([OK, status(200, took_ms=300)]), slow.url: in_turn([Answer(took_ms=900)])}
    world.sender.script = lambda request: answers[request.url](request)
    process = Process(world)
    meanwhile(process, fail, tells_of_attempts)
    world.deliver(process)
    assert world.outcomes(later) == ["success"]
    assert world.gate(slow).leases == {}
    world.clock.advance(ms=TAKE_OVER_MS)
    world.work_off(for_ms=MINUTE_MS)
    assert world.owed() == []
    check(world)


@pytest.mark.parametrize("method", ["delete", "hide"])
def test_a_queue_that_fails_ends_nobody_s_sends(world: World, method: str) -> None:
    quick, slow = world.endpoint("quick"), world.endpoint("slow")
    world.post("slow")
    world.post("quick")
    world.hold(quick, 30_000)
    world.usual.faults.fail_next(9, method=method)
    world.sender.script = by_url({slow.url: status(200, took_ms=500)})
    report = world.deliver()
    assert report is not None
    assert len(report.attempted) == 1
    assert len(report.kept) == 1
    check(world)


def test_a_lane_goes_on_while_there_is_more_and_time(world: World) -> None:
    world.endpoint()
    world.accept([posted()] * 70, world.usual)
    world.deliver()
    assert len(world.sender.sent) == 50, "five rounds of ten"
    assert len(world.waiting) == 1, "one fresh bell for the rest"
    world.deliver()
    assert len(world.sender.sent) == 70
    assert world.waiting == []


def test_no_round_begins_that_could_not_end_in_time(world: World) -> None:
    world.endpoint()
    world.accept([posted()] * 30, world.usual)
    world.sender.script = lambda _: status(200, took_ms=9_900)
    world.function_ms = 30_000
    world.deliver()
    assert len(world.sender.sent) == 20, "a third round would need more than is left"
    assert len(world.waiting) == 1
    world.deliver()
    assert len(world.sender.sent) == 30


def test_no_send_begins_without_its_time_of_lease_left(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    process = Process(world)
    too_late_ms = 45_000 - (TIMEOUT_MS + 2_000) + 1
    meanwhile(process, partial(world.clock.advance, ms=too_late_ms), lambda step: step.method == "unseal")
    world.deliver(process)
    assert world.outcomes(delivery) == ["success"]
    assert len(world.sends(delivery)) == 1
    assert [step.method for step in process.faults.steps].count("unseal") == 2, "under a second lease"
    check(world)


def test_a_re_read_that_fails_gives_the_lease_back_and_ends_in_no_unknown_attempt(world: World) -> None:
    endpoint = world.endpoint()
    (delivery,) = world.deliveries(1)
    process = Process(world)
    world.deliver(process)
    world.deliveries(1)
    process.faults.fail_next(1, method="get")
    report = world.deliver(process)
    assert report is not None
    assert len(report.failures) == 1
    assert world.gate(endpoint).leases == {}
    world.work_off(for_ms=MINUTE_MS)
    assert world.outcomes(delivery) == ["success"]
    assert [len(world.sends(each.delivery_id)) for each in world.sender.sent] == [1, 1]
    check(world)
