"""Connecting under the policy, over real sockets: what was checked is what is connected to, in time."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import trustme

from chalicelib.adapters.http import race
from chalicelib.adapters.http.connect import Resolve, Way, open_checked
from chalicelib.adapters.http.fault import TransportFault
from chalicelib.adapters.http.tls import tls_context
from chalicelib.domain.outcome import Fault
from chalicelib.domain.target import Policy, Target
from tests.contract.proxying import proxying

HERE, ALSO_HERE, NOBODY = "127.0.0.1", "127.0.0.2", "127.0.0.3"
OPEN = Policy(require_https=False, allow_private=True, allowed_ports=None)
PATIENCE_S = 5.0


def answers(*addresses: str) -> Resolve:
    """Answer every question with the same addresses."""

    async def ask(_: str) -> list[str]:
        return list(addresses)

    return ask


@asynccontextmanager
async def listening(
    *hosts: str, context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, list[str]]]:
    """Listen on one port of several loopback addresses; which of them were connected to."""
    reached: list[str] = []

    def met(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(str(writer.get_extra_info("sockname")[0]))
        writer.close()

    first = await asyncio.start_server(met, hosts[0], 0, ssl=context)
    port = first.sockets[0].getsockname()[1]
    more = [await asyncio.start_server(met, host, port, ssl=context) for host in hosts[1:]]
    try:
        yield port, reached
    finally:
        for each in (first, *more):
            each.close()
            await each.wait_closed()


def through(run: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(run())


async def fault_of(target: Target, policy: Policy, ask: Resolve, within_s: float = PATIENCE_S) -> Fault:
    """Connect, which must fail, and say at what."""
    with pytest.raises(TransportFault) as caught:
        await open_checked(target, Way(policy, ask), within_s)
    return caught.value.fault


async def visit(target: Target, policy: Policy, ask: Resolve) -> None:
    """Connect and hang up when the other side does."""
    reader, writer = (await open_checked(target, Way(policy, ask), PATIENCE_S)).streams
    await reader.read()
    writer.close()


def test_f080_what_was_checked_is_connected_to_however_the_name_answers_next_time() -> None:
    asked: list[str] = []

    async def rebinding(host: str) -> list[str]:
        asked.append(host)
        return [HERE] if len(asked) == 1 else [ALSO_HERE]

    async def run() -> None:
        async with listening(HERE, ALSO_HERE) as (port, reached):
            await visit(Target("http", "rebinds.example", port, "/"), OPEN, rebinding)
            assert (asked, reached) == (["rebinds.example"], [HERE])

    through(run)


@pytest.mark.parametrize("others", [[], ["93.184.215.14"], ["2606:2800:21f:cb07:6820:80da:af6b:8b2c"]])
def test_f079_a_name_with_any_refused_answer_is_refused_and_no_packet_leaves(others: list[str]) -> None:
    async def run() -> None:
        async with listening(HERE) as (port, reached):
            target, strict = (
                Target("http", "mixed.example", port, "/"),
                Policy(require_https=False, allowed_ports=None),
            )
            for addresses in ([*others, HERE], [HERE, *others]):
                assert await fault_of(target, strict, answers(*addresses)) is Fault.REFUSED
            assert reached == []

    through(run)


def test_f089_the_refusal_names_the_rule_and_not_the_address() -> None:
    async def run() -> None:
        with pytest.raises(TransportFault) as caught:
            await open_checked(
                Target("https", "inner.example", 443, "/"), Way(Policy(), answers("10.1.2.3")), 1.0
            )
        assert caught.value.fault is Fault.REFUSED
        assert "10.1.2.3" not in caught.value.detail
        assert "public" in caught.value.detail

    through(run)


def test_the_second_address_is_tried_when_the_first_refuses() -> None:
    async def run() -> None:
        async with listening(ALSO_HERE) as (port, reached):
            await visit(Target("http", "two.example", port, "/"), OPEN, answers(HERE, ALSO_HERE))
            assert reached == [ALSO_HERE]

    through(run)


def test_f091_an_outbound_proxy_is_told_the_checked_address_and_never_the_name(authority: trustme.CA) -> None:
    async def run() -> None:
        context = serving(authority.issue_cert("good.example"))
        async with listening(ALSO_HERE, context=context) as (port, reached), proxying() as (proxy, asked):
            way = Way(OPEN, answers(ALSO_HERE), proxy)
            opened = await open_checked(Target("https", "good.example", port, "/"), way, PATIENCE_S)
            await opened.streams[0].read()
            opened.streams[1].close()
        assert reached == [ALSO_HERE]
        assert asked == [f"CONNECT {ALSO_HERE}:{port} HTTP/1.1\r\nHost: {ALSO_HERE}:{port}\r\n\r\n"]

    through(run)


def test_f091_a_proxy_is_asked_for_nothing_that_the_policy_refuses() -> None:
    async def run() -> None:
        async with proxying() as (proxy, asked):
            way = Way(Policy(require_https=False, allowed_ports=None), answers(ALSO_HERE), proxy)
            with pytest.raises(TransportFault) as caught:
                await open_checked(Target("http", "inner.example", 80, "/"), way, PATIENCE_S)
        assert caught.value.fault is Fault.REFUSED
        assert asked == []

    through(run)


def test_a_proxy_that_will_not_connect_is_a_failed_connection() -> None:
    async def run() -> None:
        async with proxying(refuses=ALSO_HERE) as (proxy, asked):
            way = Way(OPEN, answers(ALSO_HERE), proxy)
            with pytest.raises(TransportFault, match="outbound proxy") as caught:
                await open_checked(Target("http", "shut.example", 80, "/"), way, PATIENCE_S)
        assert caught.value.fault is Fault.CONNECT_FAILED
        assert len(asked) == 1

    through(run)


def test_a_third_address_is_never_tried() -> None:
    async def run() -> None:
        async with listening(ALSO_HERE) as (port, reached):
            target = Target("http", "three.example", port, "/")
            assert await fault_of(target, OPEN, answers(HERE, NOBODY, ALSO_HERE)) is Fault.CONNECT_FAILED
            assert reached == []

    through(run)


def test_an_address_that_says_nothing_gets_a_head_start_and_no_more() -> None:
    async def run() -> None:
        async with listening(ALSO_HERE) as (port, reached):
            with full(HERE, port):
                began = asyncio.get_running_loop().time()
                await visit(Target("http", "slow.example", port, "/"), OPEN, answers(HERE, ALSO_HERE))
                took_s = asyncio.get_running_loop().time() - began
        assert reached == [ALSO_HERE]
        assert race.HEAD_START_S <= took_s < PATIENCE_S

    through(run)


def test_addresses_that_say_nothing_end_with_the_connect_timeout() -> None:
    async def run() -> None:
        async with listening(NOBODY) as (port, _):
            with full(HERE, port), full(ALSO_HERE, port):
                target = Target("http", "silent.example", port, "/")
                fault = await fault_of(target, OPEN, answers(HERE, ALSO_HERE), within_s=0.6)
        assert fault is Fault.CONNECT_TIMEOUT

    through(run)


@contextmanager
def full(host: str, port: int) -> Iterator[None]:
    """Make a port's queue of connections full, so that further ones hear nothing."""
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server((host, port), backlog=0))
        for _ in range(4):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)  # noqa: FBT003 - the standard library's own form
            waiting.connect_ex(listener.getsockname())
        yield


