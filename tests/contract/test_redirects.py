"""Redirects over real sockets: each hop checked and signed for itself, those that are not followed told."""

import asyncio
import base64
import itertools
import ssl
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import pytest
import trustme
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.adapters.ed25519 import NaclEd25519
from chalicelib.adapters.http.fault import TransportFault
from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.redirect import next_hop, told
from chalicelib.adapters.http.sender import GuardedSender, SendLimits
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.domain import signing
from chalicelib.domain.auth import Auth, Basic
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request, authorized, build, without_echo
from chalicelib.domain.secret import MASK, Secret
from chalicelib.domain.signing import (
    Ed25519Key,
    SignatureForm,
    SigningKey,
    sign_asymmetric,
    sign_relay,
    verify,
)
from chalicelib.domain.target import Policy
from tests.receiver.entry import Record
from tests.receiver.server import Receiver
from tests.unit.domain.examples import (
    DELIVERY_ID,
    FEW,
    KEY,
    OTHER_SECRET,
    RECEIVED_S,
    SECRET,
    endpoint,
    event,
    owed,
)

OPEN = Policy(require_https=False, allow_private=True, allowed_ports=None)
HOP_S = 7
LEADS_AWAY = Reply(status=307, headers=(("location", "https://other.example/"),))
BODY = b'{"id":7}'


def to(location: str, status: int = 307) -> Record:
    return {"status": status, "headers": {"Location": location}}


def request_to(
    url: str,
    form: SignatureForm = SignatureForm.RELAY,
    keys: Sequence[SigningKey] = (SECRET,),
    custom: tuple[tuple[str, Secret], ...] = (),
) -> Request:
    receiver = endpoint(url=url, signature=form, headers=custom)
    return build(receiver, event(BODY), owed(), keys, RECEIVED_S)


def sent(request: Request) -> Reply:
    """Send a request by a clock that is some seconds later at each redirect."""
    ticks = itertools.count(RECEIVED_S + HOP_S, HOP_S)

    async def run() -> Reply:
        transport = GuardedTransport(OPEN, Timeouts())
        sender = GuardedSender(transport, SendLimits(), BackgroundLoop(), lambda: next(ticks) * 1000)
        try:
            return await sender.send(request)
        finally:
            await transport.aclose()

    return asyncio.run(run())


def hops(receiver: Receiver) -> Iterable[tuple[int, Record]]:
    """Give the requests that came, each with the moment it should have been signed at."""
    return zip(itertools.count(RECEIVED_S, HOP_S), receiver.received())


@pytest.mark.parametrize("form", list(signing.IDENTITY))
def test_each_hop_is_signed_anew_with_every_live_secret(form: SignatureForm) -> None:
    with Receiver() as receiver:
        last = receiver.script("c", {"status": 200})
        url = receiver.script("a", to(receiver.script("b", to(last, 308))))
        assert sent(request_to(url, form, (SECRET, OTHER_SECRET))).status == 200
        met = list(hops(receiver))
    assert [each["path"] for _, each in met] == ["/script/a", "/script/b", "/script/c"]
    for signed_s, each in met:
        at = datetime.fromtimestamp(signed_s, UTC)
        assert each["headers"][signing.IDENTITY[form][1].lower()] == str(signed_s)
        for secret in (SECRET, OTHER_SECRET):
            assert verify(base64.b64decode(each["body_base64"]), each["headers"], secret, at)


def test_each_hop_is_signed_anew_with_a_key_pair() -> None:
    ed25519 = NaclEd25519()
    pair = Ed25519Key(signing.private_key(KEY, ed25519.public_key(KEY)), ed25519.sign)
    with Receiver() as receiver:
        url = receiver.script("a", to(receiver.script("b", {"status": 200})))
        assert sent(request_to(url, SignatureForm.STANDARD, (pair,))).status == 200
        for signed_s, each in hops(receiver):
            expected = sign_asymmetric(pair, DELIVERY_ID, signed_s, BODY)
            assert each["headers"]["webhook-signature"] == expected


def test_a_request_that_is_not_signed_is_redirected_as_it_is() -> None:
    with Receiver() as receiver:
        url = receiver.script("a", to(receiver.script("b", {"status": 200})))
        assert sent(Request(url, (("Content-Length", "2"), ("X-Own", "1")), b"{}")).status == 200
        first, second = receiver.received()
    assert first["headers"] == second["headers"]


