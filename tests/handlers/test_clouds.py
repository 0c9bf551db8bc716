"""Queues and buses of AWS over the API: what they take and refuse, and that what was sent can be read."""

import json
from typing import Any

import pytest

from chalicelib.domain.endpoint import Transport
from tests.handlers.relay import URL, Relay, typed
from tests.unit.domain.clouds import ARNS, CLOUDS, ROLE

EACH = pytest.mark.parametrize("transport", CLOUDS)
SQS = Transport.SQS
OTHER_ARN = "arn:aws:sqs:eu-central-1:999999999999:others"
OTHER_ROLE = "arn:aws:iam::999999999999:role/relay-deliver-others"
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no role": ({"role": None}, "field_invalid", "role"),
    "a role of another name": ({"role": ROLE.replace("relay-deliver", "admin")}, "field_invalid", "role"),
    "a role of another account": ({"role": OTHER_ROLE}, "field_invalid", "role"),
    "a role without end": ({"role": ROLE + "x" * 200}, "field_invalid", "role"),
    "a URL of the web": ({"url": URL}, "url_invalid", "url"),
    "a region that is a host": (
        {"url": "arn:aws:sqs:evil.example:123456789012:orders"},
        "url_invalid",
        "url",
    ),
    "a secret": ({"secret": "x" * 30}, "field_invalid", "secret"),
    "custom headers": ({"headers": {"X-A": "b"}}, "field_invalid", "headers"),
    "a signature": ({"signature": "standard"}, "field_invalid", "signature"),
    "a key": ({"signature_key": "hmac"}, "field_invalid", "signature_key"),
}


def given(transport: Transport, **fields: object) -> dict[str, Any]:
    body = {"transport": transport.value, "url": ARNS[transport], "role": ROLE, "event_types": ["*"]}
    return {name: value for name, value in {**body, **fields}.items() if value is not None}


def in_aws(relay: Relay, transport: Transport, **fields: object) -> Any:  # noqa: ANN401 - JSON
    answer = relay.post("/v1/endpoints", given(transport, **fields))
    assert answer.status == 201, answer.body
    return answer.json


@EACH
def test_it_is_registered_with_its_role_and_told_the_external_id(tenant: Relay, transport: Transport) -> None:
    made = in_aws(tenant, transport)
    assert (made["url"], made["role"], made["signature"]) == (ARNS[transport], ROLE, "none")
    assert (made["secret"], made["public_key"], made["signature_key"]) == (None, None, None)
    assert made["external_id"].startswith("relay:")
    read = tenant.get(f"/v1/endpoints/{made['id']}").json
    assert (read["role"], read["external_id"]) == (made["role"], made["external_id"])
    assert tenant.get(f"/v1/endpoints/{made['id']}/health").json["queue"] == "cloud"


def test_each_tenant_has_an_external_id_of_its_own(tenant: Relay) -> None:
    told = {in_aws(each, SQS)["external_id"] for each in (tenant, tenant.another("tn_b"))}
    assert len(told) == 2


@EACH
@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_have_is_refused_by_name(empty_relay: Relay, transport: Transport, name: str) -> None:
    fields, code, field = REFUSED[name]
    answer = empty_relay.post("/v1/endpoints", given(transport, **fields))
    assert answer.is_problem(400, code, field), answer.body


def test_other_endpoints_have_neither_role_nor_arn(tenant: Relay) -> None:
    of_the_web = {"url": URL, "event_types": ["*"]}
    assert tenant.post("/v1/endpoints", {**of_the_web, "role": ROLE}).is_problem(400, "field_invalid", "role")
    assert tenant.post("/v1/endpoints", {**of_the_web, "url": ARNS[SQS]}).is_problem(
        400, "field_invalid", "transport"
    )
    made = tenant.endpoint()
    assert (made["role"], made["external_id"]) == (None, None)
    assert tenant.patch(made, {"role": ROLE}).is_problem(400, "field_invalid", "role")


def test_another_address_in_another_account_needs_its_role_and_a_step_up(tenant: Relay) -> None:
    made = in_aws(tenant, SQS)
    assert tenant.patch(made, {"url": OTHER_ARN}).is_problem(400, "field_invalid", "role")
    headers = {"If-Match": f'"{made["version"]}"', "Content-Type": "application/json"}
    for change in ({"url": OTHER_ARN, "role": OTHER_ROLE}, {"role": ROLE + "-2"}):
        body = json.dumps(change).encode()
        answer = tenant.call("PATCH", f"/v1/endpoints/{made['id']}", body, headers)
        assert answer.is_problem(403, "step_up_required", "Relay-Step-Up"), answer.body
    moved = tenant.patch(made, {"url": OTHER_ARN, "role": OTHER_ROLE})
    assert (moved.status, moved.json["url"], moved.json["role"]) == (200, OTHER_ARN, OTHER_ROLE)


def test_there_is_nothing_to_rotate(tenant: Relay) -> None:
    made = in_aws(tenant, SQS)
    answer = tenant.post(f"/v1/endpoints/{made['id']}/rotate-secret", {}, tenant.elevated())
    assert answer.is_problem(400, "field_invalid", "id")
    assert tenant.post(f"/v1/endpoints/{made['id']}/end-overlap", {}).status == 200
    assert tenant.get(f"/v1/endpoints/{made['id']}/public-key").json["keys"] == []


def test_an_event_reaches_a_queue_and_its_request_is_there_to_be_read(relay: Relay) -> None:
    account = relay.arn("cloud").split(":")[4]
    url = relay.aws("sqs").create_queue(QueueName=f"{relay.made.prefix}theirs")["QueueUrl"]
    arn = f"arn:aws:sqs:us-east-1:{account}:{relay.made.prefix}theirs"
    made = in_aws(relay, SQS, url=arn, role=f"arn:aws:iam::{account}:role/relay-deliver-x")
    (delivery_id,) = relay.event(b'{"n": 1.0}', typed("order.paid"))["delivery_ids"]
    relay.deliver_all()
    relay.deliver("cloud", relay.messages("cloud"))
    got = relay.aws("sqs").receive_message(QueueUrl=url, MessageAttributeNames=["All"])
    (message,) = got["Messages"]
    assert message["Body"] == '{"n": 1.0}'
    told = {name: of["StringValue"] for name, of in message["MessageAttributes"].items()}
    assert (told["Relay-Delivery-Id"], told["Relay-Event-Type"]) == (delivery_id, "order.paid")
    assert relay.get(f"/v1/deliveries/{delivery_id}").json["status"] == "succeeded"
    shown = relay.get(f"/v1/deliveries/{delivery_id}/request").json
    assert (shown["request"]["url"], shown["curl"], shown["endpoint_id"]) == (arn, None, made["id"])
    assert {each["name"]: each["value"] for each in shown["request"]["headers"]} == told
    assert shown["request"]["body"] == '{"n": 1.0}'