@pytest.mark.parametrize(
    "addresses, tried",
    [
        (["192.0.2.1"], ("192.0.2.1",)),
        (["192.0.2.1", "192.0.2.2", "2001:db8::1"], ("192.0.2.1", "2001:db8::1")),
        (["2001:db8::1", "2001:db8::2", "192.0.2.1"], ("2001:db8::1", "192.0.2.1")),
        (["192.0.2.1", "192.0.2.2", "192.0.2.3"], ("192.0.2.1", "192.0.2.2")),
    ],
)
def test_one_address_of_each_family_is_tried_if_there_are_both(
    addresses: list[str], tried: tuple[str, ...]
) -> None:
    assert race.two_of(addresses) == tried


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


async def handshake_with(context: ssl.SSLContext | None, host: str = "good.example") -> TransportFault | None:
    """Shake hands with a server at a name, and give what that failed at."""
    async with listening(HERE, context=context) as (port, _):
        try:
            await visit(Target("https", host, port, "/"), OPEN, answers(HERE))
        except TransportFault as fault:
            return fault
    return None


def fault_with(context: ssl.SSLContext | None, host: str = "good.example") -> tuple[Fault, str] | None:
    fault = asyncio.run(handshake_with(context, host))
    return (fault.fault, fault.detail) if fault else None


def test_a_name_that_its_certificate_has_is_trusted(authority: trustme.CA) -> None:
    assert fault_with(serving(authority.issue_cert("good.example"))) is None


def test_an_address_that_its_certificate_has_is_trusted(authority: trustme.CA) -> None:
    assert fault_with(serving(authority.issue_cert(HERE)), HERE) is None


def test_an_unknown_authority_is_its_own_fault(authority: trustme.CA) -> None:
    stranger = serving(trustme.CA().issue_cert("good.example"))
    fault, words = fault_with(stranger) or (None, "")
    assert fault is Fault.CERTIFICATE_UNTRUSTED
    assert words.startswith("the certificate is not trusted: ")


def test_an_expired_certificate_is_its_own_fault(authority: trustme.CA) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=400)
    old = authority.issue_cert("good.example", not_before=long_ago, not_after=long_ago + timedelta(days=1))
    assert fault_with(serving(old)) == (Fault.CERTIFICATE_EXPIRED, "the certificate has expired")


def test_a_certificate_of_the_future_says_so(authority: trustme.CA) -> None:
    some_day = datetime.now(UTC) + timedelta(days=400)
    early = authority.issue_cert("good.example", not_before=some_day, not_after=some_day + timedelta(days=1))
    assert fault_with(serving(early)) == (Fault.CERTIFICATE_EXPIRED, "the certificate is not valid yet")


@pytest.mark.parametrize(
    "named, host, words",
    [
        ("other.example", "good.example", "the certificate is for another host name"),
        ("*.good.example", "good.example", "the certificate is for another host name"),
        ("good.example", HERE, "the certificate is for another address"),
    ],
)
def test_a_certificate_of_another_name_is_its_own_fault(
    authority: trustme.CA, named: str, host: str, words: str
) -> None:
    assert fault_with(serving(authority.issue_cert(named)), host) == (Fault.CERTIFICATE_NAME, words)


def test_a_context_is_made_once_for_the_process(authority: trustme.CA) -> None:
    assert tls_context() is tls_context()
    assert tls_context().verify_mode is ssl.CERT_REQUIRED
    assert tls_context().check_hostname
