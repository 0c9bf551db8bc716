"""The line to run: whatever the bytes, a shell hands curl exactly those, and nothing else is run."""

import base64
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import curl

URL = "http://localhost:8080/webhook?a=[1]&b='"
HEADERS = (
    ("Host", "hooks.example.com"),
    ("Relay-Signature", "v1=00ff"),
    ("Content-Type", 'text/plain; note="it\'s $HOME `id`"'),
    ("Content-Length", "3"),
    ("Accept", "*/*"),
)


def words(body: bytes | None) -> list[str]:
    return shlex.split(curl.line(URL, HEADERS, body))


def posted(line: str) -> bytes:
    """Say what a shell would have curl post."""
    said = shlex.split(line)
    if said[0] == "printf":
        assert said[1] == "%s"
        assert said[3:7] == ["|", "base64", "-d", "|"]
        assert said[-2:] == ["--data-binary", "@-"]
        return base64.b64decode(said[2], validate=True)
    assert said[0] == "curl"
    assert said[-2] == "--data-binary"
    return said[-1].encode()


def test_a_line_says_all_that_is_not_curl_s_own() -> None:
    assert words(b'{"a": 1}') == [
        "curl", "--globoff", "--request", "POST", URL,
        "--header", "Relay-Signature: v1=00ff",
        "--header", "Content-Type: text/plain; note=\"it's $HOME `id`\"",
        "--header", "Expect:",
        "--data-binary", '{"a": 1}',
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        b"@/etc/passwd",
        b"\x00",
        b"\xff",
        b"a\r\nb",
        b"\x1b[2J",
        "a\u202eb".encode(),
        b"a\tb",
    ],
)
def test_what_a_terminal_or_curl_would_not_take_as_it_is_goes_through_base64(body: bytes) -> None:
    line = curl.line(URL, HEADERS, body)
    assert line.startswith("printf %s ")
    assert posted(line) == body


@given(st.binary(min_size=1) | st.text(min_size=1).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_come_out_as_they_are(body: bytes) -> None:
    assert posted(curl.line(URL, HEADERS, body)) == body


def test_without_a_body_the_line_reads_a_file() -> None:
    assert words(None)[-2:] == ["--data-binary", "@payload.bin"]
