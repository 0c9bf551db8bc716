"""The wire contract, frozen: what a request looks like byte for byte, whatever changes inside."""

import re
from datetime import UTC, datetime
from http.client import parse_headers
from io import BytesIO

import pytest

from chalicelib.domain import request as requests
from chalicelib.domain.delivery import Lane, Owed
from chalicelib.domain.display import displayed_url
from chalicelib.domain.endpoint import ORDERED_LANE, Ordering, header_fault
from chalicelib.domain.request import VERSION, Request, build, event_time
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import IDENTITY, SignatureForm, verify
from tests.unit.domain.examples import (
    AWKWARD_BODY,
    DELIVERY_ID,
    ENDPOINT_ID,
    OTHER_SECRET,
    RECEIVED_MS,
    RECEIVED_S,
    SECRET,
    endpoint,
    event,
    owed,
)

BODY = '{"id":7,"note":"café €"}'.encode()
SENT_S = RECEIVED_S + 5
FORMS = pytest.mark.parametrize("form", list(IDENTITY))

RELAY_FORM = (
    b"Relay-Delivery-Id: 019ab697-e87b-77c3-aa57-0f07dd900c04\r\n"
    b"Relay-Timestamp: 1764000005\r\n"
    b"Relay-Signature: v1=98971d356c68230fb5735e32bb01e17d1ff8b9631bb192c80781e851fb645a5b\r\n"
    b"Relay-Event-Id: evt_019ab697-e87b-748d-8567-89abcdef0123\r\n"
    b"Relay-Event-Type: order.paid\r\n"
    b"Relay-Event-Time: 2025-11-24T16:00:00.123Z\r\n"
    b"Relay-Attempt: 3\r\n"
    b"Relay-Generation: 1\r\n"
    b"Content-Type: application/json\r\n"
    b"Content-Length: 27\r\n"
    b"Accept: */*\r\n"
    b"Accept-Encoding: identity\r\n"
    b"User-Agent: Relay/1.0.0\r\n"
    b"X-Team: billing\r\n"
    b"\r\n"
    b'{"id":7,"note":"caf\xc3\xa9 \xe2\x82\xac"}'
)
STANDARD_FORM = (
    b"webhook-id: 019ab697-e87b-77c3-aa57-0f07dd900c04\r\n"
    b"webhook-timestamp: 1764000005\r\n"
    b"webhook-signature: v1,3YGtQMPhuZcl4u1YbUGbiuyETscj15IfnjIhwfKym6U=\r\n"
    b"Relay-Event-Id: evt_019ab697-e87b-748d-8567-89abcdef0123\r\n"
    b"Relay-Event-Type: order.paid\r\n"
    b"Relay-Event-Time: 2025-11-24T16:00:00.123Z\r\n"
    b"Relay-Attempt: 3\r\n"
    b"Relay-Generation: 1\r\n"
    b"Content-Type: application/json\r\n"
    b"Content-Length: 27\r\n"
    b"Accept: */*\r\n"
    b"Accept-Encoding: identity\r\n"
    b"User-Agent: Relay/1.0.0\r\n"
    b"X-Team: billing\r\n"
    b"\r\n"
    b'{"id":7,"note":"caf\xc3\xa9 \xe2\x82\xac"}'
)


def written(request: Request) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in request.all_headers)
    return head.encode("ascii") + b"\r\n" + request.body


@pytest.mark.parametrize(
    "form, expected", [(SignatureForm.RELAY, RELAY_FORM), (SignatureForm.STANDARD, STANDARD_FORM)]
)
def test_the_wire_contract_is_frozen_byte_for_byte(form: SignatureForm, expected: bytes) -> None:
    receiver = endpoint(signature=form, headers=(("X-Team", Secret("billing")),))
    request = build(receiver, event(BODY), owed(made=2, generation=1), [SECRET], SENT_S)
    assert request.url == "https://hooks.example.com/in?a=1"
    assert written(request) == expected


