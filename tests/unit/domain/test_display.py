"""What is shown of a URL, and of an answer that echoes its request."""

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import escaped
from chalicelib.domain.display import displayed_url, masked, url_tokens
from chalicelib.domain.secret import MASK, Secret

M = MASK
TABLE = {
    "https://h.example/": "https://h.example/",
    "telegram://-1001234567890": "telegram://-1001234567890",
    "telegram://@our_channel": "telegram://@our_channel",
    "slack://T01ABCDEF/B01ABCDEF": "slack://T01ABCDEF/B01ABCDEF",
    "slack://T01ABCDEF/B01ABCDEF/S3CR3TS3CR3T": f"slack://T01ABCDEF/{M}/{M}",
    "https://h.example": "https://h.example",
    "https://h.example:8443/webhooks/orders": "https://h.example:8443/webhooks/orders",
    "https://h.example/v2/hook": "https://h.example/v2/hook",
    "https://h.example/hook/T0K3N-abc?key=S3CR3T": f"https://h.example/hook/{M}?key={M}",
    "https://h.example/in?a=1&b=2": f"https://h.example/in?a={M}&b={M}",
    "https://h.example/in?flag": f"https://h.example/in?{M}",
    "https://h.example/in?a=": f"https://h.example/in?a={M}",
    "https://h.example/in?": "https://h.example/in",
    "https://h.example/in?sk_live_4eC39HqL=1": f"https://h.example/in?{M}={M}",
    "https://h.example/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX": (
        f"https://h.example/services/{M}/{M}/{M}"
    ),
    "https://h.example/api/webhooks/123456789012345678/AbCdEfGh": (
        f"https://h.example/api/webhooks/123456789012345678/{M}"
    ),
    "https://h.example/bot123456:AAE-x/send": f"https://h.example/{M}/send",
    "https://h.example/018f6b1e-1f2a-7c3d-8e4f-5a6b7c8d9e0f/in": f"https://h.example/{M}/in",
    "https://h.example/order-events/incoming": "https://h.example/order-events/incoming",
    "https://h.example/all-lower-case-but-very-long": f"https://h.example/{M}",
    "https://h.example/12345678901234567890123": "https://h.example/12345678901234567890123",
    "https://h.example/123456789012345678901234": f"https://h.example/{M}",
    "https://h.example/WebHooks": f"https://h.example/{M}",
    "https://h.example/WEBHOOKS": "https://h.example/WEBHOOKS",
    "https://h.example/abc1234": "https://h.example/abc1234",
    "https://h.example/%61%62c1234%35": f"https://h.example/{M}",
    "https://user:T0ken-of-user@h.example/in": "https://h.example/in",
    "https://[2606:4700::1111]/in": "https://[2606:4700::1111]/in",
    "https://[::1": M,
}


@pytest.mark.parametrize("url, shown", TABLE.items())
def test_the_display_form_of_a_url(url: str, shown: str) -> None:
    assert displayed_url(url) == shown


@pytest.mark.parametrize("url", TABLE)
def test_what_is_displayed_is_displayed_as_it_is(url: str) -> None:
    assert displayed_url(displayed_url(url)) == displayed_url(url)


texts = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=12, max_size=40)


@given(texts)
def test_no_value_of_a_query_is_ever_displayed(value: str) -> None:
    url = f"https://h.example/in?a={quote(value, '')}"
    assert displayed_url(url) == f"https://h.example/in?a={M}"
    assert quote(value, "") in [each.reveal() for each in url_tokens(url)]


def test_f129_the_tokens_of_a_url_are_what_its_display_form_hides() -> None:
    tokens = url_tokens("https://h.example/hook/T0K3N-abc?key=S3CR3T&on&mode=")
    assert [each.reveal() for each in tokens] == ["T0K3N-abc", "on", "S3CR3T"]
    assert url_tokens("https://h.example/webhooks/orders") == ()


ECHOES: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "in JSON": json.dumps,
    "in JSON with slashes escaped": lambda text: json.dumps(text).replace("/", "\\/"),
    "in JSON as .NET writes it": lambda text: text.replace("+", r"\u002B").replace('"', r"\u0022"),
    "in HTML by numbers": lambda text: text.replace('"', "&#34;"),
    "in a URL": lambda text: quote(text, ""),
    "in a URL in small letters": lambda text: quote(text, "").replace("%2F", "%2f").replace("%2B", "%2b"),
    "without its scheme": lambda text: text.removeprefix("Bearer "),
    "within a line": lambda text: f"Authorization: {text}\r\n",
}


@pytest.mark.parametrize("how", ECHOES)
@pytest.mark.parametrize(
    "text", ['Bearer s3c/r3t"t', "Bearer s3c+r3t+t", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]
)
def test_an_echo_is_masked_however_it_was_written(how: str, text: str) -> None:
    echoed = f"<{ECHOES[how](text)}>".encode()
    shown = masked(echoed, [Secret(text)])
    assert M.encode() in shown
    assert b"s3c" not in shown
    assert b"AAECAwQ" not in shown


def test_what_is_too_short_to_guard_anything_is_left_in_its_place() -> None:
    assert masked(b"true or blue", [Secret("true"), Secret("blue"), Secret("")]) == b"true or blue"


@given(st.binary(max_size=80), st.integers(0, 80))
def test_an_echo_cut_off_in_its_middle_is_masked(before: bytes, length: int) -> None:
    secret = base64.b64encode(bytes(range(200, 248))).decode()
    cut = before + secret[:length].encode()
    shown = masked(cut, [Secret(secret)], cut=True)
    assert secret[:6].encode() not in shown
    assert shown.startswith(before[:-6])


@given(st.binary(max_size=200))
def test_what_echoes_nothing_is_left_as_it_is(answer: bytes) -> None:
    assert masked(answer, [Secret("whsec_" + "A" * 43 + "=")], cut=True) == answer


@given(st.text(min_size=6, max_size=40), st.binary(max_size=20), st.binary(max_size=20), st.data())
def test_looking_first_misses_no_form_of_a_value(
    value: str, before: bytes, after: bytes, data: st.DataObject
) -> None:
    form = data.draw(st.sampled_from(list(escaped.forms(value)))).encode("utf-8", "surrogatepass")
    assert form not in masked(before + form + after, [Secret(value)]).replace(M.encode(), b"\0")
