"""Endpoints that ask who calls: what is given for that is used, never shown, and never goes astray."""

import base64
import json
import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from chalicelib.domain.secret import MASK
from tests.handlers.conftest import Lines
from tests.handlers.relay import URL, Relay
from tests.handlers.test_secret_cases import all_that_is_kept
from tests.receiver import Receiver
from tests.unit.domain.chats import ADDRESSES, CHATS, CREDENTIALS

PASSWORD = "hush-hush: ÄÖÜ 0123"
CLIENTS, SERVERS = trustme.CA(), trustme.CA()
CLIENT, OTHER_CLIENT = CLIENTS.issue_cert("relay.example"), CLIENTS.issue_cert("relay.example")
LONG_AGO = datetime.now(UTC) - timedelta(days=400)
EXPIRED = CLIENTS.issue_cert("relay.example", not_before=LONG_AGO, not_after=LONG_AGO + timedelta(days=1))
CHAIN, SECRET_KEY = CLIENT.cert_chain_pems[0].bytes().decode(), CLIENT.private_key_pem.bytes().decode()
CERTIFIED = {"client_certificate": {"certificate": CHAIN, "key": SECRET_KEY}}
AUTHORITY = SERVERS.cert_pem.bytes().decode()
BASIC = {"basic": {"username": "relay", "password": PASSWORD}}
VALUE = "Basic " + base64.b64encode(f"relay:{PASSWORD}".encode()).decode()
SHOWN: dict[str, Any] = {
    "basic": {"username": "relay", "password": MASK},
    "oauth2": None,
    "client_certificate": None,
    "trusted_authorities": [],
}
CLIENT_SECRET = "hush-hush-0123456789"
OAUTH2 = {"token_url": "https://id.example/token", "client_id": "relay", "client_secret": CLIENT_SECRET}
NO_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def certified(certificate: str = CHAIN, key: str = SECRET_KEY) -> dict[str, Any]:
    return {"client_certificate": {"certificate": certificate, "key": key}}


def oauth2(**fields: object) -> dict[str, Any]:
    return {"oauth2": {name: value for name, value in {**OAUTH2, **fields}.items() if value is not None}}


REFUSED: dict[str, tuple[object, str, str]] = {
    "no object": ("basic", "field_invalid", "auth"),
    "empty": ({}, "field_invalid", "auth"),
    "nothing but null": ({"basic": None}, "field_invalid", "auth"),
    "no password": ({"basic": {"username": "relay"}}, "field_invalid", "auth.basic.password"),
    "an empty password": (
        {"basic": {"username": "relay", "password": ""}},
        "field_invalid",
        "auth.basic.password",
    ),
    "f130 the mask": (
        {"basic": {"username": "relay", "password": MASK}},
        "field_invalid",
        "auth.basic.password",
    ),
    "a user name with a colon": (
        {"basic": {"username": "a:b", "password": "x"}},
        "field_invalid",
        "auth.basic.username",
    ),
    "a line break": (
        {"basic": {"username": "a", "password": "x\r\ny"}},
        "field_invalid",
        "auth.basic.password",
    ),
    "no certificate": (certified(NO_CERTIFICATE), "field_invalid", "auth.client_certificate.certificate"),
    "a certificate without its key": (
        {"client_certificate": {"certificate": CHAIN}},
        "field_invalid",
        "auth.client_certificate.key",
    ),
    "a certificate and the key of another": (
        certified(key=OTHER_CLIENT.private_key_pem.bytes().decode()),
        "field_invalid",
        "auth.client_certificate",
    ),
    "a certificate that has expired": (
        certified(EXPIRED.cert_chain_pems[0].bytes().decode(), EXPIRED.private_key_pem.bytes().decode()),
        "field_invalid",
        "auth.client_certificate.certificate",
    ),
    "f130 the mask as key": (certified(key=MASK), "field_invalid", "auth.client_certificate.key"),
    "a key with a passphrase": (
        certified(key=SECRET_KEY.replace("PRIVATE", "ENCRYPTED PRIVATE")),
        "field_invalid",
        "auth.client_certificate.key",
    ),
    "a chain that is too long": (
        certified(CHAIN * 20),
        "field_invalid",
        "auth.client_certificate.certificate",
    ),
    "no authority": ({"trusted_authorities": "none"}, "field_invalid", "auth.trusted_authorities"),
    "a broken authority": (
        {"trusted_authorities": NO_CERTIFICATE},
        "field_invalid",
        "auth.trusted_authorities",
    ),
    "too many authorities": (
        {"trusted_authorities": AUTHORITY * 40},
        "field_invalid",
        "auth.trusted_authorities",
    ),
    "no token URL": (oauth2(token_url=None), "field_invalid", "auth.oauth2.token_url"),
    "a token URL that is none": (oauth2(token_url="nonsense"), "url_invalid", "auth.oauth2.token_url"),
    "a token URL with a user": (
        oauth2(token_url="https://a:b@id.example/"),
        "url_invalid",
        "auth.oauth2.token_url",
    ),
    "f130 a masked token URL": (
        oauth2(token_url=f"https://id.example/?k={MASK}"),
        "field_invalid",
        "auth.oauth2.token_url",
    ),
    "no secret": (oauth2(client_secret=None), "field_invalid", "auth.oauth2.client_secret"),
    "f130 the mask as secret": (oauth2(client_secret=MASK), "field_invalid", "auth.oauth2.client_secret"),
    "an odd scope": (oauth2(scope="a\nb"), "field_invalid", "auth.oauth2.scope"),
    "credentials nowhere": (oauth2(credentials_in="url"), "field_invalid", "auth.oauth2.credentials_in"),
    "two ways at once": ({**BASIC, **oauth2()}, "field_invalid", "auth"),
    "an unknown way": ({"digest": {}}, "field_unknown", "digest"),
    "an unknown member": (
        {"basic": {"username": "a", "password": "x", "realm": "r"}},
        "field_unknown",
        "realm",
    ),
}


