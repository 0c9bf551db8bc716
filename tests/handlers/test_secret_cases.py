"""F129 and F130: an endpoint's credentials are in no log, answer, table or notice, nor do they go astray."""

import base64
import json
from collections.abc import Callable

import pytest

from chalicelib.domain.secret import MASK
from tests.handlers.conftest import Lines
from tests.handlers.relay import Relay
from tests.receiver import Receiver

TOKEN, KEY = "T0K3N-abc", "S3CR3T"
HEADERS = {"Authorization": "Bearer hush-0123456789", "X-Api-Key": "k3y-0123456789"}
CREDENTIALS = (TOKEN, KEY, "hush-0123456789", "k3y-0123456789")
ECHO = "".join(f"{name}: {value}\n" for name, value in HEADERS.items()) + f"GET /hook/{TOKEN}?key={KEY}\n"


def answers_with_a_500(receiver: Receiver) -> str:
    return f"{receiver.script(TOKEN, {'status': 500, 'body': ECHO})}?key={KEY}"


def answers_with_a_400(receiver: Receiver) -> str:
    return f"{receiver.script(TOKEN, {'status': 400, 'body': ECHO})}?key={KEY}"


def answers_no_http(receiver: Receiver) -> str:
    return f"{receiver.script(TOKEN, {'raw_b64': base64.b64encode(ECHO.encode()).decode()})}?key={KEY}"


def takes_no_connection(_: Receiver) -> str:
    return f"http://127.0.0.1:9/hook/{TOKEN}?key={KEY}"


def redirects_to_itself(receiver: Receiver) -> str:
    there = f"/hook/{TOKEN}?key={KEY}"
    return (
        f"{receiver.script(TOKEN, {'status': 302, 'headers': {'Location': there}, 'body': ECHO})}?key={KEY}"
    )


WAYS = [answers_with_a_500, answers_with_a_400, answers_no_http, takes_no_connection, redirects_to_itself]


def all_that_is_kept(relay: Relay) -> str:
    """Give every table but the endpoints', and whatever is in the queues."""
    tables = {name: relay.rows(name) for name in relay.made.tables if name != "endpoints"}
    return str(tables) + str({name: relay.messages(name) for name in relay.made.queues})


@pytest.mark.parametrize("way", WAYS)
def test_f129_no_credential_is_kept_logged_or_shown_whatever_happens(
    relay: Relay, receiver: Receiver, lines: Lines, way: Callable[[Receiver], str]
) -> None:
    made = relay.endpoint(url=way(receiver), headers=HEADERS)
    said = relay.event()
    relay.deliver_all()
    (delivery,) = said["delivery_ids"]
    path = f"/v1/endpoints/{made['id']}"
    paths = [path, "/v1/endpoints", f"{path}/deliveries", f"{path}/attempts", f"{path}/dead-letters",
             f"{path}/health", f"/v1/deliveries/{delivery}", f"/v1/deliveries/{delivery}/request",
             "/v1/audit", "/v1/notices"]  # fmt: skip
    shown = "".join(relay.get(each).body.decode() for each in paths)
    assert json.dumps(made).count(MASK) >= 4
    for place in (json.dumps(made), shown, all_that_is_kept(relay), str(lines.texts)):
        assert [each for each in CREDENTIALS if each in place] == []


def test_f129_an_exception_in_the_midst_of_it_tells_none(
    relay: Relay, receiver: Receiver, lines: Lines
) -> None:
    relay.endpoint(url=answers_with_a_500(receiver), headers=HEADERS)
    relay.event()
    bells = relay.rung()
    relay.drop_table("history")
    for queue, messages in bells.items():
        relay.deliver(queue, messages)
    assert lines.texts
    assert [each for each in CREDENTIALS if each in str(lines.texts)] == []


@pytest.mark.parametrize("change", [{}, {"headers": {"Authorization": MASK, "X-Api-Key": MASK}}])
def test_f130_a_new_url_takes_no_stored_credential_along(
    tenant: Relay, change: dict[str, dict[str, str]]
) -> None:
    made = tenant.endpoint(headers=HEADERS)
    moved = {"url": "https://elsewhere.example/hook", **change}
    assert tenant.patch(made, moved).is_problem(400, "field_invalid", "headers")
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["version"] == 1


def test_f130_a_url_sent_back_as_it_is_shown_is_refused(tenant: Relay) -> None:
    made = tenant.endpoint(url=f"https://receiver.example/hook/{TOKEN}?key={KEY}")
    assert tenant.patch(made, {"url": made["url"]}).is_problem(400, "field_invalid", "url")
