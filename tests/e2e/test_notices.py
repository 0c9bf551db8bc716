"""Owners are told: counted at a real subscriber of the topic, shown by the API, printed by `make dev`."""

import json
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.customer import Customer, Hook, Record
from tests.e2e.stack import RelayStack

OUTAGE_S = 3
SETTINGS = {
    "RELAY_NOTICE_OUTAGE_SECS": str(OUTAGE_S),
    "RELAY_BREAKER_COOLDOWN_SECS": "1",
    "RELAY_BREAKER_MAX_COOLDOWN_SECS": "1",
    "RELAY_RAMP_SECS": "0",
}
AMPLE = {"rate_per_second": 1_000, "burst": 1_000, "max_concurrency": 10}
THOUSAND = 1_000
MINUTE_S = 2

Heard = Callable[[str], list[Record]]


@pytest.fixture(scope="module")
def customer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    """Give a customer of a stack whose minutes last two seconds."""
    state = tmp_path_factory.mktemp("notices")
    speed = ("--schedule-speed", str(60 // MINUTE_S), "--fast-emulator")
    with RelayStack(state, *speed, settings=SETTINGS) as stack, Customer(stack, 120) as customer:
        yield customer


@pytest.fixture(scope="module")
def heard(customer: Customer) -> Heard:
    """Subscribe to the topic, and give what gives all that was published about an endpoint."""
    sqs, sns = (customer.stack.client(name) for name in ("sqs", "sns"))
    (topic,) = [each["TopicArn"] for each in sns.list_topics()["Topics"]]
    url = sqs.create_queue(QueueName="owner")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    received: list[Record] = []

    def about(endpoint_id: str) -> list[Record]:
        while some := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            received.extend(json.loads(json.loads(each["Body"])["Message"]) for each in some)
            for each in some:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return [each for each in received if each["endpoint_id"] == endpoint_id]

    return about


def listed(customer: Customer, endpoint_id: str) -> list[Record]:
    items = customer.api.get("/v1/notices", params={"limit": 200}).json()["items"]
    return [each for each in items if each["endpoint_id"] == endpoint_id]


def dead(customer: Customer, endpoint_id: str) -> int:
    """Count an endpoint's dead letters."""
    answer = customer.stack.client("dynamodb").query(
        TableName="relay-dead-letters",
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": {"S": f"default#{endpoint_id}"}},
        Select="COUNT",
    )
    return int(answer["Count"])


def told_once(customer: Customer, hook: Hook, heard: Heard) -> Record:
    """Wait until all of an endpoint's deliveries are dead and its owner was told; that, and only that."""
    customer.stack.until(lambda: dead(customer, hook.id) == THOUSAND, within_s=180)
    customer.stack.until(lambda: len(heard(hook.id)) == 1, within_s=60)
    over = time.monotonic() + 4 * MINUTE_S
    customer.stack.until(lambda: time.monotonic() > over, within_s=60)
    (told,) = heard(hook.id)
    customer.stack.until(lambda: told["text"] in customer.stack.output(), within_s=30)
    return told


def test_a_thousand_deaths_are_one_publish_per_endpoint_and_window(customer: Customer, heard: Heard) -> None:
    hooks = [customer.hook("/status/404", **AMPLE) for _ in range(2)]
    for hook in hooks:
        customer.post_many(hook.type, THOUSAND)
    for hook in hooks:
        told = told_once(customer, hook, heard)
        assert (told["kind"], told["tenant"]) == ("dead_letters", "default")
        assert 1 <= told["dead_letters"] <= THOUSAND
        (shown,) = listed(customer, hook.id)
        assert shown.pop("published_at") is not None
        assert shown == told


def test_an_outage_and_its_end_are_told(customer: Customer, heard: Heard) -> None:
    hook = customer.hook("/toggle/{key}", **AMPLE)
    path = f"/toggle/{hook.type}"
    customer.receiver.post(path, params={"to": "500"}).raise_for_status()
    customer.post_many(hook.type, 30)
    customer.stack.until(lambda: len(heard(hook.id)) == 1, within_s=60)
    customer.receiver.post(path, params={"to": "200"}).raise_for_status()
    customer.stack.until(lambda: len(heard(hook.id)) == 2, within_s=120)
    assert [each["kind"] for each in heard(hook.id)] == ["breaker_open", "recovered"]
    assert heard(hook.id)[0]["since"] == heard(hook.id)[1]["since"]


def test_an_endpoint_that_says_it_is_gone_is_told_of_before_its_owner_asks(
    customer: Customer, heard: Heard
) -> None:
    hook = customer.hook("/gone", **AMPLE)
    customer.post(hook.type)
    kinds = {"endpoint_gone", "dead_letters"}
    customer.stack.until(lambda: {each["kind"] for each in heard(hook.id)} == kinds, within_s=60)
    assert len(heard(hook.id)) == len(kinds)


def test_nobody_is_told_of_an_endpoint_that_is_well(customer: Customer, heard: Heard) -> None:
    hook = customer.hook("/sink", **AMPLE)
    customer.post_many(hook.type, 50)
    customer.all_ended(hook.id, 50)
    over = time.monotonic() + 3 * MINUTE_S
    customer.stack.until(lambda: time.monotonic() > over, within_s=60)
    assert heard(hook.id) == []
