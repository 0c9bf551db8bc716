"""An event: what a producer posted, and the rules its name and bytes must keep.

The body is `bytes` from the door to the wire; it is looked into, never rewritten.
"""

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from chalicelib.domain.errors import ErrorCode, RelayError

TYPE_MAX = 128
NESTING_MAX = 500
CONTENT_TYPE_MAX = 256
JSON_CONTENT_TYPE = "application/json"
RESERVED = "relay."
"""How event types begin that no producer posts and no subscription takes."""
TEST_TYPE = f"{RESERVED}test"
TYPE_PATTERN = rf"[A-Za-z0-9_.]{{1,{TYPE_MAX}}}"
_TYPE = re.compile(TYPE_PATTERN, re.ASCII)
_CONTENT_TYPE = re.compile(r"[!-~]+/[!-~]+( ?;([ -~]*[!-~])?)?", re.ASCII)
# Possessive, and a string may lack its end: each byte is looked at once, whatever was posted.
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_DEFLATED, _PLAIN = b"z", b"="
_NUMBER = object()  # what a number is read as: its digits are the producer's affair
_TYPE_RULE = f"letters, digits, underscores and dots, at most {TYPE_MAX} characters, such as order.paid"


@dataclass(frozen=True, slots=True)
class Event:
    """A fact posted once; `received_ms` is Unix epoch milliseconds, `body` exactly the bytes posted."""

    tenant: str
    id: str
    type: str
    content_type: str
    body: bytes
    received_ms: int


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object in their order, doubles kept."""


def valid_type(text: str, field: str) -> str:
    """Give an event type back, or refuse it naming the field it came from."""
    if not _TYPE.fullmatch(text):
        raise RelayError(
            ErrorCode.EVENT_TYPE_INVALID, "The event type is not valid.", field=field, expected=_TYPE_RULE
        )
    if text.startswith(RESERVED):
        raise RelayError(
            ErrorCode.EVENT_TYPE_INVALID,
            f"Event types that begin with `{RESERVED}` are Relay's own.",
            field=field,
            expected="a type that begins with another name, such as order.paid",
        )
    return text


def is_test(event_type: str) -> bool:
    """Say whether an event is a test, which its owner sends to one endpoint to see what it does."""
    return event_type == TEST_TYPE


def valid_content_type(text: str) -> str:
    """Give a media type back, or refuse what could not stand in a header."""
    if len(text) > CONTENT_TYPE_MAX or not _CONTENT_TYPE.fullmatch(text):
        raise RelayError(
            ErrorCode.CONTENT_TYPE_INVALID,
            "The content type is not valid.",
            field="Content-Type",
            expected="a media type in printable ASCII, at most 256 characters, such as application/json",
        )
    return text


def is_json(content_type: str) -> bool:
    """Say whether a media type is JSON: application/json, text/json or anything ending in +json."""
    essence = content_type.partition(";")[0].strip().lower()
    return essence in {JSON_CONTENT_TYPE, "text/json"} or essence.endswith("+json")


def admit_body(body: bytes, content_type: str, named_type: str | None, *, max_bytes: int) -> str:
    """Check a posted body and say its event type.

    `named_type` is that of the Relay-Event-Type header, if it was there. JSON is parsed strictly
    also then; other media types need the header and are opaque. Raises RelayError.
    """
    if not body:
        raise _empty()
    if len(body) > max_bytes:
        raise too_large(len(body), max_bytes)
    header_type = valid_type(named_type, "Relay-Event-Type") if named_type is not None else None
    if not is_json(content_type):
        return header_type or _missing_type()
    body_type = _envelope_type(_parse(body))
    if header_type is None:
        return _type_from_body(body_type)
    if body_type is not None and body_type != header_type:
        raise RelayError(
            ErrorCode.EVENT_TYPE_CONFLICT,
            "The body's `type` differs from the Relay-Event-Type header.",
            field="type",
            expected="the same name in both, or only one of them",
        )
    return header_type


def packed(body: bytes) -> bytes:
    """Give a body as it is stored: deflated if that is smaller, else as it is. `unpacked` undoes it."""
    deflated = zlib.compress(body, level=1)
    return _DEFLATED + deflated if len(deflated) < len(body) else _PLAIN + body


def unpacked(stored: bytes) -> bytes:
    """Give back the exact body that was packed."""
    return zlib.decompress(stored[1:]) if stored[:1] == _DEFLATED else stored[1:]


def too_large(size: int, max_bytes: int) -> RelayError:
    """Make the answer to a body over the limit, both sizes in bytes."""
    return RelayError(
        ErrorCode.BODY_TOO_LARGE,
        f"The body has {size} bytes; the limit is {max_bytes} bytes.",
        expected=f"at most {max_bytes} bytes",
    )


def matching_patterns(event_type: str) -> Iterator[str]:
    """List the subscription patterns that take a type: its own name, every `prefix.*`, and `*`.

    A type of Relay's own is for whom it is made, and none takes it.
    """
    yield event_type
    if event_type.startswith(RESERVED):
        return
    parts = event_type.split(".")
    for length in range(len(parts) - 1, 0, -1):
        yield ".".join(parts[:length]) + ".*"
    yield "*"


def valid_pattern(text: str, field: str) -> str:
    """Give a subscription pattern back (`order.paid`, `order.*` or `*`), or refuse it."""
    if text == "*":
        return text
    if not _TYPE.fullmatch(text.removesuffix(".*")) or text.startswith(RESERVED):
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "The subscription pattern is not valid.",
            field=field,
            expected="an event type such as order.paid, all below a name such as order.*, or *",
        )
    return text


def _missing_type() -> NoReturn:
    raise RelayError(
        ErrorCode.EVENT_TYPE_MISSING,
        "The event has no type.",
        field="Relay-Event-Type",
        expected=f"the header Relay-Event-Type, or `type` in a JSON object: {_TYPE_RULE}",
    )


def _type_from_body(body_type: object) -> str:
    if body_type is None:
        _missing_type()
    return valid_type(body_type if isinstance(body_type, str) else "", "type")


def _envelope_type(value: object) -> object:
    if not isinstance(value, _Members):
        return None
    types = [member for name, member in value if name == "type"]
    if len(types) > 1:
        raise RelayError(
            ErrorCode.BODY_NOT_JSON,
            "The body has `type` more than once.",
            field="type",
            expected="one `type` at the top level",
        )
    return types[0] if types else None


def json_text(body: bytes) -> str:
    """Give a JSON body as text, or raise RelayError for what is empty, not UTF-8 or nested too deep."""
    if not body:
        raise _empty()
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RelayError(
            ErrorCode.BODY_NOT_UTF8,
            f"The body is not valid UTF-8 at byte {error.start}.",
            expected="JSON in UTF-8, or a content type that is not JSON",
        ) from error
    if text.startswith("\ufeff"):
        raise RelayError(
            ErrorCode.BODY_NOT_JSON,
            "The body begins with a byte-order mark.",
            expected="JSON that begins with its first character",
        )
    if _nesting(body) > NESTING_MAX:
        raise RelayError(
            ErrorCode.BODY_TOO_DEEP,
            f"The body is nested more than {NESTING_MAX} levels deep.",
            expected=f"at most {NESTING_MAX} levels",
        )
    return text


def refuse_constant(text: str) -> NoReturn:
    """Refuse NaN and the infinities, which Python reads and JSON does not have."""
    raise ValueError(f"{text} is not a JSON number")


def _empty() -> RelayError:
    return RelayError(ErrorCode.BODY_EMPTY, "The body is empty.", expected="at least one byte")


def _parse(body: bytes) -> object:
    text = json_text(body)
    try:
        return _DECODER.decode(text)
    except ValueError as error:
        raise RelayError(
            ErrorCode.BODY_NOT_JSON, f"The body is not valid JSON: {error}.", expected="JSON as in RFC 8259"
        ) from error


def _nesting(body: bytes) -> int:
    if body.count(b"[") + body.count(b"{") <= NESTING_MAX:
        return 0
    depth = deepest = 0
    for token in _BRACKETS.finditer(body):
        first = body[token.start()]
        depth += (first in b"[{") - (first in b"]}")
        deepest = max(deepest, depth)
    return deepest


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Members,
    parse_constant=refuse_constant,
    parse_int=lambda _: _NUMBER,
    parse_float=lambda _: _NUMBER,
)
