"""Sending to queues and buses in AWS: by an assumed role, under one deadline, whatever AWS answers."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from chalicelib.adapters import clients
from chalicelib.adapters.cloud import RENEW_S, CloudSender, Sessions
from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.sender import SendLimits
from chalicelib.application.ports import Unavailable
from chalicelib.domain.cloud import message
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.outcome import Fault, Outcome, Reply, judge
from chalicelib.domain.request import Request
from infra.local.emulator import free_port
from infra.local.provision import REGION
from tests.unit.domain.clouds import in_aws
from tests.unit.domain.examples import DELIVERY_ID, event, owed

SQS, BUS = Transport.SQS, Transport.EVENTBRIDGE
ACCOUNTS = {"ministack": "000000000000", "moto": "123456789012"}
PATIENCE_S = 20
LIMITS = SendLimits(8.0, 2_048, 4)


@dataclass(frozen=True, slots=True)
class Account:
    """An account at an emulator, what is in it, and a sender to it."""

    sender: CloudSender
    number: str
    prefix: str
    sqs: Any
    events: Any

    def role(self) -> str:
        return f"arn:aws:iam::{self.number}:role/relay-deliver-x"

    def queue(self, name: str, **attributes: str) -> tuple[str, str]:
        """Make a queue; its ARN and URL."""
        full = self.prefix + name
        url = self.sqs.create_queue(QueueName=full, Attributes=attributes)["QueueUrl"]
        return f"arn:aws:sqs:{REGION}:{self.number}:{full}", url

    def received(self, url: str) -> list[Any]:
        asked = {"MessageAttributeNames": ["All"], "AttributeNames": ["All"], "MaxNumberOfMessages": 10}
        return list(self.sqs.receive_message(QueueUrl=url, **asked).get("Messages", []))

    def send(self, transport: Transport, arn: str, body: bytes = b'{"id":7}', **changes: object) -> Reply:
        return sent(self.sender, request(transport, arn, self.role(), body, **changes))


def request(
    transport: Transport, arn: str, role: str, body: bytes = b'{"id":7}', **changes: object
) -> Request:
    return message.build(in_aws(transport, url=arn, role=role), event(body), owed(**changes))


def sent(sender: CloudSender, of: Request) -> Reply:
    with sender.outbox() as outbox:
        outbox.start("one", of)
        (finished,) = outbox.finished(PATIENCE_S)
    return finished.reply


def client_at(url: str, closing: list[Any]) -> Callable[[str, str], Any]:
    def make(service: str, region: str) -> Any:  # noqa: ANN401 - boto3's clients have no common type
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_ENDPOINT_URL", url)
            closing.append(clients.make(service, region=region, attempts=1, timeout_s=2.0))
        return closing[-1]

    return make


@pytest.fixture
def account(emulator: str, request: pytest.FixtureRequest, prefix: str) -> Iterator[Account]:
    name = request.node.callspec.params["emulator"]
    closing: list[Any] = []
    made = client_at(emulator, closing)
    sender = CloudSender(Sessions(made("sts", REGION)), made, LIMITS, BackgroundLoop())
    yield Account(sender, ACCOUNTS[name], prefix, made("sqs", REGION), made("events", REGION))
    sender.close()
    for each in closing:
        each.close()


def test_a_queue_gets_what_was_posted_and_whose_it_is(account: Account) -> None:
    arn, url = account.queue("plain")
    reply = account.send(SQS, arn, b'{"a": 1.0}')
    (got,) = account.received(url)
    assert (reply.status, json.loads(reply.body)) == (200, got["MessageId"])
    assert got["Body"] == '{"a": 1.0}'
    assert got["MessageAttributes"]["Relay-Delivery-Id"]["StringValue"] == DELIVERY_ID


def test_bytes_that_are_no_text_arrive_in_base64(account: Account) -> None:
    arn, url = account.queue("bytes")
    assert account.send(SQS, arn, b"\x00\xff").status == 200
    (got,) = account.received(url)
    assert (got["Body"], got["MessageAttributes"][message.ENCODING]["StringValue"]) == ("AP8=", "base64")


def test_a_fifo_queue_takes_a_retry_of_what_arrived_once_and_a_replay_anew(account: Account) -> None:
    arn, url = account.queue("line.fifo", FifoQueue="true")
    for made, generation in ((0, 0), (1, 0), (0, 1)):
        assert account.send(SQS, arn, made=made, generation=generation).status == 200
    got = account.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert got["ApproximateNumberOfMessages"] == "2"


def test_a_bus_takes_an_event(account: Account) -> None:
    name = f"{account.prefix}bus"
    account.events.create_event_bus(Name=name)
    reply = account.send(BUS, f"arn:aws:events:{REGION}:{account.number}:event-bus/{name}")
    assert (reply.status, len(json.loads(reply.body))) == (200, 1)


def test_a_queue_that_is_not_there_ends_the_delivery(account: Account) -> None:
    reply = account.send(SQS, f"arn:aws:sqs:{REGION}:{account.number}:{account.prefix}nowhere")
    assert (reply.status, reply.unsent) == (404, False)
    assert judge(reply, datetime.now(UTC)).outcome is Outcome.PERMANENT


@pytest.mark.parametrize("transport, size", [(SQS, 1_048_576), (BUS, 262_144)])
def test_what_no_service_takes_is_not_even_sent(transport: Transport, size: int) -> None:
    def never(*_: str) -> Any:  # noqa: ANN401 - nothing is made
        raise AssertionError("nothing may be asked")

    sender = CloudSender(Sessions(Asked([])), never, LIMITS, BackgroundLoop())
    reply = sent(sender, request(transport, in_aws(transport).url, "", b"x" * size))
    assert (reply.status, reply.unsent) == (413, True)


def test_a_request_of_http_is_not_sent_here() -> None:
    sender = CloudSender(Sessions(Asked([])), lambda *_: None, LIMITS, BackgroundLoop())
    reply = sent(sender, Request("https://receiver.example/", (), b"{}"))
    assert (reply.fault, reply.unsent) == (Fault.REFUSED, True)


def test_sends_go_side_by_side_and_each_as_its_own_role(account: Account) -> None:
    arn, url = account.queue("many")
    with account.sender.outbox() as outbox:
        for number in range(8):
            role = f"{account.role()}{number}"
            outbox.start(str(number), request(SQS, arn, role, b'{"n":%d}' % number))
        ended: list[str] = []
        while len(ended) < 8:
            found = outbox.finished(PATIENCE_S)
            assert all(each.reply.status == 200 for each in found)
            ended += [each.key for each in found]
    got = account.received(url)
    assert {json.loads(each["Body"])["n"] for each in got} <= set(range(8))


def test_a_service_that_answers_nothing_is_a_timeout_within_the_total_one() -> None:
    closing: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        made = client_at(f"http://127.0.0.1:{silent.getsockname()[1]}", closing)
        limits = replace(LIMITS, total_timeout_s=1.0)
        sender = CloudSender(Sessions(Asked([session()])), made, limits, BackgroundLoop())
        reply = sent(sender, request(SQS, in_aws(SQS).url, "role"))
    assert (reply.fault, reply.total_ms < 1_000) == (Fault.TIMEOUT, True)
    assert judge(reply, datetime.now(UTC)).outcome is Outcome.RETRYABLE
    sender.close()


def test_a_service_that_cannot_be_reached_is_tried_again() -> None:
    closing: list[Any] = []
    made = client_at(f"http://127.0.0.1:{free_port()}", closing)
    sender = CloudSender(Sessions(Asked([session()])), made, LIMITS, BackgroundLoop())
    reply = sent(sender, request(SQS, in_aws(SQS).url, "role"))
    assert (reply.fault, judge(reply, datetime.now(UTC)).outcome) == (Fault.NO_RESPONSE, Outcome.RETRYABLE)
    assert "127.0.0.1" not in reply.detail


# Sessions.

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def session(hours: float = 1.0, key: str = "k") -> dict[str, Any]:
    return {
        "Credentials": {
            "AccessKeyId": key,
            "SecretAccessKey": "s",
            "SessionToken": "t",
            "Expiration": NOW + timedelta(hours=hours),
        }
    }


def denied(code: str = "AccessDenied", status: int = 403) -> ClientError:
    answer: Any = {
        "Error": {"Code": code, "Message": "arn:aws:sts::1:assumed-role/secret-name is not authorized"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, "AssumeRole")


@dataclass
class Asked:
    """STS that answers as a test wrote it, and notes what it was asked."""

    answers: list[Any]
    asked: list[dict[str, Any]] = field(default_factory=list)
    waiting: threading.Event | None = None
    reached: threading.Event = field(default_factory=threading.Event)

    def assume_role(self, **asked: object) -> Any:  # noqa: ANN401 - an answer
        self.asked.append(asked)
        self.reached.set()
        if self.waiting:
            self.waiting.wait(PATIENCE_S)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Close nothing."""


