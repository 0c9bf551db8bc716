"""The release gate at the way out: whatever was registered, nothing leaves for where requests may not go.

The policy is the one of production. Public addresses are asked for of a proxy that is all of the internet;
what is refused is watched for by the interpreter itself, which tells of every look-up and connection.
"""

import asyncio
import itertools
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.adapters.http.connect import Resolve
from chalicelib.adapters.http.dial import Proxy
from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.sender import GuardedSender, SendLimits
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.domain.errors import RelayError
from chalicelib.domain.outcome import DeathReason, Evidence, Fault, Reply, Verdict, judge
from chalicelib.domain.request import Request
from chalicelib.domain.target import Policy, parse_target
from tests.contract.proxying import proxying
from tests.destinations import ANSWERS, PUBLIC, PUBLIC_V4, PUBLIC_V6, REFERENCES, REFUSED
from tests.packets import packets_leaving
from tests.receiver.server import Receiver
from tests.unit.domain.examples import FEW

NAME = "hooks.example.com"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOBODY = Proxy("127.0.0.1", 1)
REBOUND = 50
Send = Callable[[str], Coroutine[Any, Any, Reply]]


def answering(names: Mapping[str, list[str]]) -> Resolve:
    """Resolve these names, and no other; addresses are not to be asked for."""

    async def ask(host: str) -> list[str]:
        if host not in names:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return names[host]

    return ask


@asynccontextmanager
async def sending(
    ask: Resolve, proxy: Proxy | None = None, policy: Policy | None = None
) -> AsyncIterator[Send]:
    """Give what sends an empty request to a URL."""
    transport = GuardedTransport(policy or Policy(), Timeouts(), ask, proxy)
    sender = GuardedSender(transport, SendLimits(), BackgroundLoop())
    try:
        yield lambda url: sender.send(Request(url, (("Content-Length", "0"),), b""))
    finally:
        await transport.aclose()


def sent_to(url: str, names: Mapping[str, list[str]], proxy: Proxy | None = None) -> tuple[Reply, list[str]]:
    """Send once; what came of it, and what left."""

    async def run() -> tuple[Reply, list[str]]:
        async with sending(answering(names), proxy) as send:
            with packets_leaving() as left:
                return await send(url), left

    return asyncio.run(run())


def is_refusal(reply: Reply) -> bool:
    """Say whether a reply is a refusal: dead at once, nothing for the breaker, nothing sent."""
    refused = (reply.status, reply.fault) == (None, Fault.REFUSED)
    assert not refused or judge(reply, NOW).evidence is Evidence.NONE
    assert not refused or judge(reply, NOW).death is DeathReason.REFUSED
    return refused


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_leaves_for_a_url_that_registration_refuses(name: str) -> None:
    url, _ = REFUSED[name]
    reply, left = sent_to(url, {NAME: [PUBLIC_V4], "example.com": [PUBLIC_V4]})
    assert is_refusal(reply)
    assert reply.unsent
    assert left == []


@pytest.mark.parametrize("name", ANSWERS)
def test_f079_nothing_leaves_for_a_name_with_any_answer_that_is_not_public(name: str) -> None:
    reply, left = sent_to(f"https://{NAME}/in", {NAME: ANSWERS[name]})
    assert is_refusal(reply)
    assert reply.unsent
    assert left == []
    assert reply.detail == "the host leads to an address that is not public"


@FEW
@given(
    scheme=st.sampled_from(["https", "HTTPS", "http", "ftp"]),
    host=st.text(alphabet="abc019.-_%:[]@#\\xn\u00fc\u3002\uff11\u00df", max_size=14)
    | st.integers(0, 2**32 - 1).map(lambda number: str(IPv4Address(number)))
    | st.integers(0, 2**128 - 1).map(lambda number: f"[{IPv6Address(number)}]"),
)
def test_registration_and_sending_are_of_one_mind_about_any_url(scheme: str, host: str) -> None:
    url = f"{scheme}://{host}/in"
    try:
        parse_target(url, Policy())
        taken = True
    except RelayError:
        taken = False
    reply, left = sent_to(url, {}, NOBODY)
    assert is_refusal(reply) is not taken
    assert taken or left == []
    assert set(left) <= {f"socket.connect {(NOBODY.address, NOBODY.port)}"}


