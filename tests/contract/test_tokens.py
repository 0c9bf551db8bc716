"""Access tokens over real sockets: got once, kept while they are good, and told of nowhere."""

import asyncio
import base64
import itertools
import json
import ssl
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import pytest
import trustme

from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.sender import GuardedSender, SendLimits
from chalicelib.adapters.http.tokens import TOKENS_MAX, Tokens
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.domain.auth import Auth, OAuth2
from chalicelib.domain.oauth2 import token_of
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request
from chalicelib.domain.secret import MASK, Secret
from chalicelib.domain.target import Policy
from tests.receiver.entry import Record
from tests.receiver.server import Receiver

OPEN = Policy(require_https=False, allow_private=True, allowed_ports=None)
CLIENT_ID, CLIENT_SECRET = "relay app", "hush: 100% +/="
ONE, TWO = "token-one-0123456789", "token-two-0123456789"
HOUR_S = 3_600
NOT_TAKEN = "a kept access token was answered 401"
Talk = Callable[[GuardedSender], Coroutine[Any, Any, None]]


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.ms


def issued(token: str = ONE, **fields: object) -> Record:
    answer = {"access_token": token, "token_type": "Bearer", "expires_in": HOUR_S, **fields}
    return {"status": 200, "headers": {"Content-Type": "application/json"}, "body": json.dumps(answer)}


def sending(
    talk: Talk, clock: Clock | None = None, limits: SendLimits | None = None, policy: Policy = OPEN
) -> None:
    async def run() -> None:
        transport = GuardedTransport(policy, Timeouts())
        sender = GuardedSender(transport, limits or SendLimits(), BackgroundLoop(), (clock or Clock()).now_ms)
        await talk(sender)
        await transport.aclose()
        await asyncio.sleep(0)

    asyncio.run(run())


@contextmanager
def both(*answers: Record, at: Record | None = None) -> Iterator[tuple[Receiver, Request]]:
    """Give a receiver that hands out tokens and takes requests, and a request to it."""
    with Receiver() as receiver:
        token_url = receiver.script("token", *(answers or (issued(),)))
        url = receiver.script("hook", *([at] if at else [{"status": 200}]))
        yield receiver, to(url, token_url)


def to(url: str, token_url: str, **fields: Any) -> Request:  # noqa: ANN401 - any field, as in replace()
    oauth2 = OAuth2(token_url, CLIENT_ID, Secret(CLIENT_SECRET), **fields)
    return Request(url, (("Content-Length", "2"),), b"{}", auth=Auth(oauth2=oauth2))


def met(receiver: Receiver, path: str) -> list[Record]:
    return [each for each in receiver.received() if each["path"].endswith(path)]


def tokens_met(receiver: Receiver) -> list[str]:
    values = [each["headers"].get("authorization", "") for each in met(receiver, "/hook")]
    return [each.removeprefix("Bearer ") for each in values]


def decoded(entry: Record) -> dict[str, list[str]]:
    return parse_qs(base64.b64decode(entry["body_base64"]).decode())


def test_a_token_is_got_with_the_client_s_credentials_and_sent() -> None:
    async def talk(sender: GuardedSender) -> None:
        request = replace(
            request_, auth=Auth(oauth2=replace(oauth2, scope="events write", audience="https://a/"))
        )
        assert (await sender.send(request)).status == 200

    with both() as (receiver, request_):
        assert request_.auth is not None
        assert request_.auth.oauth2 is not None
        oauth2 = request_.auth.oauth2
        sending(talk)
        (asked,) = met(receiver, "/token")
        pair = "relay+app:hush%3A+100%25+%2B%2F%3D"
        assert asked["headers"]["authorization"] == "Basic " + base64.b64encode(pair.encode()).decode()
        assert decoded(asked) == {
            "grant_type": ["client_credentials"],
            "scope": ["events write"],
            "audience": ["https://a/"],
        }
        assert tokens_met(receiver) == [ONE]


def test_credentials_go_in_the_form_where_that_is_asked_for() -> None:
    async def talk(sender: GuardedSender) -> None:
        await sender.send(
            to(receiver.script("hook", {"status": 200}), receiver.script("token", issued()), in_body=True)
        )

    with Receiver() as receiver:
        sending(talk)
        (asked,) = met(receiver, "/token")
        assert "authorization" not in asked["headers"]
        assert decoded(asked) == {
            "grant_type": ["client_credentials"],
            "client_id": [CLIENT_ID],
            "client_secret": [CLIENT_SECRET],
        }