def test_f129_a_hop_that_echoes_its_own_signature_is_not_quoted() -> None:
    signature = sign_relay(SECRET, RECEIVED_S + HOP_S, BODY)
    for answer in (
        {"status": 400, "body": f"bad {signature}"},
        {"raw_b64": base64.b64encode(f"bad {signature}\r\n\r\n".encode()).decode()},
    ):
        with Receiver() as receiver:
            reply = sent(request_to(receiver.script("a", to(receiver.script("b", answer)))))
            assert receiver.received()[1]["headers"]["relay-signature"] == signature
        assert signature.removeprefix("v1=") not in reply.detail + reply.body.decode()
        assert MASK in reply.detail + reply.body.decode()


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_of_a_chat_tells_nothing_of_the_credential_in_its_url(status: int) -> None:
    credential = Secret("123456:AAE-nobody-knows")
    with Receiver() as receiver:
        receiver.script("b", {"status": 403, "body": f"no {credential.reveal()}"})
        url = receiver.script("a", to(f"/script/b?bot={credential.reveal()}", status))
        request = Request(url, (), b"", signed_with=(credential,), address="telegram://@here")
        reply = without_echo(sent(request), request)
    assert reply.status in (302, 403)
    assert credential.reveal() not in reply.detail + reply.body.decode()
    assert MASK in reply.detail + reply.body.decode()


def test_the_owner_s_headers_stay_at_their_origin() -> None:
    custom = (("X-Api-Key", Secret("k3y-0123456789")),)
    with Receiver() as receiver, Receiver() as other:
        elsewhere = other.script("c", {"status": 200})
        url = receiver.script("a", to(receiver.script("b", to(elsewhere))))
        assert sent(request_to(url, custom=custom)).status == 200
        assert [each["headers"].get("x-api-key") for each in receiver.received()] == ["k3y-0123456789"] * 2
        assert "x-api-key" not in other.received()[0]["headers"]


def test_authentication_stays_at_its_origin() -> None:
    auth = Auth(Basic("relay", Secret("p4ss-nobody-knows")))
    with Receiver() as receiver, Receiver() as other:
        elsewhere = other.script("c", to(other.script("d", {"status": 200})))
        url = receiver.script("a", to(receiver.script("b", to(elsewhere))))
        assert sent(authorized(request_to(url), auth)).status == 200
        assert len({each["headers"]["authorization"] for each in receiver.received()}) == 1
        assert len(other.received()) == 2
        assert not [each for each in other.received() if "authorization" in each["headers"]]
    there = next_hop(authorized(request_to("https://one.example/"), auth), LEADS_AWAY, RECEIVED_S)
    assert there is not None
    assert (there.auth, there.custom) == (None, ())


@pytest.mark.parametrize("status", [300, 301, 302, 303])
def test_f068_a_redirect_that_is_not_followed_names_where_it_led(status: int) -> None:
    with Receiver() as receiver:
        reply = sent(request_to(receiver.script("a", to("/moved/T0K3N-abc?key=S3CR3T", status))))
        assert len(receiver.received()) == 1
        shown = f"redirects to {receiver.url(f'/moved/{MASK}?key={MASK}')}; "
    assert (reply.status, reply.fault) == (status, None)
    assert reply.detail.startswith(shown)


def test_the_fourth_redirect_is_named_and_not_followed() -> None:
    with Receiver() as receiver:
        reply = sent(request_to(receiver.script("a", to("#again"))))
        assert len(receiver.received()) == 4
    assert (reply.status, reply.fault) == (307, None)
    assert "/script/a; only 307 and 308 are followed, three times at most" in reply.detail


def test_a_redirect_from_https_to_http_is_named_and_not_followed(authority: trustme.CA) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with Receiver(ssl_context=context) as receiver, Receiver() as plain:
        reply = sent(request_to(receiver.script("a", to(plain.url("/sink")))))
        assert plain.received() == []
    assert reply.status == 307
    assert reply.detail.startswith(f"redirects to {plain.url('/sink')}; ")


@pytest.mark.parametrize("location", ["", "http://[::1"])
def test_a_redirect_to_nowhere_is_an_answer_like_any_other(location: str) -> None:
    with Receiver() as receiver:
        reply = sent(request_to(receiver.script("a", to(location, 302))))
    assert reply.status == 302
    assert ("what is no URL" in reply.detail) == bool(location)


@FEW
@given(
    st.text(alphabet="htps:/[]@?#%.\\:0169a\u00e9 ", max_size=20) | st.text(st.characters(max_codepoint=255)),
    st.sampled_from([302, 307]),
)
@example("https://hooks.example.com:65979/", 307)
@example("https://hooks.example.com:x/", 307)
@example("//[", 302)
def test_no_location_whatever_breaks_the_sender(location: str, status: int) -> None:
    request = request_to("https://hooks.example.com/in")
    reply = Reply(status=status, headers=(("location", location),))
    with suppress(TransportFault):
        following = next_hop(request, reply, RECEIVED_S)
        assert following is None or following.url.startswith("https:")
    assert told(request, reply).detail.isprintable()


def test_a_long_location_is_named_in_part() -> None:
    with Receiver() as receiver:
        reply = sent(request_to(receiver.script("a", to("/" + "a/" * 900, 301))))
    assert "a/a…; only" in reply.detail.replace("/…", "…")
    assert len(reply.detail) < 500


def test_a_redirect_to_a_refused_address_is_refused_and_says_so() -> None:
    with Receiver() as receiver:
        reply = sent(request_to(receiver.script("a", to("ftp://receiver.example/"))))
    assert (reply.status, reply.fault, reply.unsent) == (None, Fault.REFUSED, False)
