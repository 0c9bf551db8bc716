"""What may be seen of attempts: only where a tenant has marked something is anything else read."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.trusting import DynamoTenants
from chalicelib.application.inspect import Inspect
from chalicelib.application.showing import BodyShown, Showing
from chalicelib.domain.delivery import Attempt
from chalicelib.domain.outcome import Fault, Outcome, Reply
from chalicelib.domain.secret import MASK
from chalicelib.domain.tenant import Tenant
from chalicelib.wire import answers
from tests.fakes.scripted_sender import Answer
from tests.unit.application.world import LARGE, TENANT, World
from tests.unit.domain.examples import FEW
from tests.unit.domain.payloads import PATHS, marked_payloads

BODY = json.dumps({"card": "4111111111111111", "n": 1}).encode()
SAID = b"thanks for 4111111111111111"


class KnownTenant(DynamoTenants):
    """Tenants of which one is known, and has marked this."""

    def __init__(self, *paths: str) -> None:
        self._tenant = Tenant(TENANT, sensitive_paths=paths)

    def get(self, tenant: str) -> Tenant | None:
        return self._tenant if tenant == TENANT else None


def showing(world: World, *paths: str) -> Showing:
    it = world.usual
    return Showing(it.questions.reading, it.payloads, KnownTenant(*paths), world.clock)


@pytest.fixture
def world() -> World:
    world = World()
    world.sender.script = lambda _: Answer(Reply(status=200, body=SAID))
    return world


def attempts(world: World) -> list[Attempt]:
    return [each for each in world.all_history() if isinstance(each, Attempt)]


def test_without_paths_nothing_is_changed_and_no_event_is_read(world: World) -> None:
    world.endpoint()
    world.post(body=BODY)
    world.work_off()
    before = attempts(world)
    world.records.by_key = {at: row for at, row in world.records.by_key.items() if at.table != keys.EVENTS}
    assert list(showing(world).attempts(TENANT, before)) == before
    (hidden,) = showing(world, "$.card").attempts(TENANT, before)
    assert hidden.response == MASK.encode()


def test_one_view_looks_through_so_many_bytes_and_hides_the_rest(world: World) -> None:
    world.endpoint()
    for _ in range(3):
        world.post(body=BODY)
    world.work_off()
    few = replace(showing(world, "$.card"), looked_at_max=2 * len(BODY))
    seen = [each.response.decode() for each in few.attempts(TENANT, attempts(world))]
    assert seen == [f"thanks for {MASK}", f"thanks for {MASK}", MASK]


def test_a_payload_that_is_kept_apart_is_looked_through_too(world: World) -> None:
    world.endpoint()
    body = LARGE[:-1] + b', "card": "4111111111111111"}'
    event_id = world.post(body=body)["event_id"]
    world.work_off()
    (seen,) = showing(world, "$.card").attempts(TENANT, attempts(world))
    assert seen.response.decode() == f"thanks for {MASK}"
    stored = world.usual.questions.event(TENANT, event_id)
    assert stored.payload_key
    shown = showing(world, "$.card").body(TENANT, stored)
    assert (shown.shown, shown.exact) == (BodyShown.REDACTED, body)
    assert showing(world, "$.nothing").body(TENANT, stored).shown is BodyShown.EXACT
    world.kept.clear()
    assert showing(world, "$.card").body(TENANT, stored).shown is BodyShown.GONE


def test_relay_s_own_words_are_shown_and_those_that_quote_an_endpoint_are_looked_through(
    world: World,
) -> None:
    words = {Fault.TIMEOUT: "no answer in time", Fault.PROTOCOL_ERROR: "illegal line: 4111111111111111"}
    world.endpoint()
    event_id = world.post(body=BODY)["event_id"]
    told = [
        Attempt("d", 0, number, event_id, Outcome.RETRYABLE, 1, fault=fault, detail=detail)
        for number, (fault, detail) in enumerate(words.items(), start=1)
    ]
    seen = showing(world, "$.card").attempts(TENANT, told)
    assert [each.detail for each in seen] == ["no answer in time", f"illegal line: {MASK}"]
    gone = [replace(each, event_id=event_id[:-1] + "0") for each in told]
    seen = showing(world, "$.card").attempts(TENANT, gone)
    assert [each.detail for each in seen] == ["no answer in time", MASK]


def test_where_an_answer_redirects_to_is_an_echo_too(world: World) -> None:
    world.endpoint()
    event_id = world.post(body=BODY)["event_id"]
    leads = "redirects to https://receiver.example/4111111111111111"
    redirected = Attempt("d", 0, 1, event_id, Outcome.PERMANENT, 1, status=302, detail=leads)
    silent = replace(redirected, number=2, detail="")
    seen = showing(world, "$.card").attempts(TENANT, [redirected, silent])
    assert [each.detail for each in seen] == [f"redirects to https://receiver.example/{MASK}", ""]
    gone = [replace(each, event_id=event_id[:-1] + "0") for each in (redirected, silent)]
    seen = showing(world, "$.card").attempts(TENANT, gone)
    assert [each.detail for each in seen] == [MASK, ""]


def texts_of(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Give every text in a JSON value, and those in texts that are JSON themselves."""
    if isinstance(value, dict):
        yield from (text for pair in value.items() for each in pair for text in texts_of(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in texts_of(each))
    else:
        yield str(value)
        if isinstance(value, str):
            with suppress(ValueError):
                parsed = json.loads(value)
                yield from texts_of(parsed) if isinstance(parsed, dict | list) else ()


@FEW
@given(marked_payloads(14), st.sampled_from(["as it came", "in words", "cut"]), st.sampled_from([200, 404]))
def test_whatever_the_payload_no_view_says_a_marked_value(
    made: tuple[dict[str, Any], list[str]], how: str, code: int
) -> None:
    payload, secret = made
    body = json.dumps(payload).encode()
    said = {"as it came": body, "in words": "; ".join(secret).encode(), "cut": body[: len(body) // 2]}[how]
    world = World()
    world.sender.script = lambda _: Answer(Reply(status=code, body=said, truncated=how == "cut"))
    world.endpoint()
    (delivery_id,) = world.post(body=body)["delivery_ids"]
    world.work_off()
    it, show = world.usual, showing(world, *PATHS)
    (told,) = show.deliveries(TENANT, [it.questions.delivery(TENANT, delivery_id)])
    views = [
        answers.delivery(told),
        *(answers.listed_attempt(each) for each in show.attempts(TENANT, attempts(world))),
        answers.inspected(Inspect(it.questions, show).run(TENANT, delivery_id)),
    ]
    shown = [text for view in views for text in texts_of(json.loads(json.dumps(view)))]
    assert told.attempts
    assert not [each for each in secret for text in shown if each in text]
