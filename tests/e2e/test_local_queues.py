"""The event sources' own client and the queues behind it, on ministack and on moto alike."""

import time
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from chalice.app import Chalice, SQSEvent

from infra.local.emulator import EmulatorName, free_port, running
from infra.local.event_sources import LONG_POLLING, SHORT_POLLING, EventSources, SourceOptions
from infra.local.queues import EmulatorQueues, QueueError

FIFO = {"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}


class Place:
    """An emulator, and queues of a test's own on it."""

    def __init__(self, name: EmulatorName, endpoint_url: str) -> None:
        session: Any = boto3.Session(
            aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
        )
        self.sqs = session.client("sqs", endpoint_url=endpoint_url)
        self.queues = EmulatorQueues(endpoint_url)
        self.polling = SHORT_POLLING if name is EmulatorName.MOTO else LONG_POLLING

    def make(self, *, fifo: bool = True, visibility_s: int = 360) -> str:
        name = f"q-{uuid.uuid4()}{'.fifo' if fifo else ''}"
        attributes = {"VisibilityTimeout": str(visibility_s), **(FIFO if fifo else {})}
        self.sqs.create_queue(QueueName=name, Attributes=attributes)
        return name

    def send(self, name: str, body: str, group: str) -> None:
        self.sqs.send_message(
            QueueUrl=self.queues.url(name), MessageBody=body, MessageGroupId=group,
            MessageDeduplicationId=str(uuid.uuid4()),
            MessageAttributes={"Kind": {"DataType": "Binary", "BinaryValue": b"\xff\x00"}},
        )  # fmt: skip

    def waiting(self, name: str) -> int:
        attributes = self.sqs.get_queue_attributes(QueueUrl=self.queues.url(name), AttributeNames=["All"])
        return sum(
            int(attributes["Attributes"][f"ApproximateNumberOfMessages{state}"])
            for state in ("", "NotVisible")
        )


@pytest.fixture(scope="module", params=[EmulatorName.MINISTACK, EmulatorName.MOTO])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with running(request.param, tmp_path_factory.mktemp("emulator"), free_port()) as endpoint_url:
        place = Place(request.param, endpoint_url)
        yield place
        place.queues.close()
        place.sqs.close()


def test_a_message_comes_with_everything_an_event_needs(place: Place) -> None:
    name = place.make()
    place.send(name, "héllo", "g")
    (message,) = place.queues.receive(place.queues.url(name), 10, 0)
    assert message["Body"] == "héllo"
    assert message["Attributes"]["MessageGroupId"] == "g"
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    assert abs(int(message["Attributes"]["SentTimestamp"]) / 1000 - time.time()) < 60
    assert message["MessageAttributes"]["Kind"] == {"DataType": "Binary", "BinaryValue": "/wA="}
    assert set(message) >= {"MessageId", "ReceiptHandle", "MD5OfBody"}


def test_a_group_is_locked_until_its_message_is_deleted(place: Place) -> None:
    name = place.make()
    url = place.queues.url(name)
    place.send(name, "first", "g")
    first = place.queues.receive(url, 10, 0)
    place.send(name, "second", "g")
    assert place.queues.receive(url, 10, 0) == []
    place.queues.delete(url, first)
    assert [message["Body"] for message in place.queues.receive(url, 10, 0)] == ["second"]


def test_what_is_given_back_comes_again_at_once(place: Place) -> None:
    name = place.make()
    url = place.queues.url(name)
    place.send(name, "again", "g")
    place.queues.give_back(url, place.queues.receive(url, 10, 0))
    (message,) = place.queues.receive(url, 10, 0)
    assert message["Attributes"]["ApproximateReceiveCount"] == "2"


def test_deleting_what_is_gone_is_harmless(place: Place) -> None:
    name = place.make()
    url = place.queues.url(name)
    place.send(name, "a", "a")
    place.send(name, "b", "b")
    messages = place.queues.receive(url, 10, 0)
    place.queues.delete(url, messages[:1])
    place.queues.delete(url, messages)
    place.queues.delete(url, messages)
    assert place.waiting(name) == 0


def test_a_queue_that_is_not_there_is_an_error_in_words(place: Place) -> None:
    with pytest.raises(QueueError, match="GetQueueUrl"):
        place.queues.url("nowhere")


def test_nobody_there_is_an_error_in_words() -> None:
    with pytest.raises(QueueError, match="Refused"):
        EmulatorQueues(f"http://127.0.0.1:{free_port()}").url("anything")


def test_functions_get_every_message_once_in_the_order_of_its_group(place: Place) -> None:
    name = place.make()
    app = Chalice(app_name="stub", configure_logs=False)
    seen: list[tuple[str, int]] = []

    def note(event: SQSEvent) -> None:
        records = event.to_dict()["Records"]
        seen.extend((record["attributes"]["MessageGroupId"], int(record["body"])) for record in records)

    app.on_sqs_message(queue=name, batch_size=10)(note)
    sources = EventSources(app, place.queues, SourceOptions(polling=place.polling))
    sources.start()
    for number in range(60):
        place.send(name, str(number), f"g{number % 5}")
    deadline = time.monotonic() + 30
    while place.waiting(name) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sources.stop(10) == 0
    assert sorted(number for _, number in seen) == list(range(60))
    for group in range(5):
        of_group = [number for name, number in seen if name == f"g{group}"]
        assert of_group == sorted(of_group)
