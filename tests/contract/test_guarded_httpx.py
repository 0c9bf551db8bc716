"""The guard under the httpx API: the same checks and the same connections, over real sockets."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest

from chalicelib.adapters.http.guarded_httpx import GuardedHttpx
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.domain.target import Policy
from tests.receiver.server import Receiver

OPEN = Policy(require_https=False, allow_private=True, allowed_ports=None)
Talk = Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]]


def through(talk: Talk, policy: Policy = OPEN, timeouts: Timeouts | None = None) -> None:
    async def run() -> None:
        guard = GuardedTransport(policy, timeouts or Timeouts())
        async with httpx.AsyncClient(transport=GuardedHttpx(guard), trust_env=False) as client:
            await talk(client)
        await guard.aclose()

    asyncio.run(run())


def test_it_carries_bytes_and_headers_both_ways() -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        answer = await client.post(receiver.url("/status/201"), content=b"\x00\xff", headers={"X-Own": "1"})
        assert answer.status_code == 201
        (met,) = receiver.received()
        assert (met["method"], met["body_base64"]) == ("POST", "AP8=")
        assert met["headers"]["x-own"] == "1"

    with Receiver() as receiver:
        through(talk)


def test_it_takes_other_methods_than_post() -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        await client.get(receiver.url("/sink"))
        assert [each["method"] for each in receiver.received()] == ["GET"]

    with Receiver() as receiver:
        through(talk)


def test_an_address_that_is_not_public_is_refused_before_anything_leaves() -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        with pytest.raises(httpx.UnsupportedProtocol, match="not be sent to"):
            await client.post(receiver.url("/sink"), content=b"x")
        assert receiver.received() == []

    with Receiver() as receiver:
        through(talk, Policy(require_https=False, allowed_ports=None))


def test_a_connection_is_kept_when_all_was_read() -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        for _ in range(3):
            await client.post(receiver.url("/sink"), content=b"x")
        assert len({each["connection"] for each in receiver.received()}) == 1

    with Receiver() as receiver:
        through(talk)


def test_a_receiver_that_hangs_is_a_read_timeout() -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        with pytest.raises(httpx.ReadTimeout):
            await client.post(receiver.url("/hang"), content=b"x")

    with Receiver() as receiver:
        through(talk, timeouts=Timeouts(read_s=0.3))


def test_nobody_at_the_port_is_a_connect_error() -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        with pytest.raises(httpx.ConnectError):
            await client.post(gone, content=b"x")

    with Receiver() as receiver:
        gone = receiver.url("/sink")
    through(talk)
