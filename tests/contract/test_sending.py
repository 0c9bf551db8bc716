"""Sends of one invocation: in their turn, so many at once, none beyond its time. Sender and fake alike."""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.sender import GuardedSender, SendLimits
from chalicelib.adapters.http.tls import tls_context
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.application.ports import Finished, Outbox, Sender
from chalicelib.domain.outcome import Fault
from chalicelib.domain.request import Request
from chalicelib.domain.target import Policy
from infra import trust
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.scripted_sender import HANGS, Answer, ScriptedSender
from tests.receiver.certificate import self_signed
from tests.receiver.server import Receiver

LATE_MS = 1
PATIENCE_S = 20


@dataclass(frozen=True, slots=True)
class Lines:
    """A sender with two sends at once and a timeout of half a second, and who counts what it sends."""

    sender: Sender
    url: Callable[[str], str]
    now_ms: Callable[[], int]
    arrived: Callable[[], list[str]]


def over_sockets(stack: ExitStack, timeout_s: float = 0.5) -> Lines:
    receiver = stack.enter_context(Receiver())
    policy = Policy(require_https=False, allow_private=True, allowed_ports=None)
    transport, loop = GuardedTransport(policy, Timeouts(5.0, 60.0)), BackgroundLoop()
    sender = GuardedSender(transport, SendLimits(timeout_s, 2_048, 2), loop)
    stack.callback(
        lambda: asyncio.run_coroutine_threadsafe(transport.aclose(), loop.get()).result(PATIENCE_S)
    )

    def arrived() -> list[str]:
        return [each["path"] for each in receiver.received()]

    return Lines(sender, receiver.url, lambda: time.time_ns() // 1_000_000, arrived)


def scripted(_: ExitStack, timeout_s: float = 0.5) -> Lines:
    clock = FixedClock()
    sender = ScriptedSender(
        clock,
        lambda request: HANGS if request.url.startswith("/hang") else Answer(),
        timeout_ms=int(timeout_s * 1000),
        max_in_flight=2,
    )
    return Lines(sender, lambda path: path, clock.now_ms, lambda: [each.request.url for each in sender.sent])


@pytest.fixture(params=[over_sockets, scripted])
def lines(request: pytest.FixtureRequest) -> Iterator[Lines]:
    with ExitStack() as stack:
        yield request.param(stack)


@pytest.fixture
def patient() -> Iterator[Lines]:
    """A sender over sockets whose sends may hang for longer than any of these tests lasts."""
    with ExitStack() as stack:
        yield over_sockets(stack, timeout_s=60.0)


def request_to(url: str) -> Request:
    return Request(url, (("webhook-id", url), ("Content-Length", "2")), b"{}")


def start(lines: Lines, outbox: Outbox) -> Callable[..., None]:
    """Give what starts a send to a path; the path is its key."""

    def begin(path: str, **when: float) -> None:
        partial(outbox.start, path, request_to(lines.url(path)))(**when)

    return begin


def all_of(outbox: Outbox, count: int) -> list[Finished]:
    ended: list[Finished] = []
    while len(ended) < count:
        batch = outbox.finished(PATIENCE_S)
        assert batch, f"{len(ended)} of {count} sends ended"
        ended += batch
    return ended


def test_a_later_send_begins_at_its_moment_and_not_before(lines: Lines) -> None:
    with lines.sender.outbox() as outbox:
        began_ms = lines.now_ms()
        start(lines, outbox)("/sink/later", after_s=0.2)
        start(lines, outbox)("/sink/now")
        now, later = all_of(outbox, 2)
    assert (now.key, later.key) == ("/sink/now", "/sink/later")
    assert later.began_ms >= began_ms + 200 - LATE_MS > now.ended_ms
    assert later.reply.status == 200


def test_sends_begin_in_the_order_of_their_moments(lines: Lines) -> None:
    with lines.sender.outbox() as outbox:
        for tenths in (3, 1, 2):
            start(lines, outbox)(f"/sink/{tenths}", after_s=tenths / 10)
        all_of(outbox, 3)
    assert lines.arrived() == ["/sink/1", "/sink/2", "/sink/3"]


def test_a_send_that_waits_for_room_has_its_whole_timeout_still_before_it(lines: Lines) -> None:
    with lines.sender.outbox() as outbox:
        for number in range(3):
            start(lines, outbox)(f"/hang/{number}")
        *first, last = all_of(outbox, 3)
    assert last.began_ms >= min(each.ended_ms for each in first)
    assert [each.reply.fault for each in (*first, last)] == [Fault.TIMEOUT] * 3
    assert last.ended_ms - last.began_ms >= 500 - LATE_MS


def test_a_send_that_finds_no_room_in_time_is_never_made(lines: Lines) -> None:
    with lines.sender.outbox() as outbox:
        for number in range(2):
            start(lines, outbox)(f"/hang/{number}")
        start(lines, outbox)("/sink/waits", within_s=0.1)
        start(lines, outbox)("/sink/waits-longer")
        given_up, *ended = all_of(outbox, 4)
    assert (given_up.key, given_up.begun, given_up.reply.status) == ("/sink/waits", False, None)
    assert all(each.begun for each in ended)
    assert lines.arrived() == ["/hang/0", "/hang/1", "/sink/waits-longer"]


def test_what_is_left_waiting_is_never_sent(lines: Lines) -> None:
    with lines.sender.outbox() as outbox:
        start(lines, outbox)("/sink/later", after_s=0.05)
        for number in range(3):
            start(lines, outbox)(f"/hang/{number}")
    with lines.sender.outbox() as outbox:
        start(lines, outbox)("/sink/after", after_s=0.2)
        all_of(outbox, 1)
    assert "/sink/later" not in lines.arrived()
    assert "/hang/2" not in lines.arrived()


def test_sends_that_hang_delay_no_other_outbox(patient: Lines) -> None:
    with patient.sender.outbox() as hanging, patient.sender.outbox() as healthy:
        for number in range(6):
            start(patient, hanging)(f"/hang/{number}")
        start(patient, healthy)("/sink/healthy")
        (ended,) = all_of(healthy, 1)
        assert ended.reply.status == 200
        assert hanging.finished(0) == []


def test_one_outbox_never_has_more_in_flight_than_its_limit() -> None:
    with ExitStack() as stack, Receiver() as receiver:
        lines = over_sockets(stack, timeout_s=60.0)
        with lines.sender.outbox() as outbox:
            for number in range(8):
                outbox.start(f"{number}", request_to(receiver.url("/slow?ms=30")))
            all_of(outbox, 8)
        assert receiver.stats()["paths"]["/slow"]["max_in_flight"] == 2


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ssl.SSLContext]:
    """Make the process trust a certificate of 127.0.0.1, and give what serves it."""
    chain_file, key_file = self_signed(tmp_path)
    trust.write(chain_file, tmp_path / "authorities")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "authorities"))
    tls_context.cache_clear()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(chain_file, key_file)
    yield serving
    tls_context.cache_clear()