def body(**fields: object) -> dict[str, Any]:
    return {"url": URL, "event_types": ["*"], **fields}


def sent_to(relay: Relay, receiver: Receiver) -> Any:  # noqa: ANN401 - JSON
    relay.event()
    relay.deliver_all()
    return receiver.received()[-1]


def test_basic_authentication_is_sent_and_its_password_shown_nowhere(
    relay: Relay, receiver: Receiver, lines: Lines
) -> None:
    echo = {"status": 400, "body": f"who is {VALUE} with {PASSWORD}?"}
    made = relay.endpoint(url=receiver.script("who", echo), auth=BASIC)
    assert made["auth"] == SHOWN
    said = relay.event()
    relay.deliver_all()
    (met,) = receiver.received()
    assert met["headers"]["authorization"] == VALUE
    (delivery,) = said["delivery_ids"]
    path = f"/v1/endpoints/{made['id']}"
    paths = [path, "/v1/endpoints", f"{path}/attempts", f"/v1/deliveries/{delivery}/request", "/v1/audit"]
    shown = "".join(relay.get(each).body.decode() for each in paths)
    for place in (shown, all_that_is_kept(relay), str(relay.rows("endpoints")), str(lines.texts)):
        assert [each for each in (PASSWORD, VALUE.removeprefix("Basic ")) if each in place] == []
    request = relay.get(f"/v1/deliveries/{delivery}/request").json["request"]
    assert ["Authorization", MASK] in [list(each.values()) for each in request["headers"]]


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_names_the_member_and_repeats_no_secret(empty_relay: Relay, case: str) -> None:
    auth, code, field = REFUSED[case]
    answer = empty_relay.post("/v1/endpoints", body(auth=auth))
    assert answer.is_problem(400, code, field)
    assert '"x' not in answer.body.decode()


def test_what_an_object_takes_is_said_where_a_member_of_it_is_unknown(empty_relay: Relay) -> None:
    said = empty_relay.post("/v1/endpoints", body(auth={"basic": {"user": "a"}})).json
    assert said["expected"] == "any of: username, password"


@pytest.mark.parametrize("transport", CHATS)
def test_a_chat_takes_no_auth(tenant: Relay, transport: Any) -> None:  # noqa: ANN401 - a transport
    given = body(
        transport=transport.value,
        url=ADDRESSES[transport],
        secret=CREDENTIALS[transport].reveal(),
        auth=BASIC,
    )
    assert tenant.post("/v1/endpoints", given).is_problem(400, "field_invalid", "auth")


