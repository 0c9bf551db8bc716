"""Signatures: both forms against judges that are not ours, and a verifier that nothing can crash."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import (
    IDENTITY,
    BadSecretError,
    SignatureForm,
    fresh,
    new_secret,
    sign_relay,
    sign_standard,
    signature_headers,
    standard_key,
    verify,
)
from tests.receiver import verify as second_opinion
from tests.unit.domain.examples import (
    AWKWARD_BODY,
    DELIVERY_ID,
    FEW,
    KEY,
    OTHER_SECRET,
    SECRET,
    SECRET_TEXT,
    endpoint,
)

NOW_S = 1_764_000_000
NOW = datetime.fromtimestamp(NOW_S, UTC)
EMOJI = '{"t":"😊 café … 漢"}'
FORMS = pytest.mark.parametrize("form", list(IDENTITY))

keys = st.binary(min_size=24, max_size=64)
bodies = st.binary(max_size=200)
seconds = st.integers(0, 4_000_000_000)


def signed(
    form: SignatureForm, body: bytes, *secrets: Secret, at: int = NOW_S, delivery: str = DELIVERY_ID
) -> dict[str, str]:
    return signature_headers(form, secrets or (SECRET,), delivery, at, body)


def by_hand(form: SignatureForm, stamp: str, body: bytes = b"{}") -> dict[str, str]:
    """Sign any text as the timestamp, as only the holder of the secret could."""
    if form is SignatureForm.RELAY:
        digest = hmac.digest(SECRET_TEXT.encode(), stamp.encode() + b"." + body, hashlib.sha256).hex()
        return {"Relay-Timestamp": stamp, "Relay-Signature": f"v1={digest}"}
    mac = hmac.digest(KEY, b"msg_1." + stamp.encode() + b"." + body, hashlib.sha256)
    signature = f"v1,{base64.b64encode(mac).decode()}"
    return {"webhook-id": "msg_1", "webhook-timestamp": stamp, "webhook-signature": signature}


def test_the_relay_signature_is_what_openssl_computes() -> None:
    assert sign_relay(SECRET, NOW_S, AWKWARD_BODY) == (
        "v1=5aa8d6d67bf84f8b1e04628e2618a0c63038f3b4a9a6af517fe65df615d7fe43"
    )


def test_the_standard_signature_is_what_openssl_computes() -> None:
    assert sign_standard(SECRET, "018c0000-0000-7000-8000-000000000001", NOW_S, AWKWARD_BODY) == (
        "v1,F1gre2BCKHQvBUbBxH6nI9nS/lKRtiwNmsbfcdV4ml8="
    )


@FEW
@given(keys, seconds, st.text(max_size=100))
def test_f008_the_standard_signature_is_that_of_another_library(key: bytes, at: int, text: str) -> None:
    body = text.encode("utf-8", "replace")
    theirs = Webhook(new_secret(key).reveal()).sign(
        DELIVERY_ID, datetime.fromtimestamp(at, UTC), body.decode()
    )
    assert sign_standard(new_secret(key), DELIVERY_ID, at, body) == theirs


@FEW
@given(keys, seconds, st.text(max_size=100))
def test_f008_what_another_library_signs_is_genuine(key: bytes, at: int, text: str) -> None:
    body = text.encode("utf-8", "replace")
    moment = datetime.fromtimestamp(at, UTC)
    headers = {
        "Webhook-Id": "msg_2Ab-_",
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": Webhook(new_secret(key).reveal()).sign("msg_2Ab-_", moment, body.decode()),
    }
    assert verify(body, headers, new_secret(key), moment)


def test_f008_another_library_takes_the_three_headers_as_they_are() -> None:
    now = int(datetime.now(UTC).timestamp())
    headers = signed(SignatureForm.STANDARD, EMOJI.encode(), OTHER_SECRET, SECRET, at=now)
    for secret in (SECRET, OTHER_SECRET):
        assert Webhook(secret.reveal()).verify(EMOJI.encode(), headers) == json.loads(EMOJI)


@FORMS
@FEW
@given(key=keys, at=seconds, body=bodies)
def test_a_second_opinion_and_the_helper_agree_on_what_is_genuine(
    form: SignatureForm, key: bytes, at: int, body: bytes
) -> None:
    secret = new_secret(key)
    headers = signed(form, body, secret, at=at)
    lowered = {name.lower(): value for name, value in headers.items()}
    assert second_opinion.check(lowered, body, [second_opinion.make_secret(secret.reveal())], at).verified
    assert verify(body, headers, secret, datetime.fromtimestamp(at, UTC))


@FORMS
@FEW
@given(body=bodies.filter(bool), at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_one_changed_bit_of_the_body_is_noticed(form: SignatureForm, body: bytes, at: int, bit: int) -> None:
    changed = bytearray(body)
    changed[at % len(body)] ^= 1 << bit
    assert not verify(bytes(changed), signed(form, body), SECRET, NOW)


@FORMS
def test_another_timestamp_or_secret_is_noticed(form: SignatureForm) -> None:
    headers = signed(form, b"{}")
    stamp = next(name for name in headers if name.lower().endswith("timestamp"))
    assert not verify(b"{}", headers | {stamp: str(NOW_S + 1)}, SECRET, NOW)
    assert not verify(b"{}", headers, OTHER_SECRET, NOW)
    assert not verify(b"{}", headers, (), NOW)


def test_another_id_is_noticed_in_the_standard_form() -> None:
    headers = signed(SignatureForm.STANDARD, b"{}")
    assert not verify(b"{}", headers | {"webhook-id": "another"}, SECRET, NOW)
    del headers["webhook-id"]
    assert not verify(b"{}", headers, SECRET, NOW)


@FORMS
def test_f001_only_the_very_bytes_that_were_signed_are_genuine(form: SignatureForm) -> None:
    headers = signed(form, AWKWARD_BODY)
    assert verify(AWKWARD_BODY, headers, SECRET, NOW)
    assert not verify(json.dumps(json.loads(AWKWARD_BODY)).encode(), headers, SECRET, NOW)
    assert not verify(AWKWARD_BODY.rstrip(), headers, SECRET, NOW)


@FORMS
def test_f002_text_is_taken_as_its_utf8(form: SignatureForm) -> None:
    headers = signed(form, EMOJI.encode("utf-8"))
    assert verify(EMOJI.encode("utf-8"), headers, SECRET, NOW)
    assert verify(EMOJI, headers, SECRET, NOW)
    assert not verify(EMOJI.encode("ascii", "ignore"), headers, SECRET, NOW)


@FORMS
def test_f022_text_that_has_no_utf8_is_not_genuine_and_raises_nothing(form: SignatureForm) -> None:
    assert not verify("\ud83d", signed(form, b"\xed\xa0\xbd"), SECRET, NOW)


@FORMS
def test_f004_a_body_handed_over_in_base64_is_genuine_once_decoded(form: SignatureForm) -> None:
    headers = signed(form, EMOJI.encode())
    handed_over = base64.b64encode(EMOJI.encode())
    assert verify(base64.b64decode(handed_over), headers, SECRET, NOW)
    assert not verify(handed_over, headers, SECRET, NOW)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="empty"),
        pytest.param("v1,caf\xe9", id="byte-e9"),
        pytest.param("v1=caf\xe9", id="byte-e9-relay"),
        pytest.param("v1,", id="no-signature"),
        pytest.param("v1=", id="no-signature-relay"),
        pytest.param("v1", id="version-only"),
        pytest.param("v1," + "A" * 1_000_000, id="megabyte"),
        pytest.param(b"v1,AAAA", id="bytes"),
    ],
)
@pytest.mark.parametrize("name", ["Relay-Signature", "webhook-signature"])
def test_f006_odd_signature_headers_are_never_genuine_and_raise_nothing(name: str, value: object) -> None:
    form = SignatureForm.RELAY if name == "Relay-Signature" else SignatureForm.STANDARD
    headers: dict[str, Any] = {**signed(form, b"{}"), name: value}
    assert verify(b"{}", headers, SECRET, NOW) is False
    del headers[name]
    assert verify(b"{}", headers, SECRET, NOW) is False


@FORMS
def test_f006_a_genuine_signature_in_an_endless_header_is_not_looked_for(form: SignatureForm) -> None:
    headers = signed(form, b"{}")
    name = next(name for name in headers if name.lower().endswith("signature"))
    separator = "," if form is SignatureForm.RELAY else " "
    short = headers | {name: headers[name] + separator + "A" * 1_000}
    endless = headers | {name: headers[name] + separator + "A" * 1_000_000}
    assert verify(b"{}", short, SECRET, NOW)
    assert not verify(b"{}", endless, SECRET, NOW)


@FORMS
def test_f006_what_is_no_request_at_all_is_not_genuine_and_raises_nothing(form: SignatureForm) -> None:
    headers, nothing = signed(form, b"{}"), cast("Any", None)
    assert verify(nothing, headers, SECRET, NOW) is False
    assert verify(b"{}", nothing, SECRET, NOW) is False
    assert verify(b"{}", headers, nothing, NOW) is False
    assert verify(b"{}", headers, SECRET, nothing) is False


def test_where_both_forms_are_the_relay_one_decides() -> None:
    both = signed(SignatureForm.RELAY, b"{}") | signed(SignatureForm.STANDARD, b"{}")
    assert verify(b"{}", both, SECRET, NOW)
    assert verify(b"{}", both | {"webhook-signature": "v1,AAAA"}, SECRET, NOW)
    assert not verify(b"{}", both | {"Relay-Signature": "v1=00"}, SECRET, NOW)


anything = st.none() | st.text(max_size=20) | st.binary(max_size=20) | st.integers() | st.floats()


@FEW
@given(
    st.text(max_size=20) | bodies,
    st.dictionaries(
        st.sampled_from(["relay-signature", "Relay-Timestamp", "webhook-id", "webhook-signature"]) | anything,
        anything,
        max_size=4,
    ),
    st.text(max_size=20) | st.lists(anything, max_size=3),
)
def test_f006_nothing_a_receiver_may_be_sent_makes_the_helper_raise(
    body: Any,  # noqa: ANN401 - a receiver's mistake may have any type
    headers: Mapping[Any, Any],
    secrets: Any,  # noqa: ANN401 - as body
) -> None:
    assert verify(body, headers, secrets, NOW) is False


def encoded(length: int) -> str:
    return "whsec_" + base64.b64encode(bytes(length)).decode()


@pytest.mark.parametrize(
    "secret",
    [
        "whsec_!!!!",
        "whsec_",
        "",
        "whsec_QQ==",
        encoded(23),
        encoded(65),
        f"{SECRET_TEXT}\n",
        SECRET_TEXT.removesuffix("="),
        f"whsec_{SECRET_TEXT}",
        "whsec_caf\xe9",
    ],
)
def test_f007_a_malformed_secret_neither_signs_nor_verifies(secret: str) -> None:
    with pytest.raises(BadSecretError):
        sign_relay(Secret(secret), NOW_S, b"{}")
    with pytest.raises(BadSecretError):
        sign_standard(Secret(secret), DELIVERY_ID, NOW_S, b"{}")
    empty = base64.b64encode(hmac.digest(b"", f"m.{NOW_S}.".encode() + b"{}", hashlib.sha256)).decode()
    forged = {"webhook-id": "m", "webhook-timestamp": str(NOW_S), "webhook-signature": f"v1,{empty}"}
    assert not verify(b"{}", forged, secret, NOW)
    text_key = hmac.digest(secret.encode(), f"{NOW_S}.".encode() + b"{}", hashlib.sha256).hex()
    forged = {"relay-timestamp": str(NOW_S), "relay-signature": f"v1={text_key}"}
    assert not verify(b"{}", forged, secret, NOW)


@pytest.mark.parametrize("length", [24, 64])
def test_f007_keys_of_24_and_64_bytes_are_good(length: int) -> None:
    assert standard_key(Secret(encoded(length))) == bytes(length)


@FORMS
def test_f007_a_malformed_secret_hides_no_good_one(form: SignatureForm) -> None:
    assert verify(b"{}", signed(form, b"{}"), ["whsec_", SECRET], NOW)


@pytest.mark.parametrize("secret", ["whsec_!!!!", encoded(23), f"v1,{SECRET_TEXT}", "whsec_caf\xe9"])
def test_f007_the_words_about_a_bad_secret_do_not_hold_it(secret: str) -> None:
    with pytest.raises(BadSecretError) as refused:
        standard_key(Secret(secret))
    assert secret.removeprefix("v1,").removeprefix("whsec_") not in str(refused.value)


def test_f008_a_delivery_verifies_with_the_secret_and_with_its_base64_alone() -> None:
    headers = signed(SignatureForm.STANDARD, b"{}")
    assert verify(b"{}", headers, SECRET, NOW)
    assert verify(b"{}", headers, SECRET_TEXT.removeprefix("whsec_"), NOW)


@pytest.mark.parametrize("prefix", ["v1,", "v1a,"])
def test_f008_a_pasted_version_prefix_is_named(prefix: str) -> None:
    with pytest.raises(BadSecretError, match=r"\(v1,\): leave that prefix out"):
        standard_key(Secret(prefix + SECRET_TEXT))
    assert not verify(b"{}", signed(SignatureForm.STANDARD, b"{}"), prefix + SECRET_TEXT, NOW)


def test_f008_the_forms_do_not_take_each_others_keys() -> None:
    whole_text = base64.b64encode(SECRET_TEXT.encode()).decode()
    assert not verify(b"{}", signed(SignatureForm.STANDARD, b"{}"), whole_text, NOW)
    mac = hmac.digest(SECRET_TEXT.encode(), f"{DELIVERY_ID}.{NOW_S}.".encode() + b"{}", hashlib.sha256)
    wrong = {"webhook-signature": f"v1,{base64.b64encode(mac).decode()}"}
    assert not verify(b"{}", signed(SignatureForm.STANDARD, b"{}") | wrong, SECRET, NOW)
    wrong = {"Relay-Signature": f"v1={hmac.digest(KEY, f'{NOW_S}.'.encode() + b'{}', hashlib.sha256).hex()}"}
    assert not verify(b"{}", signed(SignatureForm.RELAY, b"{}") | wrong, SECRET, NOW)


@FORMS
def test_f010_during_the_overlap_either_secret_verifies_and_after_it_only_the_new(
    form: SignatureForm,
) -> None:
    ends = NOW_S + 60
    rotated = endpoint(
        secrets=(
            WrappedSecret(OTHER_SECRET.reveal().encode()),
            WrappedSecret(SECRET_TEXT.encode(), expires_at=ends),
        )
    )

    def attempt(at: int) -> dict[str, str]:
        return signed(
            form, b"{}", *(Secret(each.ciphertext.decode()) for each in rotated.live_secrets(at)), at=at
        )

    during, after = attempt(ends - 1), attempt(ends)
    then = datetime.fromtimestamp(ends, UTC)
    assert verify(b"{}", during, SECRET, then)
    assert verify(b"{}", during, OTHER_SECRET, then)
    assert not verify(b"{}", after, SECRET, then)
    assert verify(b"{}", after, OTHER_SECRET, then)


def test_f010_two_secrets_make_two_signatures_newest_first() -> None:
    relay = signed(SignatureForm.RELAY, b"{}", OTHER_SECRET, SECRET)["Relay-Signature"]
    assert relay == f"{sign_relay(OTHER_SECRET, NOW_S, b'{}')},{sign_relay(SECRET, NOW_S, b'{}')}"
    standard = signed(SignatureForm.STANDARD, b"{}", OTHER_SECRET, SECRET)["webhook-signature"]
    newest, older = standard.split(" ")
    assert newest == sign_standard(OTHER_SECRET, DELIVERY_ID, NOW_S, b"{}")
    assert older == sign_standard(SECRET, DELIVERY_ID, NOW_S, b"{}")


@FORMS
@pytest.mark.parametrize(
    "offset_s, genuine",
    [
        (3600, False),
        (301, False),
        (300, True),
        (299, True),
        (-299, True),
        (-300, True),
        (-301, False),
        (-3600, False),
    ],
)
def test_f012_the_window_has_two_sides(form: SignatureForm, offset_s: int, *, genuine: bool) -> None:
    headers = signed(form, b"{}", at=NOW_S + offset_s)
    assert verify(b"{}", headers, SECRET, NOW) is genuine


@pytest.mark.parametrize("sign", [1, -1])
def test_the_window_is_five_minutes_to_the_microsecond(sign: int) -> None:
    edge = timedelta(minutes=5)
    assert fresh(NOW + sign * edge, NOW)
    assert not fresh(NOW + sign * (edge + timedelta(microseconds=1)), NOW)


@FORMS
def test_f013_a_check_twenty_minutes_later_goes_by_the_time_of_receipt(form: SignatureForm) -> None:
    headers = signed(form, b"{}")
    assert verify(b"{}", headers, SECRET, NOW)
    assert not verify(b"{}", headers, SECRET, NOW + timedelta(minutes=20))
    assert not verify(b"{}", headers, SECRET, NOW - timedelta(minutes=6))


@FORMS
def test_f013_the_time_of_receipt_may_be_in_any_zone_but_must_say_which(form: SignatureForm) -> None:
    tokyo = NOW.astimezone(tz=datetime.fromisoformat("2025-01-01T00:00:00+09:00").tzinfo)
    assert verify(b"{}", signed(form, b"{}"), SECRET, tokyo)
    assert not verify(b"{}", signed(form, b"{}"), SECRET, NOW.replace(tzinfo=None))


@FORMS
def test_a_timestamp_in_ascii_seconds_signed_by_hand_is_genuine(form: SignatureForm) -> None:
    assert verify(b"{}", by_hand(form, str(NOW_S)), SECRET, NOW)


@FORMS
@pytest.mark.parametrize(
    "stamp, means",
    [
        ("1764000000000", NOW_S),
        ("1e9", 1_000_000_000),
        ("NaN", NOW_S),
        (" 1764000000", NOW_S),
        ("1764000000 ", NOW_S),
        ("1764000000\n", NOW_S),
        ("+1764000000", NOW_S),
        ("1_764_000_000", NOW_S),
        ("\uff11\uff17\uff16\uff14\uff10\uff10\uff10\uff10\uff10\uff10", NOW_S),
        ("1764000000.0", NOW_S),
        ("-1", -1),
        ("999999999999", NOW_S),
        ("", 0),
    ],
)
def test_f019_odd_timestamps_are_refused_even_when_truly_signed(
    form: SignatureForm, stamp: str, means: int
) -> None:
    assert not verify(b"{}", by_hand(form, stamp), SECRET, datetime.fromtimestamp(means, UTC))


def test_f018_a_dotted_id_cannot_make_one_signed_string_read_two_ways() -> None:
    body = b"1764000009.{}"
    headers = signed(SignatureForm.STANDARD, body)
    read_otherwise = headers | {
        "webhook-id": f"{DELIVERY_ID}.{NOW_S}",
        "webhook-timestamp": "1764000009",
    }
    assert verify(body, headers, SECRET, NOW)
    assert not verify(b"{}", read_otherwise, SECRET, NOW)


@FORMS
def test_header_names_count_in_any_case(form: SignatureForm) -> None:
    shouted = {name.upper(): value for name, value in signed(form, b"{}").items()}
    assert verify(b"{}", shouted, SECRET, NOW)


@FEW
@given(keys)
def test_a_new_secret_is_the_prefix_and_its_key_in_base64(key: bytes) -> None:
    secret = new_secret(key)
    assert secret.reveal().startswith("whsec_")
    assert base64.b64decode(secret.reveal()[6:]) == key == standard_key(secret)


def test_the_identity_headers_are_these_three() -> None:
    assert list(signed(SignatureForm.RELAY, b"")) == [
        "Relay-Delivery-Id",
        "Relay-Timestamp",
        "Relay-Signature",
    ]
    assert list(signed(SignatureForm.STANDARD, b"")) == [
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
    ]