def test_the_handshake_is_told_apart_from_connecting_and_a_kept_connection_has_neither(
    trusted: ssl.SSLContext,
) -> None:
    with ExitStack() as stack, Receiver(ssl_context=trusted) as receiver:
        lines = over_sockets(stack, timeout_s=5.0)
        replies = []
        for _ in range(2):
            with lines.sender.outbox() as outbox:
                outbox.start("one", request_to(receiver.url("/sink")))
                replies += [each.reply for each in all_of(outbox, 1)]
    first, second = replies
    assert (first.status, second.status) == (200, 200)
    assert first.tls_ms > 0
    assert first.connect_ms + first.tls_ms <= first.first_byte_ms + 1 <= first.total_ms + 1
    assert (second.connect_ms, second.tls_ms) == (0, 0)


def test_a_send_says_whether_anything_of_it_may_have_left() -> None:
    with ExitStack() as stack, Receiver() as receiver:
        lines = over_sockets(stack, timeout_s=5.0)
        nobody = receiver.url("/sink").replace(f":{receiver.port}/", ":1/")
        urls = {
            "taken": receiver.url("/sink"),
            "broken off": receiver.url("/close"),
            "nobody there": nobody,
            "no address": "http://nobody.invalid/",
            "no url": "ftp://receiver.example/",
            "led astray": receiver.url("/redirect?to=ftp://receiver.example/"),
            "led nowhere": receiver.url(f"/redirect?to={nobody}"),
        }
        with lines.sender.outbox() as outbox:
            for name, url in urls.items():
                outbox.start(name, request_to(url))
            unsent = {each.key: each.reply.unsent for each in all_of(outbox, len(urls))}
    assert {name for name, nothing in unsent.items() if nothing} == {"nobody there", "no address", "no url"}