@pytest.mark.parametrize(
    "told, good_s",
    [
        ({}, HOUR_S - 60),
        ({"expires_in": "600"}, 540),
        ({"expires_in": 30}, 27),
        ({"expires_in": None}, 270),
        ({"expires_in": "soon"}, 270),
        ({"expires_in": True}, 270),
        ({"expires_in": -5}, 270),
        ({"expires_in": 10**8}, 86_400 - 60),
    ],
)
def test_a_token_is_kept_until_shortly_before_it_expires(told: dict[str, Any], good_s: int) -> None:
    clock = Clock()

    async def talk(sender: GuardedSender) -> None:
        await sender.send(request)
        clock.ms += good_s * 1000 - 1
        await sender.send(request)
        clock.ms += 1
        await sender.send(request)

    with both(issued(**told), issued(TWO)) as (receiver, request):
        sending(talk, clock)
        assert tokens_met(receiver) == [ONE, ONE, TWO]


def test_it_is_got_once_for_many_who_need_it_at_a_time() -> None:
    async def talk(sender: GuardedSender) -> None:
        replies = await asyncio.gather(*(sender.send(request) for _ in range(20)))
        assert {each.status for each in replies} == {200}

    with both({**issued(), "delay_ms": 50}) as (receiver, request):
        sending(talk)
        assert len(met(receiver, "/token")) == 1
        assert tokens_met(receiver) == [ONE] * 20


def test_endpoints_of_other_credentials_have_tokens_of_their_own() -> None:
    async def talk(sender: GuardedSender) -> None:
        await sender.send(to(receiver.script("hook", {"status": 200}), token_url))
        await sender.send(to(receiver.script("hook", {"status": 200}), token_url, scope="other"))

    with Receiver() as receiver:
        token_url = receiver.script("token", issued(), issued(TWO))
        sending(talk)
        assert tokens_met(receiver) == [ONE, TWO]


def test_one_that_is_not_taken_any_more_is_got_anew_and_the_request_sent_once_more() -> None:
    async def talk(sender: GuardedSender) -> None:
        assert (await sender.send(request)).status == 200
        reply = await sender.send(request)
        assert (reply.status, reply.detail) == (200, f"sent again with a new access token: {NOT_TAKEN}")

    with both(issued(), issued(TWO)) as (receiver, request):
        receiver.script("hook", {"status": 200}, {"status": 401}, {"status": 200})
        sending(talk)
        assert tokens_met(receiver) == [ONE, ONE, TWO]


def test_what_fails_after_that_says_so_and_that_something_was_sent() -> None:
    async def talk(sender: GuardedSender) -> None:
        await sender.send(request)
        reply = await sender.send(request)
        assert (reply.fault, reply.unsent) == (Fault.TOKEN_FAILED, False)
        assert reply.detail == f"{NOT_TAKEN}; no access token could be got: the token URL answered 503"

    with both(issued(), {"status": 503}) as (receiver, request):
        receiver.script("hook", {"status": 200}, {"status": 401})
        sending(talk)


def test_an_echo_of_a_token_that_was_not_taken_is_masked_too() -> None:
    async def talk(sender: GuardedSender) -> None:
        await sender.send(request)
        reply = await sender.send(request)
        assert (reply.status, reply.body.decode()) == (400, f"no more {MASK}, now {MASK}")

    with both(issued(), issued(TWO)) as (receiver, request):
        echo = {"status": 400, "body": f"no more {ONE}, now {TWO}"}
        receiver.script("hook", {"status": 200}, {"status": 401}, echo)
        sending(talk)


def test_many_that_are_not_taken_are_got_anew_once() -> None:
    async def talk(sender: GuardedSender) -> None:
        await sender.send(request)
        replies = await asyncio.gather(*(sender.send(request) for _ in range(5)))
        assert [each.status for each in replies] == [200] * 5

    with both(issued(), {**issued(TWO), "delay_ms": 200}) as (receiver, request):
        receiver.script("hook", {"status": 200}, *[{"status": 401}] * 5, {"status": 200})
        sending(talk)
        assert len(met(receiver, "/token")) == 2
        assert tokens_met(receiver) == [ONE] * 6 + [TWO] * 5


def test_a_401_to_a_token_that_was_just_got_is_the_answer_and_the_next_request_gets_another() -> None:
    async def talk(sender: GuardedSender) -> None:
        assert (await sender.send(request)).status == 401
        assert len(tokens_met(receiver)) == 1
        assert (await sender.send(request)).status == 200

    with both(issued(), issued(TWO)) as (receiver, request):
        receiver.script("hook", {"status": 401}, {"status": 200})
        sending(talk)
        assert tokens_met(receiver) == [ONE, TWO]


def failed(answer: Record, limits: SendLimits | None = None) -> Reply:
    """Ask for a token in vain; the endpoint hears of nothing."""
    replies: list[Reply] = []

    async def talk(sender: GuardedSender) -> None:
        replies.append(await sender.send(request))

    with both(answer) as (receiver, request):
        sending(talk, limits=limits)
        assert tokens_met(receiver) == []
    (reply,) = replies
    assert reply.unsent
    for secret in (CLIENT_SECRET, ONE, "hush"):
        assert secret not in str(reply)
    return reply