def test_a_session_serves_until_shortly_before_its_end_and_is_one_tenants_alone() -> None:
    sts = Asked([session(key="a"), session(key="b"), session(2, key="c")])
    now_s = [NOW.timestamp()]
    sessions = Sessions(sts, lambda: now_s[0])
    assert [sessions.credentials(("r", "relay:t1")).access_key for _ in range(3)] == ["a"] * 3
    assert sessions.credentials(("r", "relay:t2")).access_key == "b"
    now_s[0] += 3_600 - RENEW_S - 1
    assert sessions.credentials(("r", "relay:t1")).access_key == "a"
    now_s[0] += 1
    assert sessions.credentials(("r", "relay:t1")).access_key == "c"
    assert [each["ExternalId"] for each in sts.asked] == ["relay:t1", "relay:t2", "relay:t1"]


def test_many_sends_at_once_assume_a_role_once() -> None:
    sts = Asked([session(key="a")], waiting=threading.Event())
    sessions = Sessions(sts, NOW.timestamp)
    found: list[str | None] = []
    threads = [
        threading.Thread(target=lambda: found.append(sessions.credentials(("r", "x")).access_key))
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    assert sts.waiting
    sts.waiting.set()
    for each in threads:
        each.join(PATIENCE_S)
    assert (found, len(sts.asked)) == (["a"] * 8, 1)


def test_a_denied_role_is_asked_for_again_by_the_next_attempt_and_names_nothing_of_relays() -> None:
    sts = Asked([denied(), denied("InternalFailure", 500), ConnectTimeoutError(endpoint_url="x")])
    sender = CloudSender(Sessions(sts), lambda *_: None, LIMITS, BackgroundLoop())
    of = request(SQS, in_aws(SQS).url, "role")
    replies = [sent(sender, of) for _ in range(3)]
    assert [each.fault for each in replies] == [Fault.ACCESS_DENIED, Fault.CONNECT_FAILED, Fault.TIMEOUT]
    assert not any("secret-name" in each.detail for each in replies)
    assert all(each.unsent for each in replies)


def test_credentials_of_relays_own_that_fail_are_no_fault_of_an_endpoint() -> None:
    sender = CloudSender(Sessions(Asked([denied("ExpiredToken")])), lambda *_: None, LIMITS, BackgroundLoop())
    with pytest.raises(Unavailable):
        sent(sender, request(SQS, in_aws(SQS).url, "role"))


def test_nothing_is_sent_when_assuming_the_role_has_taken_the_time_for_it() -> None:
    sts = Asked([session()], waiting=threading.Event())
    sender = CloudSender(
        Sessions(sts), lambda *_: None, replace(LIMITS, total_timeout_s=0.0), BackgroundLoop()
    )
    assert sts.waiting
    sts.waiting.set()
    reply = sent(sender, request(SQS, in_aws(SQS).url, "role"))
    assert (reply.fault, reply.unsent) == (Fault.TIMEOUT, True)


def test_what_is_cancelled_is_waited_for_so_that_nothing_is_under_way_after_it() -> None:
    going = threading.Event()
    sts = Asked([denied()], waiting=going)
    sender = CloudSender(Sessions(sts), lambda *_: None, LIMITS, BackgroundLoop())

    async def cancelled() -> bool:
        running = asyncio.create_task(sender.send(request(SQS, in_aws(SQS).url, "role")))
        assert await asyncio.to_thread(sts.reached.wait, PATIENCE_S)
        running.cancel()
        await asyncio.sleep(0)
        still = not running.done()
        going.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        return still

    assert asyncio.run(cancelled())
