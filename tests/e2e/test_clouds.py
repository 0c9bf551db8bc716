"""Queues of AWS on the whole stack: events go there by a role, whichever function hears of them first."""

import json

import pytest

from tests.e2e.customer import Customer, Record

ACCOUNT, REGION = "000000000000", "us-east-1"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/relay-deliver-e2e"


def messages(customer: Customer, url: str) -> list[Record]:
    asked = {"MessageAttributeNames": ["All"], "MaxNumberOfMessages": 10}
    return list(customer.stack.client("sqs").receive_message(QueueUrl=url, **asked).get("Messages", []))


@pytest.mark.parametrize("ordering", ["none", "endpoint"])
def test_events_reach_a_queue_also_when_it_is_tried(customer: Customer, ordering: str) -> None:
    name, kind = f"theirs-{ordering}", f"clouds.{ordering}"
    url = customer.stack.client("sqs").create_queue(QueueName=name)["QueueUrl"]
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"
    given = {"transport": "sqs", "url": arn, "role": ROLE, "event_types": [kind], "ordering": ordering}
    answer = customer.register(given)
    assert answer.status_code == 201, answer.text
    endpoint = answer.json()
    posted = [customer.post(kind, json.dumps({"n": number}).encode()) for number in range(3)]
    found: list[Record] = []
    for each in posted:
        assert customer.ended(each.delivery_id)["status"] == "succeeded"

    def all_there(count: int) -> bool:
        found.extend(messages(customer, url))
        return len({each["MessageId"] for each in found}) >= count

    customer.stack.until(lambda: all_there(3))
    assert {json.loads(each["Body"])["n"] for each in found} == {0, 1, 2}
    ids = {each["MessageAttributes"]["Relay-Delivery-Id"]["StringValue"] for each in found}
    assert ids == {each.delivery_id for each in posted}
    tried = customer.api.post(f"/v1/endpoints/{endpoint['id']}/test")
    assert (tried.status_code, tried.json()["status"]) == (200, "succeeded"), tried.text
    assert customer.api.get(f"/v1/endpoints/{endpoint['id']}/health").json()["queue"] == "cloud"