@FORMS
def test_f132_a_request_of_an_ordered_endpoint_carries_its_sequence_and_no_other_does(
    form: SignatureForm,
) -> None:
    receiver = endpoint(signature=form, ordering=Ordering.ENDPOINT)
    lane = Lane("tn_1", ENDPOINT_ID, ORDERED_LANE)
    plain = dict(build(endpoint(signature=form), event(BODY), owed(), [SECRET], SENT_S).headers)
    assert "Relay-Event-Sequence" not in plain
    for made in (0, 3):
        row = owed(lane=lane, sequence=41, made=made)
        headers = build(receiver, event(BODY), row, [SECRET], SENT_S).headers
        assert headers[5:7] == (
            ("Relay-Event-Time", "2025-11-24T16:00:00.123Z"),
            ("Relay-Event-Sequence", "41"),
        )
        assert plain | dict(headers) | {"Relay-Attempt": "1"} == plain | {"Relay-Event-Sequence": "41"}
        assert header_fault("relay-event-sequence", "1") is not None


@FORMS
def test_what_is_written_reads_back_as_http(form: SignatureForm) -> None:
    request = build(endpoint(signature=form), event(BODY), owed(), [SECRET, OTHER_SECRET], SENT_S)
    stream = BytesIO(written(request))
    read = parse_headers(stream)
    assert stream.read(int(read["Content-Length"])) == BODY
    assert not stream.read()
    received_at = datetime.fromtimestamp(SENT_S, UTC)
    assert verify(BODY, dict(read.items()), SECRET, received_at)
    assert verify(BODY, dict(read.items()), OTHER_SECRET, received_at)


@FORMS
def test_no_header_is_there_twice(form: SignatureForm) -> None:
    request = build(endpoint(signature=form), event(), owed(), [SECRET], SENT_S)
    names = [name.lower() for name, _ in request.headers]
    assert len(names) == len(set(names))


@FORMS
def test_f039_no_custom_header_may_stand_beside_one_of_ours(form: SignatureForm) -> None:
    request = build(endpoint(signature=form), event(), owed(), [SECRET], SENT_S)
    for name, _ in request.headers:
        assert header_fault(name, "x") is not None, name
        assert header_fault(name.swapcase(), "x") is not None, name


def test_custom_headers_come_last_in_their_order_and_spelling() -> None:
    custom = (("X-Zeta", "1"), ("authorization", "Bearer abc"), ("X-Alpha", "a  b"))
    given = tuple((name, Secret(value)) for name, value in custom)
    request = build(endpoint(headers=given), event(), owed(), [SECRET], SENT_S)
    assert request.all_headers == (*request.headers, *custom)


@FORMS
@pytest.mark.parametrize("body", [AWKWARD_BODY, b"\x00\xff\xfe", b"null", BODY])
def test_f001_the_body_sent_and_signed_is_the_body_posted(form: SignatureForm, body: bytes) -> None:
    for made in (0, 2):
        request = build(endpoint(signature=form), event(body), owed(made=made), [SECRET], SENT_S)
        assert request.body == body
        assert verify(body, dict(request.headers), SECRET, datetime.fromtimestamp(SENT_S, UTC))


@FORMS
def test_f014_every_attempt_has_the_same_id_and_body_and_a_fresh_signature(form: SignatureForm) -> None:
    moments = [SENT_S, SENT_S + 5, SENT_S + 25, SENT_S + 40_000]
    attempts = [
        build(endpoint(signature=form), event(BODY), owed(made=made), [SECRET], now_s)
        for made, now_s in enumerate(moments)
    ]
    sent = [dict(each.headers) for each in attempts]
    name_of = dict(zip(("id", "timestamp", "signature"), sent[0], strict=False))
    assert {each[name_of["id"]] for each in sent} == {DELIVERY_ID}
    assert {each.body for each in attempts} == {BODY}
    assert [each[name_of["timestamp"]] for each in sent] == [str(moment) for moment in moments]
    assert len({each[name_of["signature"]] for each in sent}) == 4
    assert [each["Relay-Attempt"] for each in sent] == ["1", "2", "3", "4"]
    for headers, now_s in zip(sent, moments, strict=True):
        assert verify(BODY, headers, SECRET, datetime.fromtimestamp(now_s, UTC))


