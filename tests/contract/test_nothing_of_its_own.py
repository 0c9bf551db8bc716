"""The sender sends what it was given, and nothing that the machine or an earlier answer would add."""

import asyncio
import gzip
import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.sender import GuardedSender, SendLimits
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.domain.outcome import Reply
from chalicelib.domain.request import Request, build
from chalicelib.domain.target import Policy
from tests.receiver.server import Receiver
from tests.unit.domain.examples import RECEIVED_S, SECRET, endpoint, event, owed

OPEN = Policy(require_https=False, allow_private=True, allowed_ports=None)
BOMB = gzip.compress(bytes(20_000_000))
CAP = 2_048


def sent(*urls: str) -> list[Reply]:
    """Send to one URL after the other, all by one sender."""

    async def run() -> list[Reply]:
        transport = GuardedTransport(OPEN, Timeouts())
        sender = GuardedSender(transport, SendLimits(response_max=CAP), BackgroundLoop())
        try:
            return [await sender.send(signed(url)) for url in urls]
        finally:
            await transport.aclose()

    return asyncio.run(run())


def signed(url: str) -> Request:
    return build(endpoint(url=url), event(), owed(), [SECRET], RECEIVED_S)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"])
def test_f091_no_proxy_of_the_environment_is_asked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)  # noqa: FBT003 - the standard library's own form
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert sent(receiver.url("/sink"))[0].status == 200
        with pytest.raises(BlockingIOError):
            proxy.accept()


def test_no_password_of_the_machine_is_sent(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in (".netrc", "_netrc"):
        (tmp_path / name).write_text("machine 127.0.0.1 login relay password nobody-knows\n")
        (tmp_path / name).chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sent(receiver.url("/sink"))[0].status == 200
    (met,) = receiver.received()
    assert "authorization" not in met["headers"]


def test_f058_no_cookie_is_ever_sent_back(receiver: Receiver) -> None:
    baked = {"status": 200, "headers": {"Set-Cookie": "sid=abc; Path=/"}}
    moved = {"status": 307, "headers": {"Set-Cookie": "sid=def; Path=/", "Location": "/sink"}}
    sent(receiver.script("baker", baked), receiver.script("mover", moved), receiver.url("/sink"))
    met = receiver.received()
    assert len(met) == 4
    assert not [each for each in met if "cookie" in each["headers"]]


def test_what_is_sent_is_what_was_built_and_the_host(receiver: Receiver) -> None:
    url = receiver.url("/sink")
    sent(url)
    (met,) = receiver.received()
    built = {name.lower(): value for name, value in signed(url).headers}
    assert met["headers"] == {**built, "host": f"127.0.0.1:{receiver.port}"}
    assert built["accept-encoding"] == "identity"
    assert built["content-length"] == "8"
    assert "transfer-encoding" not in met["headers"]


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "gzip, identity", "br", "aes128gcm"])
def test_f053_f054_nothing_is_unpacked_whatever_an_answer_calls_itself(
    receiver: Receiver, coding: str
) -> None:
    for body in (b"ok", BOMB):
        answer = {
            "status": 200,
            "body_b64": b64encode(body).decode(),
            "headers": {"Content-Encoding": coding},
        }
        (reply,) = sent(receiver.script(f"packed{len(body)}", answer))
        assert (reply.status, reply.body) == (200, body[:CAP])
