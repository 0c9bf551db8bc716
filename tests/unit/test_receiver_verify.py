"""The receiver's second opinion on signatures."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.receiver.verify import Secrets, Verdict, check, make_secret

NOW = 1_764_000_000
KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OTHER = "whsec_" + base64.b64encode(bytes(32)).decode()
BODY = '{"t":"😊 café … 漢"}\n'.encode()


def relay(body: bytes = BODY, stamp: str = str(NOW), key: bytes = SECRET.encode()) -> dict[str, str]:
    digest = hmac.new(key, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"relay-timestamp": stamp, "relay-signature": f"v1={digest}"}


def standard(body: bytes = BODY, stamp: str = str(NOW), key: bytes = KEY) -> dict[str, str]:
    digest = hmac.new(key, b"msg_1." + stamp.encode() + b"." + body, hashlib.sha256).digest()
    signature = "v1," + base64.b64encode(digest).decode()
    return {"webhook-id": "msg_1", "webhook-timestamp": stamp, "webhook-signature": signature}


def judge(headers: dict[str, str], body: bytes = BODY, *secrets: str) -> Verdict:
    return check(headers, body, [make_secret(text) for text in secrets or (SECRET,)], NOW)


@pytest.mark.parametrize("headers", [relay(), standard(), relay() | standard()])
def test_a_right_signature_of_either_form_is_verified(headers: dict[str, str]) -> None:
    assert judge(headers).verified


@pytest.mark.parametrize("sign", [relay, standard])
def test_f010_any_signature_by_any_live_secret_is_enough(sign: type) -> None:
    first, second = sign(), sign(key=OTHER.encode() if sign is relay else bytes(32))
    name, separator = ("relay-signature", ",") if sign is relay else ("webhook-signature", " ")
    both = first | {name: first[name] + separator + second[name]}
    assert judge(both, BODY, SECRET).verified
    assert judge(both, BODY, OTHER).verified
    assert judge(second, BODY, SECRET, OTHER).verified
    assert not judge(second, BODY, SECRET).verified


@settings(max_examples=50)
@given(st.binary(max_size=64), st.integers(0, 63))
def test_a_changed_body_is_refused(body: bytes, at: int) -> None:
    changed = bytearray(body or b"x")
    changed[at % len(changed)] ^= 1
    assert judge(relay(body or b"x"), body or b"x").verified
    assert not judge(relay(body or b"x"), bytes(changed)).verified
    assert not judge(standard(body or b"x"), bytes(changed)).verified


@pytest.mark.parametrize("sign", [relay, standard])
@pytest.mark.parametrize(
    "offset, verified",
    [(299, True), (300, True), (301, False), (3600, False), (-299, True), (-301, False)],
)
def test_f012_the_window_has_two_sides(sign: type, offset: int, *, verified: bool) -> None:
    assert judge(sign(stamp=str(NOW + offset))).verified is verified


@pytest.mark.parametrize("sign", [relay, standard])
@pytest.mark.parametrize(
    "stamp",
    ["1764000000000", "1e9", "NaN", " 1764000000", "+1764000000", "1_764_000_000", "\uff11\uff17\uff16", ""],
)
def test_f019_odd_timestamps_are_refused(sign: type, stamp: str) -> None:
    verdict = judge(sign(stamp=stamp))
    assert verdict.reason == "the timestamp is not 1 to 12 ASCII digits"


@pytest.mark.parametrize("name", ["relay-signature", "webhook-signature"])
@pytest.mark.parametrize(
    "value", ["", "v1,caf\xe9", "v1=caf\xe9", "v1,", "v1=", "v1", "v2=" + "a" * 64, "A" * 1_000_000]
)
def test_f006_odd_signature_headers_are_refused_and_raise_nothing(name: str, value: str) -> None:
    headers = (relay() if name == "relay-signature" else standard()) | {name: value}
    assert not judge(headers).verified


@settings(max_examples=50)
@given(
    st.dictionaries(st.sampled_from([*relay(), *standard()]), st.text(max_size=80)), st.binary(max_size=20)
)
def test_whatever_the_headers_say_nothing_is_raised(headers: dict[str, str], body: bytes) -> None:
    assert not judge(headers, body).verified


def test_without_headers_or_secrets_the_reason_says_so() -> None:
    assert judge({}).reason == "there are no signature headers"
    assert check(relay(), BODY, [], NOW).reason == "no secret is registered: POST it to /secret first"


def test_f008_the_forms_do_not_take_each_others_keys() -> None:
    assert not judge(relay(key=KEY)).verified
    assert not judge(standard(key=SECRET.encode())).verified


@pytest.mark.parametrize("length", [0, 1, 23, 65])
def test_f007_a_key_of_the_wrong_length_never_verifies_the_standard_form(length: int) -> None:
    text = "whsec_" + (base64.b64encode(bytes(length)).decode() or "!!!!")
    assert not judge(standard(key=bytes(length)), BODY, text).verified


@pytest.mark.parametrize("length", [24, 64])
def test_keys_of_24_and_64_bytes_verify(length: int) -> None:
    key = bytes(length)
    assert judge(standard(key=key), BODY, "whsec_" + base64.b64encode(key).decode()).verified


@pytest.mark.parametrize("text", ["", "whsec_", "v1,whsec_QUJD", "QUJD", "whsec_é"])
def test_what_is_no_secret_is_not_registered(text: str) -> None:
    with pytest.raises(ValueError, match="a secret is the text"):
        Secrets().add(text)


def test_secrets_of_an_endpoint_are_asked_only_for_it() -> None:
    secrets = Secrets()
    secrets.add(SECRET, "a")
    secrets.add(OTHER, "b")
    assert secrets.judge("/verify", relay(), BODY, NOW).verified
    assert secrets.judge("/verify/a", relay(), BODY, NOW, endpoint="a").verified
    assert not secrets.judge("/verify/b", relay(), BODY, NOW, endpoint="b").verified


def test_a_removed_secret_is_forgotten_also_where_it_signed_last() -> None:
    secrets = Secrets()
    secrets.add(SECRET)
    secrets.add(OTHER)
    assert secrets.judge("/verify", relay(), BODY, NOW).verified
    assert secrets.remove(SECRET)
    assert not secrets.judge("/verify", relay(), BODY, NOW).verified
    assert len(secrets) == 1
