"""The request of an attempt as the API shows it, with a line that a developer can run."""

import base64
import codecs
from typing import assert_never

from typing_extensions import TypedDict

from chalicelib.application.inspect import Inspected, NoRequest, Shown
from chalicelib.application.showing import Body, BodyShown
from chalicelib.domain import curl
from chalicelib.domain.delivery import Attempt
from chalicelib.domain.outcome import Outcome
from chalicelib.domain.request import METHOD, event_time
from chalicelib.wire.answers.plain import Time

PLACEHOLDER = "http://localhost:8080/webhook"


class HeaderAnswer(TypedDict):
    """A header as it was sent; the value of a custom one is masked."""

    name: str
    value: str


class RequestAnswer(TypedDict):
    """A request: its body as text where it is text, else in base64; null when nothing of it is shown."""

    method: str
    url: str
    headers: list[HeaderAnswer]
    body: str | None
    body_base64: str | None
    body_shown: BodyShown
    size_bytes: int | None


_CALL = (
    "This was a call of AWS's API under your role, which no line of curl makes again: what was told"
    " beside the body stands as its headers."
)


class InspectedAnswer(TypedDict):
    """An attempt's request, or in `notes` why there is none, and the line that sends it once more."""

    delivery_id: str
    event_id: str
    endpoint_id: str
    generation: int
    attempt: int | None
    outcome: Outcome | None
    at: Time | None
    request: RequestAnswer | None
    curl: str | None
    notes: list[str]


def inspected(of: Inspected, to: str | None = None) -> InspectedAnswer:
    """Show a request of the past; the line to run sends it to an address of the reader's own."""
    request = None if isinstance(of.request, NoRequest) else of.request
    attempt = of.attempt
    return {
        "delivery_id": of.delivery_id,
        "event_id": of.event_id,
        "endpoint_id": of.endpoint_id,
        "generation": of.generation,
        "attempt": attempt.number if attempt else None,
        "outcome": attempt.outcome if attempt else None,
        "at": event_time(attempt.at_ms) if attempt else None,
        "request": _request(request) if request else None,
        "curl": _curl(request, to) if request else None,
        "notes": _notes(of, attempt),
    }


def _request(of: Shown) -> RequestAnswer:
    gone = of.body.shown is BodyShown.GONE
    text = _text(of.body.seen)
    nothing = gone or of.body.shown is BodyShown.HIDDEN
    coded = None if nothing or text is not None else base64.b64encode(of.body.seen).decode("ascii")
    return {
        "method": METHOD,
        "url": of.url,
        "headers": [{"name": name, "value": value} for name, value in of.headers],
        "body": None if nothing else text,
        "body_base64": coded,
        "body_shown": of.body.shown,
        "size_bytes": None if gone else len(of.body.exact),
    }


def _curl(of: Shown, to: str | None) -> str | None:
    if of.body.shown is BodyShown.GONE or of.errand:
        return None
    if of.to:
        hidden = of.body.shown is BodyShown.HIDDEN
        return None if hidden else curl.line(to or of.to, of.headers, of.body.seen)
    exact = of.body.shown is BodyShown.EXACT and len(of.body.exact) <= curl.INLINE_MAX
    return curl.line(to or PLACEHOLDER, of.headers, of.body.exact if exact else None)


def _notes(of: Inspected, attempt: Attempt | None) -> list[str]:
    if isinstance(of.request, NoRequest):
        return [_why_none(of.request, attempt)]
    said = [_of_message(of.request.body) if of.request.to else _of_body(of.request.body, of.event_id)]
    if of.request.errand:
        said.append(_CALL)
    elif not of.request.to and len(of.request.body.exact) > curl.INLINE_MAX:
        said.append(f"The body is too long for a line. {_fetch(of.event_id)}")
    if attempt is not None and attempt.status is None:
        said.append("No answer came, so it may or may not have arrived.")
    return [each for each in said if each]


def _of_body(body: Body, event_id: str) -> str:
    match body.shown:
        case BodyShown.EXACT:
            return ""
        case BodyShown.REDACTED:
            return (
                "The body is shown redacted: your tenant has marked some of it sensitive. What was sent, and"
                f" what the signature is of, is the exact payload. {_fetch(event_id)}"
            )
        case BodyShown.HIDDEN:
            return (
                "The body is not shown: your tenant has marked paths as sensitive, and it cannot be read as"
                f" JSON to say what they mark. {_fetch(event_id)}"
            )
        case BodyShown.GONE:
            return "The event is past its retention: its bytes, its media type and their length are gone."
        case _:
            assert_never(body.shown)


def _of_message(body: Body) -> str:
    match body.shown:
        case BodyShown.REDACTED:
            return (
                "The message is shown as it would be of the redacted payload: your tenant has marked some of"
                " it sensitive. What was sent was written from the exact payload."
            )
        case BodyShown.HIDDEN:
            return (
                "The message is not shown: your tenant has marked paths as sensitive, and the payload cannot"
                " be read as JSON to say what they mark."
            )
        case _:
            return _of_body(body, "")


def _fetch(event_id: str) -> str:
    return f"An admin saves GET /v1/events/{event_id}/payload as {curl.FILE}, which the line to run sends."


def _why_none(why: NoRequest, attempt: Attempt | None) -> str:
    match why:
        case NoRequest.NOT_TRIED:
            return (
                "No attempt has been made yet; the delivery itself says what it waits for, or why it ended."
            )
        case NoRequest.UNKNOWN:
            return (
                "The function that made this attempt died on the way. Whether a request left, and what was in"
                " it, is not known; the next attempt has the same Relay-Delivery-Id."
            )
        case NoRequest.NOT_SENT:
            fault = f" ({attempt.fault})" if attempt and attempt.fault else ""
            return f"Nothing was sent: what stood in the way{fault} came before the request."
        case NoRequest.NOT_KEPT:
            return "This attempt is older than the keeping of requests: its signature is not on record."
        case _:
            assert_never(why)


def _text(body: bytes) -> str | None:
    try:
        return codecs.decode(body, "utf-8")
    except UnicodeDecodeError:
        return None