def test_the_server_is_told_the_name_and_never_an_address(authority: trustme.CA) -> None:
    named: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME, "8.8.8.8").configure_cert(context)
    context.sni_callback = lambda _, name, __: named.append(name)

    async def run(receiver: Receiver) -> None:
        async with (
            proxying(leads_to=receiver.port) as (proxy, _),
            sending(answering({NAME: [PUBLIC_V4]}), proxy) as send,
        ):
            for host in (NAME, f"{NAME}.", "8.8.8.8"):
                assert (await send(f"https://{host}/sink")).status == 200

    with Receiver(ssl_context=context) as receiver:
        asyncio.run(run(receiver))
    assert named == [NAME, None]


@pytest.fixture
def internet(authority: trustme.CA) -> Iterator[Receiver]:
    """Give the receiver that all names and public addresses of these tests lead to."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    hosts = [stored.strip("[]") for _, stored in PUBLIC.values()]
    authority.issue_cert(*dict.fromkeys([NAME, *hosts])).configure_cert(context)
    with Receiver(ssl_context=context) as receiver:
        yield receiver


def asked_for(tunnels: list[str]) -> list[str]:
    return [each.split()[1] for each in tunnels]


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_is_connected_to_by_the_address_that_was_checked(
    internet: Receiver, name: str
) -> None:
    host, stored = PUBLIC[name]
    names = {stored: [PUBLIC_V4]}

    async def run() -> None:
        async with proxying(leads_to=internet.port) as (proxy, tunnels):
            async with sending(answering(names), proxy) as send:
                assert (await send(f"https://{host}/sink")).status == 200
            is_name = stored[-1].isalpha()
            assert asked_for(tunnels) == [f"{PUBLIC_V4 if is_name else stored}:443"]

    asyncio.run(run())
    (met,) = internet.received()
    assert met["headers"]["host"] == stored


def redirecting(internet: Receiver, locations: Mapping[str, str]) -> dict[str, str]:
    """Give for each location a URL that leads there."""
    paths = {}
    for number, (name, location) in enumerate(locations.items()):
        internet.script(f"r{number}", {"status": 307, "headers": {"Location": location}})
        paths[name] = f"https://{NAME}/script/r{number}"
    return paths


def redirected(
    internet: Receiver, urls: Mapping[str, str], names: Mapping[str, list[str]]
) -> dict[str, Reply]:
    """Send to each URL, whose redirect must not be followed over any connection but the one there is."""

    async def run() -> dict[str, Reply]:
        async with proxying(leads_to=internet.port) as (proxy, tunnels):
            async with sending(answering({NAME: [PUBLIC_V4], **names}), proxy) as send:
                assert (await send(f"https://{NAME}/sink")).status == 200
                with packets_leaving() as left:
                    replies = {name: await send(url) for name, url in urls.items()}
            assert asked_for(tunnels) == [f"{PUBLIC_V4}:443"]
            assert left == []
        return replies

    return asyncio.run(run())


def test_f069_no_redirect_leads_to_a_url_that_registration_refuses(internet: Receiver) -> None:
    locations = {name: url for name, (url, _) in REFUSED.items() if "\r" not in url}
    replies = redirected(internet, redirecting(internet, locations), {})
    # What is not https is no place to be led to: the redirect itself is the answer.
    plain = {name for name, url in locations.items() if not url.startswith(("https:", "//"))}
    followed = {name: reply for name, reply in replies.items() if name not in plain | REFERENCES}
    assert [name for name, reply in followed.items() if not is_refusal(reply)] == []
    assert {replies[name].status for name in plain} == {307}
    assert len(internet.received()) == len(locations) + 1


def test_f069_no_redirect_leads_to_a_name_with_any_answer_that_is_not_public(internet: Receiver) -> None:
    hosts = {name: f"inner{number}.example.com" for number, name in enumerate(ANSWERS)}
    names = {hosts[name]: answers for name, answers in ANSWERS.items()}
    urls = redirecting(internet, {name: f"https://{host}/in" for name, host in hosts.items()})
    replies = redirected(internet, urls, names)
    assert [name for name, reply in replies.items() if not is_refusal(reply)] == []
    assert not any(reply.unsent for reply in replies.values())


@pytest.mark.parametrize("status", [301, 302, 303])
def test_f069_another_redirect_to_the_metadata_address_is_not_followed(
    internet: Receiver, status: int
) -> None:
    there = "http://169.254.169.254/latest/meta-data/"
    internet.script("away", {"status": status, "headers": {"Location": there}})
    replies = redirected(internet, {"away": f"https://{NAME}/script/away"}, {})
    assert replies["away"].status == status
    assert judge(replies["away"], NOW).death is DeathReason.PERMANENT_FAILURE


@asynccontextmanager
async def forbidden() -> AsyncIterator[tuple[int, list[str]]]:
    """Listen where nobody may come; who came."""
    came: list[str] = []

    def met(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(str(writer.get_extra_info("peername")))
        writer.close()

    async with await asyncio.start_server(met, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], came


@pytest.mark.parametrize("first", [PUBLIC_V4, PUBLIC_V6])
def test_f080_a_name_that_rebinds_between_a_check_and_its_connection_gains_nothing(
    first: str, internet: Receiver
) -> None:
    asked = itertools.cycle([[first], ["127.0.0.1"]])

    async def rebinding(_: str) -> list[str]:
        return next(asked)

    async def run() -> list[Reply]:
        async with forbidden() as (port, came), proxying(leads_to=internet.port) as (proxy, tunnels):
            policy = Policy(allowed_ports=frozenset({port}))
            async with sending(rebinding, proxy, policy) as send:
                # An answer that is cut short leaves no connection behind, so that each send asks anew.
                replies = [await send(f"https://{NAME}:{port}/cut") for _ in range(REBOUND)]
            checked = f"[{first}]" if ":" in first else first
            assert asked_for(tunnels) == [f"{checked}:{port}"] * (REBOUND // 2)
            assert came == []
        return replies

    replies = asyncio.run(run())
    assert [each.status for each in replies[::2]] == [200] * (REBOUND // 2)
    assert all(is_refusal(each) for each in replies[1::2])
    assert {each["headers"]["host"].partition(":")[0] for each in internet.received()} == {NAME}


def test_f089_a_refusal_is_the_same_whoever_listens_at_the_port() -> None:
    async def run() -> None:
        async with forbidden() as (port, came):
            policy = Policy(allowed_ports=None)
            async with sending(answering({NAME: ["127.0.0.1"]}), policy=policy) as send:
                with packets_leaving() as left:
                    replies = [await send(f"https://{NAME}:{each}/") for each in (port, 1, 443)]
            assert (left, came) == ([], [])
        assert len({(each.fault, each.detail, each.unsent) for each in replies}) == 1
        assert all(is_refusal(each) for each in replies)

    asyncio.run(run())


@pytest.mark.parametrize(
    "trouble",
    [
        socket.gaierror(socket.EAI_NONAME, "NXDOMAIN"),
        socket.gaierror(socket.EAI_AGAIN, "SERVFAIL"),
        TimeoutError("nobody answers"),
    ],
    ids=["NXDOMAIN", "SERVFAIL", "silence"],
)
def test_f065_trouble_with_the_resolver_is_tried_again_and_then_arrives(
    trouble: OSError, internet: Receiver
) -> None:
    asked = itertools.count(1)

    async def troubled(_: str) -> list[str]:
        if next(asked) < 3:
            raise trouble
        return [PUBLIC_V4]

    async def run() -> list[Verdict]:
        async with proxying(leads_to=internet.port) as (proxy, _), sending(troubled, proxy) as send:
            return [judge(await send(f"https://{NAME}/sink"), NOW) for _ in range(3)]

    verdicts = asyncio.run(run())
    assert [each.outcome.value for each in verdicts] == ["retryable", "retryable", "success"]
    assert [each.death for each in verdicts] == [None] * 3