def test_the_header_is_set_once(tenant: Relay) -> None:
    twice = body(auth=BASIC, headers={"authorization": "Bearer own-token"})
    assert tenant.post("/v1/endpoints", twice).is_problem(400, "field_invalid", "headers")
    made = tenant.endpoint(auth=BASIC)
    changed = tenant.patch(made, {"headers": {"Authorization": "Bearer own-token"}})
    assert changed.is_problem(400, "field_invalid", "headers")


def test_it_is_changed_as_a_whole_and_taken_away_with_null(relay: Relay, receiver: Receiver) -> None:
    made = relay.endpoint(url=receiver.url("/sink"), auth=BASIC)
    other = {"basic": {"username": "other", "password": "another-one"}}
    made = relay.patch(made, {"auth": other}).json
    assert made["auth"]["basic"] == {"username": "other", "password": MASK}
    value = "Basic " + base64.b64encode(b"other:another-one").decode()
    assert sent_to(relay, receiver)["headers"]["authorization"] == value
    made = relay.patch(made, {"description": "kept"}).json
    assert sent_to(relay, receiver)["headers"]["authorization"] == value
    made = relay.patch(made, {"auth": None}).json
    assert made["auth"] is None
    assert "authorization" not in sent_to(relay, receiver)["headers"]


def test_the_audit_names_a_changed_password_and_shows_none(tenant: Relay) -> None:
    made = tenant.endpoint(auth=BASIC)
    other = {"basic": {"username": "relay", "password": "another-one"}}
    tenant.patch(made, {"auth": other})
    (record,) = tenant.get("/v1/audit?action=endpoint.changed").json["items"]
    assert record["before"] == record["after"] == {"auth": SHOWN}


@pytest.mark.parametrize("change", [{}, {"auth": {"basic": SHOWN["basic"]}}])
def test_f130_a_new_url_takes_no_stored_auth_along(tenant: Relay, change: dict[str, Any]) -> None:
    made = tenant.endpoint(auth=BASIC)
    moved = {"url": "https://elsewhere.example/hook", **change}
    answer = tenant.patch(made, moved)
    assert answer.is_problem(400, "field_invalid", "auth.basic.password" if change else "auth")
    assert tenant.get(f"/v1/endpoints/{made['id']}").json["version"] == 1


@pytest.mark.parametrize("auth", [BASIC, None])
def test_a_new_url_takes_what_is_given_with_it(tenant: Relay, auth: object) -> None:
    made = tenant.endpoint(auth=BASIC)
    moved = {"url": "https://elsewhere.example/hook", "auth": auth}
    answer = tenant.patch(made, moved)
    assert (answer.status, answer.json["auth"]) == (200, SHOWN if auth else None)


def told(leaf: bytes) -> dict[str, str]:
    read = x509.load_pem_x509_certificate(leaf)
    until = read.not_valid_after_utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"fingerprint": read.fingerprint(SHA256()).hex(), "expires_at": until}