def test_f016_a_replay_keeps_the_id_and_says_that_it_is_one() -> None:
    first = dict(build(endpoint(), event(), owed(), [SECRET], SENT_S).headers)
    replay = dict(build(endpoint(), event(), owed(generation=2), [SECRET], SENT_S).headers)
    assert first["Relay-Delivery-Id"] == replay["Relay-Delivery-Id"]
    assert (first["Relay-Generation"], replay["Relay-Generation"]) == ("0", "2")


@FORMS
def test_f021_nothing_is_left_for_a_middlebox_to_rewrite(form: SignatureForm) -> None:
    headers = dict(build(endpoint(signature=form), event(BODY), owed(), [SECRET], SENT_S).headers)
    assert headers["Content-Length"] == "27"
    assert headers["Accept-Encoding"] == "identity"
    assert not {"transfer-encoding", "content-encoding"} & {name.lower() for name in headers}


@FORMS
def test_f036_a_body_of_no_bytes_would_still_verify(form: SignatureForm) -> None:
    headers = dict(build(endpoint(signature=form), event(b""), owed(), [SECRET], SENT_S).headers)
    assert headers["Content-Length"] == "0"
    assert verify(b"", headers, SECRET, datetime.fromtimestamp(SENT_S, UTC))


def test_the_content_type_is_the_producers() -> None:
    sent = build(endpoint(), event(b"x", "text/plain; charset=utf-8"), owed(), [SECRET], SENT_S)
    assert ("Content-Type", "text/plain; charset=utf-8") in sent.headers


def test_the_version_is_three_numbers() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_a_request_shown_in_an_error_has_neither_headers_nor_body() -> None:
    receiver = endpoint(headers=(("Authorization", Secret("Bearer s3cr3t")),))
    request = build(receiver, event(b"personal"), owed(), [SECRET], SENT_S)
    assert "s3cr3t" not in repr(request)
    assert "personal" not in repr(request)
    assert "v1=" not in repr(request)


@pytest.mark.parametrize(
    "received_ms, text",
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (RECEIVED_MS, "2025-11-24T16:00:00.123Z"),
        (1_793_512_500_000, "2026-11-01T05:55:00.000Z"),
        (1_774_745_700_999, "2026-03-29T00:55:00.999Z"),
        (1_774_746_000_001, "2026-03-29T01:00:00.001Z"),
    ],
)
def test_f133_event_times_are_utc_with_milliseconds_wherever_relay_runs(
    elsewhere: None, received_ms: int, text: str
) -> None:
    assert event_time(received_ms) == text


def test_every_millisecond_of_a_second_is_written_as_it_is() -> None:
    for millisecond in range(1000):
        assert event_time(RECEIVED_S * 1000 + millisecond).endswith(f"16:00:00.{millisecond:03d}Z")


@FORMS
@pytest.mark.parametrize("row", [owed(), owed(made=2, generation=1, sequence=41)])
def test_a_request_of_the_past_is_told_header_by_header_from_what_is_kept(
    form: SignatureForm, row: Owed
) -> None:
    receiver = endpoint(signature=form, headers=(("X-Team", Secret("billing")), ("x-key", Secret("k1"))))
    request = build(receiver, event(BODY), row, [SECRET, OTHER_SECRET], SENT_S)
    kept = requests.kept(receiver, request)
    assert requests.again(kept, event(BODY), row, "masked") == tuple(
        (name, "masked" if name in {"X-Team", "x-key"} else value) for name, value in request.all_headers
    )
    assert kept.url == displayed_url(request.url)
    assert not any(value in repr(kept) for value in ("billing", "k1", SECRET.reveal(), kept.signature))
