"""A line that is written for a function's call names it, whichever thread of the call's work writes it."""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError

from chalicelib.adapters.cloud import CloudSender
from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.resolve import Resolver
from chalicelib.adapters.http.sender import LoopOutbox, SendLimits
from chalicelib.application.ports import Unavailable
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.outcome import Reply
from chalicelib.domain.request import Errand, Request
from chalicelib.telemetry import invocation, logger

NAMED = {"function_name": "relay-deliver", "function_request_id": "request-1"}


class Lines(logging.Handler):
    """The JSON of what is logged, by the thread that wrote it."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append((record.threadName or "", json.loads(self.format(record))))


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    handler.setFormatter(logger().registered_formatter)
    logging.getLogger("relay").addHandler(handler)
    yield handler
    logging.getLogger("relay").removeHandler(handler)


def names(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name in NAMED}


def work(outbox: LoopOutbox, request: Request) -> None:
    with invocation(*NAMED.values()), outbox:
        outbox.start("one", request)
        outbox.finished(10)


REQUEST = Request("https://receiver.example/", (), b"")


def test_a_line_of_the_sender_s_thread_and_of_the_resolver_s(lines: Lines) -> None:
    def look_up(_host: str) -> list[str]:
        logger().info("looked.up")
        return []

    resolver = Resolver(look_up)

    async def send(_request: Request) -> Reply:
        logger().info("sent")
        await resolver.addresses("receiver.example")
        return Reply()

    work(LoopOutbox(BackgroundLoop().get(), send, 1), REQUEST)
    (sender, sent), (resolving, looked_up) = lines.said
    assert (sender, resolving) == ("relay-sender", "relay-resolver_0")
    assert names(sent) == names(looked_up) == NAMED


def test_a_line_of_a_thread_that_calls_aws(lines: Lines) -> None:
    class Sessions:
        def credentials(self, _role: object) -> object:
            logger().info("assumed")
            raise NoCredentialsError

    sender = CloudSender(Sessions(), lambda *_: None, SendLimits(), BackgroundLoop())  # type: ignore[arg-type] # what is asked of it
    errand = Errand(Transport.SQS, "arn:aws:iam::123456789012:role/relay-deliver-a", "x", {}, 1)
    with pytest.raises(Unavailable):
        work(sender.outbox(), Request("arn:aws:sqs:eu-west-1:123456789012:q", (), b"", errand=errand))
    ((thread, assumed),) = lines.said
    assert thread.startswith("cloud")
    assert names(assumed) == NAMED


def test_a_line_before_and_after_names_no_call(lines: Lines) -> None:
    with invocation(*NAMED.values()):
        pass
    logger().info("after")
    ((_, after),) = lines.said
    assert names(after) == {}


def test_calls_side_by_side_keep_their_names_apart(lines: Lines) -> None:
    async def call(number: int) -> None:
        with invocation("relay-api", f"request-{number}"):
            await asyncio.sleep(0)
            logger().info("said", extra={"number": number})
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(call(1), call(2))

    asyncio.run(both())
    assert [line["function_request_id"] for _, line in lines.said] == [
        f"request-{line['number']}" for _, line in lines.said
    ]
    assert len(lines.said) == 2
