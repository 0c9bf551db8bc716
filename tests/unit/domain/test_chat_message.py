"""The request of a message: where it goes, what is in it, and what of it may be seen."""

import json
from dataclasses import replace

import pytest

from chalicelib.domain import request as requests
from chalicelib.domain.chat import message, platform
from chalicelib.domain.chat.platform import OFFICIAL, PLATFORMS, Origins
from chalicelib.domain.display import displayed_url
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.request import VERSION
from chalicelib.domain.target import Policy, parse_target
from tests.unit.domain.chats import ADDRESSES, BUILT, CHATS, CREDENTIALS, WRITTEN_IN, chat
from tests.unit.domain.examples import event

EACH = pytest.mark.parametrize("transport", CHATS)
ADDRESSES_REFUSED = {
    Transport.TELEGRAM: (
        "telegram://",
        "telegram://0",
        "telegram://12a",
        "telegram://name_without_at",
        "telegram://@abc",
        "telegram://-1001234567890/5",
        "telegram://12345678901234567",
        "telegram://١٢٣",
        "https://api.telegram.org/bot1:x/sendMessage",
    ),
    Transport.DISCORD: (
        "discord://",
        "discord://abc",
        "discord://1234567890123456789/token",
        "discord://012345678",
        "slack://T01ABCDEF/B01ABCDEF",
    ),
    Transport.SLACK: (
        "slack://T01ABCDEF",
        "slack://T01ABCDEF/B01ABCDEF/secretsecretsecret",
        "slack://T01ABCDEF/../B01ABCDEF",
        "slack://t01abcdef/b01abcdef",
        "slack://hooks.slack.com/services/T01ABCDEF/B01ABCDEF",
    ),
}
BODIES = {
    Transport.TELEGRAM: {
        "chat_id": -1001234567890,
        "text": 'order.paid\n\n{\n  "id": 7\n}',
        "link_preview_options": {"is_disabled": True},
    },
    Transport.DISCORD: {
        "content": 'order.paid\n\n{\n  "id": 7\n}',
        "allowed_mentions": {"parse": []},
        "flags": 4,
    },
    Transport.SLACK: {
        "text": 'order.paid\n\n{\n  "id": 7\n}',
        "mrkdwn": False,
        "unfurl_links": False,
        "unfurl_media": False,
    },
}


@EACH
def test_a_message_is_posted_to_its_platform_unsigned(transport: Transport) -> None:
    credential = CREDENTIALS[transport]
    request = message.build(chat(transport), event(), credential, OFFICIAL)
    assert (request.method, request.url) == ("POST", BUILT[transport].format(credential.reveal()))
    assert json.loads(request.body) == BODIES[transport]
    assert request.headers == (
        ("Content-Type", "application/json; charset=utf-8"),
        ("Content-Length", str(len(request.body))),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),
        ("User-Agent", f"Relay/{VERSION}"),
    )
    assert request.all_headers == request.headers


@EACH
def test_the_policy_of_production_allows_each_platform(transport: Transport) -> None:
    url = platform.built_url(transport, ADDRESSES[transport], OFFICIAL, CREDENTIALS[transport])
    assert parse_target(url, Policy()).url == url


@EACH
def test_an_origin_of_ones_own_takes_the_place_of_the_platforms(transport: Transport) -> None:
    origins = Origins("http://a:81/t", "http://b:82", "http://c:83/x/y")
    url = platform.built_url(transport, ADDRESSES[transport], origins)
    assert url.startswith(origins.of(transport) + "/")
    assert url.endswith(platform.built_url(transport, ADDRESSES[transport], OFFICIAL).split("/", 3)[3])


@EACH
def test_no_part_of_a_credential_is_kept_or_shown(transport: Transport) -> None:
    credential = CREDENTIALS[transport]
    receiver = chat(transport)
    request = message.build(receiver, event(), credential, OFFICIAL)
    kept = requests.kept(receiver, request)
    assert (kept.url, kept.signature, kept.custom) == (ADDRESSES[transport], "", ())
    shown = (repr(request), repr(kept), displayed_url(request.url), repr(request.confidential))
    assert not any(credential.reveal() in each for each in shown)
    assert request.confidential == (credential,)


@EACH
def test_a_message_of_the_past_is_told_from_what_is_kept(transport: Transport) -> None:
    receiver = chat(transport)
    request = message.build(receiver, event(), CREDENTIALS[transport], OFFICIAL)
    kept = replace(requests.kept(receiver, request), agent="Relay/0.9.0")
    written = message.body(transport, kept.url, event())
    assert written == request.body
    assert dict(message.again(kept, written)) == {**dict(request.headers), "User-Agent": "Relay/0.9.0"}


def test_a_telegram_chat_may_be_a_public_name() -> None:
    written = message.body(Transport.TELEGRAM, "telegram://@our_channel", event())
    assert json.loads(written)["chat_id"] == "@our_channel"


@EACH
def test_an_address_is_kept_in_one_form(transport: Transport) -> None:
    normal = ADDRESSES[transport]
    assert platform.address(transport, normal) == normal
    assert platform.address(transport, normal.replace(transport.value, transport.value.title())) == normal
    assert platform.transport_of(normal) is transport


@pytest.mark.parametrize(
    "transport, url", [(transport, url) for transport, urls in ADDRESSES_REFUSED.items() for url in urls]
)
def test_what_is_no_address_is_refused_with_the_pattern(transport: Transport, url: str) -> None:
    with pytest.raises(RelayError) as refused:
        platform.address(transport, url)
    assert (refused.value.code, refused.value.field) == (ErrorCode.URL_INVALID, "url")
    assert refused.value.expected.startswith(f"{transport.value}://")


@EACH
@pytest.mark.parametrize("ending", ["/x", "?x", "#x", " ", "\n", "é", "%2f", "\\"])
def test_a_credential_is_one_segment_of_a_path(transport: Transport, ending: str) -> None:
    given = CREDENTIALS[transport].reveal() + ending
    with pytest.raises(RelayError) as refused:
        platform.credential(transport, given)
    assert (refused.value.code, refused.value.field) == (ErrorCode.FIELD_INVALID, "secret")
    assert given not in f"{refused.value} {refused.value.detail} {refused.value.expected}"
    assert platform.credential(transport, CREDENTIALS[transport].reveal()) == CREDENTIALS[transport]


@EACH
def test_nothing_in_a_payload_calls_anybody_or_formats_anything(transport: Transport) -> None:
    body = b"@everyone <@123> <!channel> *b* _i_ `c` [a](https://x.example) &amp; <b>"
    sent = json.loads(message.body(transport, ADDRESSES[transport], event(body, "text/plain")))
    said = sent[WRITTEN_IN[transport]]
    assert "parse_mode" not in sent
    escapes = PLATFORMS[transport].escapes
    for escape in sorted(escapes.values(), key=len, reverse=True):
        said = said.replace(escape, "")
    assert not set(said).intersection(escapes)
