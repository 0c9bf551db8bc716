"""Notices: the function that tells owners, and the list of what they were told."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import app as lambdas
from chalicelib.domain.api_key import Role
from chalicelib.settings import SettingsError
from infra.local.invocation import LambdaContext
from infra.local.sqs_event import queue_arn
from tests.handlers.conftest import Lines, MakeRelay
from tests.handlers.relay import Relay
from tests.receiver import Receiver

Heard = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def heard(relay: Relay) -> Iterator[Heard]:
    """Subscribe to the topic, and give what gives all that was published since last asked."""
    sqs = relay.aws("sqs")
    url = sqs.create_queue(QueueName=f"{relay.made.prefix}subscriber")["QueueUrl"]
    subscribe(relay)

    def received() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while some := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            found += [json.loads(json.loads(each["Body"])["Message"]) for each in some]
            for each in some:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return found

    yield received
    sqs.delete_queue(QueueUrl=url)


def subscribe(relay: Relay) -> None:
    """Subscribe the test's queue to the topic."""
    arn = queue_arn(f"{relay.made.prefix}subscriber")
    relay.aws("sns").subscribe(TopicArn=relay.made.topic_arn, Protocol="sqs", Endpoint=arn)


def notify(relay: Relay) -> None:
    """Run the schedule's function on the sample event."""
    assert lambdas.notify(relay.sample("schedule"), LambdaContext("relay-notify")) is None


def die(relay: Relay, receiver: Receiver, path: str = "/status/404") -> dict[str, Any]:
    """Let a delivery die at an endpoint of its own."""
    made: dict[str, Any] = relay.endpoint(url=receiver.url(path))
    relay.event()
    relay.deliver_all()
    return made


def test_a_dead_letter_is_told_to_a_subscriber_and_listed(
    relay: Relay, receiver: Receiver, heard: Heard, lines: Lines
) -> None:
    made = die(relay, receiver)
    notify(relay)
    (told,) = heard()
    assert (told["tenant"], told["endpoint_id"], told["kind"]) == ("default", made["id"], "dead_letters")
    assert (told["dead_letters"], told["reasons"]) == (1, {"permanent_failure": 1})
    listed = relay.get("/v1/notices").json
    assert listed["cursor"] is None
    (shown,) = listed["items"]
    assert shown.pop("published_at").endswith("Z")
    assert shown == told
    (line,) = lines.named("notify.told")
    assert [line[name] for name in ("looked", "raised", "published", "delayed", "failed")] == [1, 1, 1, 0, 0]
    notify(relay)
    assert heard() == []


def test_a_notice_names_no_url_payload_or_secret(relay: Relay, receiver: Receiver, heard: Heard) -> None:
    made = relay.endpoint(url=receiver.url("/status/404?token=hush"), headers={"X-Token": "hush"})
    relay.event(b'{"type": "order.paid", "card": "hush"}')
    relay.deliver_all()
    notify(relay)
    (told,) = heard()
    assert "hush" not in json.dumps(told)
    assert made["secret"] not in json.dumps(told)
    assert "http" not in json.dumps(told)


@pytest.mark.parametrize(
    "path, kinds", [("/gone", {"endpoint_gone", "dead_letters"}), ("/sink", set())], ids=["gone", "well"]
)
def test_who_answers_gone_is_told_of_and_who_is_well_is_not(
    relay: Relay, receiver: Receiver, heard: Heard, path: str, kinds: set[str]
) -> None:
    die(relay, receiver, path)
    notify(relay)
    assert {each["kind"] for each in heard()} == kinds


def test_a_notice_is_listed_at_once_though_the_topic_fails_and_is_published_later(
    relay: Relay, receiver: Receiver, heard: Heard, lines: Lines
) -> None:
    die(relay, receiver)
    sns, topic = relay.aws("sns"), relay.made.topic_arn
    assert topic is not None
    sns.delete_topic(TopicArn=topic)
    notify(relay)
    (waiting,) = relay.get("/v1/notices").json["items"]
    assert waiting["published_at"] is None
    assert len(lines.named("notify.delayed")) == 1
    sns.create_topic(Name=topic.rpartition(":")[2])
    subscribe(relay)
    notify(relay)
    (shown,) = relay.get("/v1/notices").json["items"]
    assert shown["published_at"] is not None
    assert [each["id"] for each in heard()] == [waiting["id"]]


def test_notices_are_listed_newest_first_page_by_page(relay: Relay, receiver: Receiver) -> None:
    ids = {die(relay, receiver)["id"] for _ in range(3)}
    notify(relay)
    pages = list(relay.pages("/v1/notices?limit=1"))
    assert [len(page) for page in pages] == [1, 1, 1]
    items = [page[0] for page in pages]
    assert {each["endpoint_id"] for each in items} == ids
    assert [each["id"] for each in items] == sorted((each["id"] for each in items), reverse=True)


def test_a_tenant_sees_its_own_notices_and_a_viewer_may(make_relay: MakeRelay, receiver: Receiver) -> None:
    relay = make_relay(RELAY_ALLOW_PRIVATE_ENDPOINTS="true")
    acme, other = relay.another("acme"), relay.another("other")
    die(acme, receiver)
    notify(relay)
    assert len(relay.another("acme", Role.VIEWER).get("/v1/notices").json["items"]) == 1
    assert other.get("/v1/notices").json == {"items": [], "cursor": None}
    assert relay.another("acme", Role.PRODUCER).get("/v1/notices").is_problem(403, "forbidden")


@pytest.mark.parametrize(
    "query, code", [("limit=0", "field_invalid"), ("page=2", "field_unknown"), ("cursor=x", "cursor_invalid")]
)
def test_a_question_that_makes_no_sense_is_refused(empty_relay: Relay, query: str, code: str) -> None:
    answer = empty_relay.get(f"/v1/notices?{query}")
    assert answer.is_problem(400, code, query.partition("=")[0])


def test_without_a_topic_the_function_says_so(make_relay: MakeRelay) -> None:
    relay = make_relay(RELAY_NOTICES_TOPIC_ARN="")
    with pytest.raises(SettingsError, match="RELAY_NOTICES_TOPIC_ARN"):
        notify(relay)
