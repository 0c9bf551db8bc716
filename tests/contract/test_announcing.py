"""The channel: a real topic with a real subscriber on each emulator, and the fake, hold the same promises."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.records import Insert
from chalicelib.adapters.dynamodb.tables import DynamoTables
from chalicelib.adapters.sns import SnsAnnouncer
from chalicelib.application.notify import Notify
from chalicelib.application.ports import Unavailable
from chalicelib.application.ports.noticing import Announcer
from chalicelib.domain import ids
from chalicelib.domain.delivery import Ended
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.notice import Finding, Notice, NoticeKind, NoticeRules
from chalicelib.domain.outcome import DeathReason
from chalicelib.wire import notices
from infra.local.emulator import EmulatorName
from infra.local.provision import Provisioned
from tests.contract.emulated import json_service, strict_client
from tests.contract.given import (
    MEMORY,
    NOW_MS,
    TENANT,
    Stores,
    endpoint,
    event,
    everywhere,
    stores_over,
)
from tests.contract.test_noticing import mark
from tests.fakes.fixed_clock import FixedClock, SeededDice
from tests.fakes.memory_announcer import MemoryAnnouncer
from tests.fakes.memory_tables import MemoryTables

EXHAUSTED = 1_000


@dataclass(frozen=True, slots=True)
class Channel:
    """A topic: what publishes to it, and what a subscriber has received since last asked."""

    announcer: Announcer
    heard: Callable[[], list[str]]
    raw: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture(params=everywhere)
def channel(request: pytest.FixtureRequest) -> Channel:
    if request.param == MEMORY:
        announcer = MemoryAnnouncer()
        return Channel(announcer, lambda: [each.id for each in announcer.heard])
    return subscribed(request.getfixturevalue(f"{request.param}_provisioned"))


def subscribed(made: Provisioned) -> Channel:
    """Subscribe a queue to the topic of notices."""
    sqs, sns = (strict_client(name, made.endpoint_url) for name in ("sqs", "sns"))
    url = sqs.create_queue(QueueName=f"{made.prefix}subscriber")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=made.topic_arn, Protocol="sqs", Endpoint=arn)
    raw: list[dict[str, Any]] = []

    def heard() -> list[str]:
        while found := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            raw.extend(json.loads(each["Body"]) for each in found)
            for each in found:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return [json.loads(each["Message"])["id"] for each in raw]

    assert made.topic_arn is not None
    return Channel(SnsAnnouncer(sns, made.topic_arn), heard, raw)


def noticed(kind: NoticeKind = NoticeKind.DEAD_LETTERS, number: int = 0) -> Notice:
    finding = Finding(kind, NOW_MS - 5, NOW_MS, {DeathReason.EXPIRED: 2}, why="it said so")
    return Notice(TENANT, ids.new_id("ntc", NOW_MS, number), endpoint(0).id, NOW_MS, finding)


def test_what_is_published_reaches_a_subscriber_of_every_kind(channel: Channel) -> None:
    some = [noticed(kind, number) for number, kind in enumerate(NoticeKind)]
    for each in some:
        channel.announcer.publish(each)
    assert sorted(channel.heard()) == [each.id for each in some]


@pytest.mark.parametrize("name", [EmulatorName.MINISTACK, EmulatorName.MOTO])
def test_the_message_names_whose_it_is_and_what_as_attributes_to_filter_by(
    name: EmulatorName, request: pytest.FixtureRequest
) -> None:
    channel = subscribed(request.getfixturevalue(f"{name.value}_provisioned"))
    notice = noticed()
    channel.announcer.publish(notice)
    channel.heard()
    (message,) = channel.raw
    attributes = {key: each["Value"] for key, each in message["MessageAttributes"].items()}
    assert attributes == {
        "tenant": TENANT,
        "endpoint_id": notice.endpoint_id,
        "kind": "dead_letters",
        "notice_id": notice.id,
    }
    assert json.loads(message["Message"]) == notices.published(notice)
    assert message["Subject"] == notices.subject(notice)
    assert "http" not in message["Message"]


@pytest.mark.parametrize("name", [EmulatorName.MINISTACK, EmulatorName.MOTO])
def test_a_topic_that_is_gone_is_told_as_unavailable(
    name: EmulatorName, request: pytest.FixtureRequest
) -> None:
    made: Provisioned = request.getfixturevalue(f"{name.value}_provisioned")
    sns = strict_client("sns", made.endpoint_url)
    announcer = SnsAnnouncer(sns, f"{made.topic_arn}-of-nobody")
    with pytest.raises(Unavailable):
        announcer.publish(noticed())


@pytest.fixture(params=[MEMORY, EmulatorName.MINISTACK.value])
def relay(request: pytest.FixtureRequest) -> Iterator[tuple[Callable[[], Stores], Channel]]:
    """Stores as each process makes its own, and the channel beside them."""
    if request.param == MEMORY:
        records = MemoryTables().records
        announcer = MemoryAnnouncer()
        channel = Channel(announcer, lambda: [each.id for each in announcer.heard])
        yield lambda: stores_over(MemoryTables(records)), channel
        return
    made: Provisioned = request.getfixturevalue(f"{request.param}_provisioned")
    tables = DynamoTables(json_service("dynamodb", made.endpoint_url), made.prefix)
    yield lambda: stores_over(tables), subscribed(made)


def exhaust(stores: Stores, some: Sequence[Endpoint]) -> None:
    """Let a thousand deliveries end at each endpoint, and mark the gates as the settling of a lease does."""
    ended = [
        Ended(ids.delivery_id(event(number).id, to.id), 0, "", DeathReason.ATTEMPTS_EXHAUSTED, NOW_MS, 12)
        for to in some
        for number in range(EXHAUSTED)
    ]
    owner = {ids.endpoint_tag(each.id): each.id for each in some}
    letters = [
        Insert(
            keys.dead_letter(TENANT, owner[ids.tag_of(each.delivery_id)], each.delivery_id, 0),
            rows.dead_letter_row(each),
        )
        for each in ended
    ]
    for start in range(0, len(letters), 100):
        assert stores.tables.together(letters[start : start + 100]) == []
    mark(stores, some, NOW_MS * 1000)


def test_a_thousand_exhaustions_are_one_publish_per_endpoint_and_window_from_two_functions_at_once(
    relay: tuple[Callable[[], Stores], Channel],
) -> None:
    make, channel = relay
    stores = make()
    some = [endpoint(number) for number in range(2)]
    for each in some:
        assert stores.endpoints.create(each)
    exhaust(stores, some)
    clock = FixedClock(NOW_MS + 60_000)

    def run(seed: int) -> int:
        notify = Notify(make().noticing, channel.announcer, clock, SeededDice(seed), NoticeRules())
        return notify.run().published

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(run, (1, 2))) == len(some)
    for minute in range(8):
        clock.advance(ms=7 * 60_000)
        mark(stores, some, clock.now_us())
        assert run(minute) == 0, "within the hour"
    clock.advance(ms=600_000)
    assert run(99) == 0
    heard = channel.heard()
    assert len(heard) == len(some)
    listed = stores.noticing.page(TENANT, "", 9, clock.now_ms()).items
    assert {each.id for each in listed} == set(heard)
    assert [each.finding.reasons for each in listed] == [{DeathReason.ATTEMPTS_EXHAUSTED: EXHAUSTED}] * 2
