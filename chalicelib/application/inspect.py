"""Inspect: the request of an attempt as it was sent, told from history and its event.

What no row keeps is made again by the rules that made it; nothing is made up where something is missing.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from urllib.parse import urlsplit

from chalicelib.application.ports import Generations, StoredEvent
from chalicelib.application.questions import Questions
from chalicelib.application.showing import Body, BodyShown, Showing
from chalicelib.domain import ids
from chalicelib.domain import request as requests
from chalicelib.domain.chat import message, platform
from chalicelib.domain.chat.platform import OFFICIAL, Origins
from chalicelib.domain.cloud import address as cloud
from chalicelib.domain.cloud import message as errands
from chalicelib.domain.delivery import Attempt, Created, HistoryRow, Lane, Owed
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.event import Event
from chalicelib.domain.outcome import BEFORE_SENDING, Outcome
from chalicelib.domain.secret import MASK
from chalicelib.domain.sent import Sent
from chalicelib.domain.signing import SignatureForm

_OF_THE_BODY = frozenset({"Content-Type", "Content-Length"})


class NoRequest(StrEnum):
    """Why there is no request to be shown."""

    NOT_TRIED = "not_tried"
    UNKNOWN = "unknown"
    NOT_SENT = "not_sent"
    NOT_KEPT = "not_kept"


@dataclass(frozen=True, slots=True)
class Shown:
    """A request as it may be seen: URL, headers in the order they were sent in, and its body.

    Of a chat's, `url` is its address, and `to` where its messages go, with a placeholder for the credential.
    An `errand` was a call of AWS's API: `headers` is what was told beside the body.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: Body
    to: str = ""
    errand: bool = False


@dataclass(frozen=True, slots=True)
class Inspected:
    """An attempt, or none where there was none yet, and its request or why there is none to be shown."""

    delivery_id: str
    endpoint_id: str
    event_id: str
    generation: int
    attempt: Attempt | None
    request: Shown | NoRequest


@dataclass(frozen=True, slots=True)
class Inspect:
    """Shows requests of the past."""

    questions: Questions
    showing: Showing
    origins: Origins = OFFICIAL

    def run(
        self, tenant: str, delivery_id: str, generation: int | None = None, number: int | None = None
    ) -> Inspected:
        """Show the request of an attempt: the newest, unless others are asked for; raises RelayError."""
        found = self.questions.generations(tenant, delivery_id)
        rows = _generation(found, generation)
        attempt = _attempt(rows, number)
        first = rows[0]
        request = self._request(tenant, rows, attempt) if attempt else NoRequest.NOT_TRIED
        return Inspected(delivery_id, found.endpoint_id, first.event_id, first.generation, attempt, request)

    def _request(self, tenant: str, rows: tuple[HistoryRow, ...], attempt: Attempt) -> Shown | NoRequest:
        sent = attempt.sent
        if sent is None:
            return _why_none(attempt)
        stored = self.questions.reading.event(tenant, attempt.event_id, self.questions.clock.now_ms())
        body = self.showing.body(tenant, stored)
        event, owed = _as_then(tenant, rows, attempt, stored, body)
        service = cloud.transport_of(sent.url)
        if service is not None:
            told = errands.again(sent.url, service, event, owed)
            return Shown(sent.url, told, body, errand=True)
        if sent.form is SignatureForm.NONE:
            return self._message(sent, event, body)
        headers = requests.again(sent, event, owed, MASK)
        if body.shown is BodyShown.GONE:
            headers = _but_of_the_body(headers)
        host = urlsplit(sent.url).netloc
        # Through a tunnel the listener writes its own server's name.
        return Shown(sent.url, ((("Host", host), *headers) if host else headers), body)

    def _message(self, sent: Sent, event: Event, body: Body) -> Shown:
        """Show what a chat was told, written again from the payload as far as that may be seen."""
        chat = platform.transport_of(sent.url)
        if chat is None:
            raise ValueError("a message without signature went to no chat")
        to = platform.built_url(chat, sent.url, self.origins)
        if body.shown is BodyShown.GONE:
            return Shown(sent.url, _but_of_the_body(message.again(sent, b"")), body, to)
        exact = message.body(chat, sent.url, event)
        seen = message.body(chat, sent.url, replace(event, body=body.seen))
        written = Body(body.shown, b"" if body.shown is BodyShown.HIDDEN else seen, exact)
        return Shown(sent.url, message.again(sent, exact), written, to)


def _but_of_the_body(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(each for each in headers if each[0] not in _OF_THE_BODY)


def _as_then(
    tenant: str, rows: tuple[HistoryRow, ...], attempt: Attempt, stored: StoredEvent | None, body: Body
) -> tuple[Event, Owed]:
    """Give event and delivery as they were when the attempt was made."""
    created = rows[0] if isinstance(rows[0], Created) else None
    kind = stored.event if stored else None
    event = Event(
        tenant,
        attempt.event_id,
        kind.type if kind else created.event_type if created else "",
        kind.content_type if kind else "",
        body.exact,
        kind.received_ms if kind else ids.created_ms(attempt.event_id),
    )
    sequence = created.sequence if created else 0
    lane = Lane(tenant, "", created.lane if created else "")
    owed = Owed(
        lane,
        attempt.delivery_id,
        attempt.event_id,
        0,
        attempt.generation,
        attempt.number - 1,
        sequence=sequence,
    )
    return event, owed


def _why_none(attempt: Attempt) -> NoRequest:
    if attempt.outcome is Outcome.UNKNOWN:
        return NoRequest.UNKNOWN
    return NoRequest.NOT_SENT if attempt.fault in BEFORE_SENDING else NoRequest.NOT_KEPT


def _generation(found: Generations, wanted: int | None) -> tuple[HistoryRow, ...]:
    number = found.rows[-1].generation if wanted is None else wanted
    rows = tuple(row for row in found.rows if row.generation == number)
    if not rows:
        known = sorted({row.generation for row in found.rows})
        raise _no_such("generation", number, f"one of: {', '.join(map(str, known))}")
    return rows


def _attempt(rows: tuple[HistoryRow, ...], wanted: int | None) -> Attempt | None:
    attempts = [row for row in rows if isinstance(row, Attempt)]
    if wanted is None:
        return attempts[-1] if attempts else None
    for each in attempts:
        if each.number == wanted:
            return each
    expected = f"1 to {attempts[-1].number}" if attempts else "none: no attempt has been made yet"
    raise _no_such("attempt", wanted, expected)


def _no_such(kind: str, number: int, expected: str) -> RelayError:
    return RelayError(
        ErrorCode.NOT_FOUND, f"There is no {kind} {number} of this delivery.", field=kind, expected=expected
    )
