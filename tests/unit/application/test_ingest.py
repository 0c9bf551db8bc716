"""Ingest: what is accepted is durable before anybody is told, whatever dies or fails on the way."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.adapters.dynamodb import keys
from chalicelib.application.ingest import IDEMPOTENCY_SECONDS, Accepted, Post, valid_key
from chalicelib.application.ports import Unavailable
from chalicelib.domain import ids
from chalicelib.domain.delivery import Created
from chalicelib.domain.errors import ErrorCode, RelayError
from tests.unit.application.interruptions import deaths, fail, meanwhile
from tests.unit.application.process import Process
from tests.unit.application.world import LARGE, MINUTE_MS, World, posted


def events_of(world: World) -> list[str]:
    return [record["sk"] for record in world.records_of(keys.EVENTS) if ids.is_id(record["sk"], "evt")]


def created_of(world: World) -> list[str]:
    return [each.delivery_id for each in world.all_history() if isinstance(each, Created)]


def read(accepted: Accepted | RelayError | None) -> Any:  # noqa: ANN401 - an answer's JSON
    assert isinstance(accepted, Accepted)
    return json.loads(accepted.answer)


def later(world: World) -> None:
    """Let what was accepted be found and sent, also when nobody was rung."""
    world.clock.advance(ms=2 * MINUTE_MS)
    for _ in range(2):
        world.sweep()
        world.work_off(for_ms=MINUTE_MS)


@pytest.mark.parametrize("body", [b'{"n":1}', LARGE], ids=["inline", "kept apart"])
def test_a_death_at_any_write_captures_all_or_nothing_and_a_retry_makes_no_second_event(body: bytes) -> None:
    for death in deaths(at_least=6):
        world = World()
        for _ in range(3):
            world.endpoint()
        post = posted(body=body, key="order-7")
        world.accept([post], death.process(world))
        assert len(world.owed()) == len(created_of(world)) == 3 * len(events_of(world))
        (accepted,) = answer_to(world, post)
        again = read(accepted)
        assert events_of(world) == [again["event_id"]]
        assert sorted(created_of(world)) == sorted(again["delivery_ids"])
        later(world)
        assert [world.outcomes(each) for each in again["delivery_ids"]] == [["success"]] * 3
        assert {each.request.body for each in world.sender.sent} == {body}


def test_a_death_between_the_events_of_a_batch_loses_none_that_was_written() -> None:
    posts = [posted(body=json.dumps({"n": n}).encode(), key=f"key {n % 4}") for n in range(6)]
    for death in deaths(at_least=4):
        world = World()
        world.endpoint()
        world.accept(posts, death.process(world))
        later(world)
        assert len(world.sender.sent) == len(created_of(world)) == len(events_of(world))
        assert world.owed() == []


def test_the_rest_of_a_batch_that_could_not_be_written_is_told_apart(world: World) -> None:
    for _ in range(20):
        world.endpoint()
    process = Process(world)
    meanwhile(process, fail, lambda step: len(step.writes) > 1 and bool(world.records_of(keys.OWED)))
    results = world.accept([posted()] * 5, process)
    assert results is not None
    assert [isinstance(each, Accepted) for each in results] == [True, True, False, False, True]
    assert {each.code for each in results if isinstance(each, RelayError)} == {ErrorCode.UNAVAILABLE}
    assert sorted(events_of(world)) == sorted(read(results[place])["event_id"] for place in (0, 1, 4))
    world.work_off(for_ms=1_000)
    assert len(world.sender.sent) == 3 * 20, "what was accepted is rung"


def test_a_body_that_is_kept_apart_is_kept_first(world: World) -> None:
    world.endpoint()
    world.usual.faults.steps.clear()
    world.post(body=LARGE)
    methods = [step.method for step in world.usual.faults.steps]
    assert methods.index("put") < methods.index("together")
    (record,) = [each for each in world.records_of(keys.EVENTS) if ids.is_id(each["sk"], "evt")]
    assert world.kept == {record["payload_key"]: LARGE}
    assert "body" not in record


def test_a_body_that_deflates_stays_in_its_row(world: World) -> None:
    world.post(body=json.dumps({"n": "0" * 100_000}).encode())
    assert world.kept == {}


@pytest.mark.parametrize("method", ["put", "each", "together"])
def test_nothing_is_accepted_that_could_not_be_written(world: World, method: str) -> None:
    world.endpoint()
    process = Process(world)
    process.faults.fail_next(method=method)
    with pytest.raises(Unavailable):
        process.ingest.one(posted(body=LARGE))
    assert (events_of(world), world.owed(), created_of(world)) == ([], [], [])


@pytest.mark.parametrize("count", [1, 3])
def test_a_bell_that_cannot_be_rung_is_still_an_acceptance(world: World, count: int) -> None:
    for _ in range(3):
        world.endpoint()
    world.losing = count
    answer = world.post()
    assert len(world.waiting) == 3 - count
    later(world)
    assert [world.outcomes(each) for each in answer["delivery_ids"]] == [["success"]] * 3


def test_each_lane_is_rung_once_and_named_rows_need_no_query(world: World) -> None:
    first, second = world.endpoint("order.paid"), world.endpoint("order.*")
    answer = world.post()
    assert answer["fan_out"] == "inline"
    assert answer["delivery_ids"] == [
        ids.delivery_id(answer["event_id"], each.id) for each in (first, second)
    ]
    assert [each.bell.lane.endpoint_id for each in world.waiting] == [first.id, second.id]
    world.usual.faults.steps.clear()
    world.deliver()
    assert "query" not in [step.method for step in world.usual.faults.steps]
    assert [world.outcomes(each) for each in answer["delivery_ids"]] == [["success"]] * 2


@pytest.mark.parametrize("count", [10, 11, 35])
def test_every_event_of_a_batch_is_sent_though_a_bell_names_ten_at_most(world: World, count: int) -> None:
    world.endpoint()
    world.accept([posted()] * count, world.usual)
    world.work_off(for_ms=1_000)
    assert len(world.sender.sent) == count


def test_an_event_that_nobody_takes_is_kept(world: World) -> None:
    world.endpoint("invoice.*")
    answer = world.post("order.paid")
    assert (answer["fan_out"], answer["delivery_ids"]) == ("none", [])
    assert events_of(world) == [answer["event_id"]]
    assert world.waiting == []


@pytest.mark.parametrize("matching, how", [(40, "inline"), (41, "later")])
def test_more_than_forty_are_fanned_out_later(world: World, matching: int, how: str) -> None:
    for _ in range(matching):
        world.endpoint()
    answer = world.post()
    assert answer["fan_out"] == how
    assert len(answer["delivery_ids"]) == (matching if how == "inline" else 0)
    assert len(created_of(world)) == len(answer["delivery_ids"])
    world.work_off(for_ms=1_000)
    assert len(world.sender.sent) == matching


def test_subscriptions_that_cannot_be_read_are_read_later(world: World) -> None:
    world.endpoint()
    world.usual.faults.fail_next(method="get")
    assert world.post()["fan_out"] == "later"
    world.work_off(for_ms=1_000)
    assert len(world.sender.sent) == 1


def test_a_whole_batch_is_captured_when_subscriptions_cannot_be_read(world: World) -> None:
    world.endpoint()
    world.usual.faults.fail_next(method="get")
    posts = [posted(key=f"key {n}") for n in range(100)]
    results = world.accept(posts, world.usual)
    assert results is not None
    assert {read(each)["fan_out"] for each in results} == {"later"}
    assert len(events_of(world)) == len(world.records_of(keys.FANOUTS)) == 100


def test_a_call_to_fan_out_that_was_lost_is_made_up_for(world: World) -> None:
    world.endpoint()
    world.usual.faults.fail_next(method="get")
    world.losing = 1
    world.post()
    assert world.fan_outs == []
    later(world)
    assert len(world.sender.sent) == 1


@pytest.mark.parametrize("fails", [False, True], ids=["inline", "later"])
def test_only_endpoints_older_than_the_event_take_part(world: World, *, fails: bool) -> None:
    old = world.endpoint()
    if fails:
        world.usual.faults.fail_next(method="get")
    event = world.post()["event_id"]
    new = world.endpoint()
    world.work_off(for_ms=1_000)
    assert created_of(world) == [ids.delivery_id(event, old.id)]
    world.post()
    world.work_off(for_ms=1_000)
    assert {each.request.url for each in world.sender.sent} == {old.url, new.url}


def answer_to(world: World, *posts: Post) -> Sequence[Accepted | RelayError]:
    results = world.accept(posts)
    assert results is not None
    return results


def test_a_repeat_gets_the_first_answer_s_exact_bytes(world: World) -> None:
    world.endpoint()
    (first,) = answer_to(world, posted(key="k"))
    world.endpoint()
    world.clock.advance(ms=IDEMPOTENCY_SECONDS * 1000 - 1_000)
    (again,) = answer_to(world, posted(key="k"))
    assert isinstance(first, Accepted)
    assert not first.replayed
    assert again == Accepted(first.answer, replayed=True)
    assert len(events_of(world)) == len(world.waiting) == 1


def test_without_a_key_nothing_is_a_repeat(world: World) -> None:
    answer_to(world, posted(), posted())
    assert len(events_of(world)) == 2


@pytest.mark.parametrize("other", [posted(body=b'{"n":2}', key="k"), posted("order.sent", key="k")])
def test_another_event_under_the_same_key_is_a_conflict(world: World, other: Post) -> None:
    answer_to(world, posted(key="k"))
    (refused,) = answer_to(world, other)
    assert isinstance(refused, RelayError)
    assert refused.code is ErrorCode.IDEMPOTENCY_CONFLICT
    assert len(events_of(world)) == 1


def test_a_key_s_claim_ends_after_a_day_though_its_row_is_still_there(world: World) -> None:
    answer_to(world, posted(key="k"))
    world.clock.advance(ms=IDEMPOTENCY_SECONDS * 1000)
    (again,) = answer_to(world, posted(body=b'{"n":2}', key="k"))
    assert isinstance(again, Accepted)
    assert not again.replayed
    assert len(events_of(world)) == 2
    (repeat,) = answer_to(world, posted(body=b'{"n":2}', key="k"))
    assert repeat == Accepted(again.answer, replayed=True)


def test_a_key_is_its_tenant_s_own(world: World) -> None:
    answer_to(world, posted(key="k"))
    (other,) = answer_to(world, Post("other", b'{"n":2}', "application/json", "order.paid", "k"))
    assert isinstance(other, Accepted)
    assert not other.replayed


def test_two_of_one_batch_under_one_key_are_one_event(world: World) -> None:
    same, other = posted(key="k"), posted(body=b'{"n":2}', key="k")
    first, second, third = answer_to(world, same, same, other)
    assert second == Accepted(read(first) and first.answer, replayed=True)  # type: ignore[union-attr]  # read() has asserted it
    assert isinstance(third, RelayError)
    assert len(events_of(world)) == 1


def test_each_of_a_batch_is_answered_in_its_place(world: World) -> None:
    bad, large = posted(body=b"{"), posted(body=b"1" * 300_000)
    results = answer_to(world, bad, posted(body=b'{"n":1}'), large, posted(body=b'{"n":2}'))
    codes = [each.code if isinstance(each, RelayError) else None for each in results]
    assert codes == [ErrorCode.BODY_NOT_JSON, None, ErrorCode.BODY_TOO_LARGE, None]
    assert sorted(events_of(world)) == sorted(read(results[place])["event_id"] for place in (1, 3))


def test_one_bad_post_is_refused(world: World) -> None:
    with pytest.raises(RelayError):
        world.usual.ingest.one(posted(key=""))
    assert events_of(world) == []


@pytest.mark.parametrize("key", ["k", " ", "~" * 255])
def test_a_key_is_printable_ascii(key: str) -> None:
    assert valid_key(key) == key


@pytest.mark.parametrize("key", ["", "k" * 256, "a\n", "é", "\x7f"])
def test_any_other_key_is_refused(key: str) -> None:
    with pytest.raises(RelayError) as refused:
        valid_key(key)
    assert refused.value.code is ErrorCode.IDEMPOTENCY_KEY_INVALID