def test_a_client_certificate_and_a_trusted_authority_carry_an_event_over_tls(
    relay: Relay, lines: Lines
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    SERVERS.issue_cert("127.0.0.1").configure_cert(context)
    CLIENTS.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with Receiver(ssl_context=context) as receiver:
        made = relay.endpoint(url=receiver.url("/sink"), auth={**CERTIFIED, "trusted_authorities": AUTHORITY})
        assert made["auth"] == {
            "basic": None,
            "oauth2": None,
            "client_certificate": {**told(CHAIN.encode()), "key": MASK},
            "trusted_authorities": [told(AUTHORITY.encode())],
        }
        relay.event()
        relay.deliver_all()
        assert len(receiver.received()) == 1
    (attempt,) = relay.get(f"/v1/endpoints/{made['id']}/attempts").json["items"]
    assert attempt["outcome"] == "success"
    shown = "".join(relay.get(path).body.decode() for path in (f"/v1/endpoints/{made['id']}", "/v1/audit"))
    body_of_key = SECRET_KEY.splitlines()[1]
    for place in (shown, all_that_is_kept(relay), str(relay.rows("endpoints")), str(lines.texts)):
        assert body_of_key not in place


def test_without_them_the_owner_is_told_what_is_missing(relay: Relay) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    SERVERS.issue_cert("127.0.0.1").configure_cert(context)
    with Receiver(ssl_context=context) as receiver:
        made = relay.endpoint(url=receiver.url("/sink"), auth=CERTIFIED)
        relay.event()
        relay.deliver_all()
    (attempt,) = relay.get(f"/v1/endpoints/{made['id']}/attempts").json["items"]
    assert (attempt["outcome"], attempt["fault"]) == ("retryable", "certificate_untrusted")


@pytest.mark.parametrize("auth", [CERTIFIED, {"trusted_authorities": AUTHORITY}])
def test_certificates_need_tls(relay: Relay, auth: dict[str, Any]) -> None:
    plain = body(url="http://receiver.example/hook", auth=auth)
    assert relay.post("/v1/endpoints", plain).is_problem(400, "field_invalid", "auth")
    made = relay.endpoint(auth=auth)
    answer = relay.patch(made, {"url": "http://receiver.example/hook", "auth": auth})
    assert answer.is_problem(400, "field_invalid", "auth")


def test_a_private_token_url_is_refused(empty_guarded: Relay) -> None:
    answer = empty_guarded.post("/v1/endpoints", body(auth=oauth2(token_url="https://10.0.0.5/token")))
    assert answer.is_problem(400, "destination_not_allowed", "auth.oauth2.token_url")


def test_an_access_token_carries_an_event_and_neither_it_nor_the_secret_is_seen(
    relay: Relay, receiver: Receiver, lines: Lines
) -> None:
    token = "t0ken-0123456789-abcdef"
    issued = {"status": 200, "body": json.dumps({"access_token": token, "expires_in": 3_600})}
    given = oauth2(token_url=receiver.script("token", issued) + "?key=S3CR3T-0123")
    hook = receiver.script("hook", {"status": 400, "body": f"who is Bearer {token}?"})
    made = relay.endpoint(url=hook, auth=given)
    assert made["auth"]["oauth2"] == {
        "token_url": receiver.url("/script/token") + f"?key={MASK}",
        "client_id": "relay",
        "client_secret": MASK,
        "scope": "",
        "audience": "",
        "credentials_in": "header",
    }
    said = relay.event()
    relay.deliver_all()
    asked, met = receiver.received()
    pair = base64.b64encode(f"relay:{CLIENT_SECRET}".encode()).decode()
    assert (asked["path"], asked["headers"]["authorization"]) == ("/script/token", f"Basic {pair}")
    assert met["headers"]["authorization"] == f"Bearer {token}"
    (delivery,) = said["delivery_ids"]
    path = f"/v1/endpoints/{made['id']}"
    paths = [path, f"{path}/attempts", f"/v1/deliveries/{delivery}/request", "/v1/audit"]
    shown = "".join(relay.get(each).body.decode() for each in paths)
    for place in (shown, all_that_is_kept(relay), str(lines.texts)):
        assert [each for each in (token, CLIENT_SECRET, pair, "S3CR3T-0123") if each in place] == []
    assert CLIENT_SECRET not in str(relay.rows("endpoints"))
    request = relay.get(f"/v1/deliveries/{delivery}/request").json["request"]
    assert ["Authorization", MASK] in [list(each.values()) for each in request["headers"]]


def test_why_there_is_no_token_is_told_and_tried_again(relay: Relay, receiver: Receiver) -> None:
    refused = {"status": 401, "body": json.dumps({"error": "invalid_client"})}
    made = relay.endpoint(url=receiver.url("/sink"), auth=oauth2(token_url=receiver.script("token", refused)))
    relay.event()
    relay.deliver_all()
    (attempt,) = relay.get(f"/v1/endpoints/{made['id']}/attempts").json["items"]
    assert (attempt["outcome"], attempt["fault"]) == ("retryable", "token_failed")
    assert attempt["detail"] == "no access token could be got: the token URL answered 401 (invalid_client)"
    assert [each["path"] for each in receiver.received()] == ["/script/token"]