NO_TOKEN = "the token URL's answer holds no access token"
ECHO = json.dumps({"error": "invalid_client", "error_description": f"{CLIENT_SECRET} is not it"})


@pytest.mark.parametrize(
    "answer, words",
    [
        ({"status": 401, "body": ECHO}, "the token URL answered 401 (invalid_client)"),
        ({"status": 400, "body": json.dumps({"error": CLIENT_SECRET})}, "the token URL answered 400"),
        ({"status": 400, "body": json.dumps({"error": ["invalid_client"]})}, "the token URL answered 400"),
        ({"status": 503, "body": "<html>" + CLIENT_SECRET}, "the token URL answered 503"),
        ({"status": 307, "headers": {"Location": "/sink"}}, "the token URL answered 307"),
        ({"status": 200, "body": "[]"}, NO_TOKEN),
        ({"status": 200, "body": "[" * 100_000}, "the token URL's answer is too long"),
        ({"status": 200, "body": "[" * 60_000}, NO_TOKEN),
        (issued(f"{ONE}\r\nX-Smuggled: 1"), NO_TOKEN),
        (issued(""), NO_TOKEN),
        (issued(token_type="mac"), "the token URL's answer holds a token of another type than bearer"),
        ({"do": "close"}, "the connection was closed before a whole answer"),
    ],
)
def test_why_there_is_no_token_is_told_in_words_of_its_own_and_without_a_secret(
    answer: Record, words: str
) -> None:
    reply = failed(answer)
    assert (reply.fault, reply.detail) == (Fault.TOKEN_FAILED, f"no access token could be got: {words}")


def test_a_token_url_that_hangs_is_given_the_time_of_a_request() -> None:
    reply = failed({"do": "hang"}, SendLimits(total_timeout_s=0.3))
    assert reply.fault is Fault.TOKEN_FAILED
    assert reply.detail.endswith("within the total timeout")
    assert reply.total_ms < 3_000


def test_the_token_s_url_is_held_to_the_address_policy() -> None:
    async def talk(sender: GuardedSender) -> None:
        reply = await sender.send(to("https://93.184.215.14/", receiver.url("/token")))
        assert (reply.fault, reply.unsent) == (Fault.REFUSED, True)
        assert reply.detail.startswith("no access token could be got: ")

    with Receiver() as receiver:
        sending(talk, policy=Policy(require_https=False, allowed_ports=None))
        assert receiver.received() == []


def test_an_echo_of_the_token_is_masked() -> None:
    async def talk(sender: GuardedSender) -> None:
        reply = await sender.send(request)
        assert reply.body.decode() == f"you sent {MASK}"
        receiver.script("hook", {"raw_b64": base64.b64encode(f"{ONE}\r\n\r\n".encode()).decode()})
        reply = await sender.send(request)
        assert reply.fault is Fault.PROTOCOL_ERROR
        assert ONE not in reply.detail

    with both(at={"status": 400, "body": f"you sent Bearer {ONE}"}) as (receiver, request):
        sending(talk)


def test_a_redirect_to_another_origin_gets_no_token() -> None:
    async def talk(sender: GuardedSender) -> None:
        assert (await sender.send(request)).status == 200

    with Receiver() as other, both() as (receiver, request):
        receiver.script("hook", {"status": 307, "headers": {"Location": other.url("/sink")}})
        sending(talk)
        assert tokens_met(receiver) == [ONE]
        assert ["authorization" in each["headers"] for each in other.received()] == [False]


def test_an_authority_that_is_trusted_for_an_endpoint_is_trusted_for_its_token_too() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def talk(sender: GuardedSender) -> None:
        request = to(receiver.script("hook", {"status": 200}), receiver.script("token", issued()))
        assert (await sender.send(request)).fault is Fault.TOKEN_FAILED
        assert request.auth is not None
        trusting = replace(request.auth, authorities=authority.cert_pem.bytes().decode())
        assert (await sender.send(replace(request, auth=trusting))).status == 200

    with Receiver(ssl_context=context) as receiver:
        sending(talk)
        assert tokens_met(receiver) == [ONE]


def test_so_many_are_kept_and_no_more() -> None:
    numbers = itertools.count(1)

    async def run() -> None:
        transport = GuardedTransport(OPEN, Timeouts())
        tokens = Tokens(transport, 5.0, Clock().now_ms)
        for number in range(TOKENS_MAX):
            oauth2 = OAuth2("https://unused.example/", str(number), Secret("hush-hush"))
            body = json.dumps({"access_token": f"t{next(numbers)}"}).encode()
            tokens.keep((oauth2, ""), token_of(200, body, Clock().now_ms()))
        assert request.auth is not None
        assert request.auth.oauth2 is not None
        assert (await tokens.get(request.auth, request.auth.oauth2))[1]
        assert len(tokens) == TOKENS_MAX
        await transport.aclose()

    with both() as (_, request):
        asyncio.run(run())
