"""Routes of events: posting one or many, and asking about them."""

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from chalice.app import Chalice, Response

from chalicelib import bootstrap
from chalicelib.application.ingest import Accepted, Post
from chalicelib.domain import event as events
from chalicelib.domain import metrics
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.metrics import IngestResult
from chalicelib.handlers import counted, http, problems
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, bodies, parsing

Became = list[IngestResult]
"""What became of the events of a request, filled in as it is answered."""
REPLAYED = {"Relay-Idempotent-Replay": "true"}
_CHARSET = re.compile(r"""; *charset *= *"?([^ ;"]+)""", re.ASCII | re.IGNORECASE)
_MAY_NOT_POST = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_ITEM_FIELDS = {
    "Relay-Event-Type": "type",
    "Content-Type": "content_type",
    "Idempotency-Key": "idempotency_key",
}


def answer(app: Chalice, post: Callable[[Asked, Became], Response]) -> Response:
    """Answer a request that posts, and count what became of each event, and how long that took."""
    began_us = bootstrap.clock().now_us()
    became: Became = []
    response = http.answered(app, lambda asked: post(asked, became))
    if not became:
        _note(became, HTTPStatus(response.status_code))
    counting = bootstrap.counting()
    for result, times in Counter(became).items():
        counting.count(metrics.INGESTED, result, times)
    if became:
        counting.lasted(metrics.INGEST_TIME, (bootstrap.clock().now_us() - began_us) // 1000)
    counted.flush_soon()
    return response


def _note(became: Became, status: HTTPStatus) -> None:
    """Note what became of an event by its status; whoever may not post has posted none."""
    if status is HTTPStatus.TOO_MANY_REQUESTS:
        became.append(IngestResult.LIMITED)
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        became.append(IngestResult.UNAVAILABLE)
    elif status not in _MAY_NOT_POST:
        became.append(IngestResult.REJECTED)


def _note_accepted(became: Became, accepted: Accepted) -> None:
    became.append(IngestResult.REPEATED if accepted.replayed else IngestResult.ACCEPTED)


def post(asked: Asked, became: Became) -> Response:
    """Accept one event: 202 with its id and those of its deliveries."""
    accepted = bootstrap.ingest().one(
        Post(
            asked.caller.tenant,
            asked.body,
            asked.headers.get("content-type", events.JSON_CONTENT_TYPE),
            asked.headers.get("relay-event-type"),
            asked.headers.get("idempotency-key"),
        ),
        asked.caller.account.quotas,
    )
    _note_accepted(became, accepted)
    return http.exact(accepted.answer, http.JSON, 202, REPLAYED if accepted.replayed else None)


def post_batch(asked: Asked, became: Became) -> Response:
    """Accept up to a hundred events, each all or nothing: 207 with a status each.

    Of those above the tenant's quota each is told so in its place; 429 when all of them are.
    """
    settings = bootstrap.settings()
    items = parsing.parse(bodies.BatchBody, asked.body, max_bytes=settings.batch_max_bytes).events
    if len(items) > settings.batch_max_events:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"The batch has {len(items)} events.",
            field="events",
            expected=f"at most {settings.batch_max_events} events",
        )
    posts = [_post_of(asked.caller.tenant, item) for item in items]
    good = [each for each in posts if isinstance(each, Post)]
    results = iter(bootstrap.ingest().many(good, asked.caller.account.quotas)) if good else iter(())
    answered = [next(results) if isinstance(each, Post) else each for each in posts]
    for each in answered:
        if isinstance(each, Accepted):
            _note_accepted(became, each)
        else:
            _note(became, problems.status_of(each.code))
    limited = [each for each in answered if isinstance(each, RelayError) and each.retry_after_s]
    if limited and len(limited) == len(answered):
        raise limited[0]
    later = {"Retry-After": str(limited[0].retry_after_s)} if limited else None
    return http.reply({"results": [_item(each) for each in answered]}, 207, later)


def page(asked: Asked) -> Response:
    """List events, newest first."""
    listing, extent = asked.extent("events", "evt")
    found = bootstrap.questions().events(asked.caller.tenant, extent)
    return asked.listed([answers.event(each) for each in found.items], listing, found.after)


def get(asked: Asked, event_id: str) -> Response:
    """Show one event."""
    return http.reply(answers.event(bootstrap.questions().event(asked.caller.tenant, event_id)))


def payload(asked: Asked, event_id: str) -> Response:
    """Give an event's exact bytes."""
    stored, body = bootstrap.questions().payload(asked.caller.tenant, event_id)
    return http.exact(body, stored.event.content_type)


def deliveries(asked: Asked, event_id: str) -> Response:
    """List an event's deliveries."""
    status = asked.status()
    listing = f"deliveries of {event_id} {status or 'all'}"
    after, limit = asked.page(listing, "ep")
    found = bootstrap.questions().deliveries_of_event(asked.caller.tenant, event_id, after, limit, status)
    shown = bootstrap.showing().deliveries(asked.caller.tenant, found.items)
    return asked.listed([answers.delivery(each) for each in shown], listing, found.after)


def _post_of(tenant: str, value: object) -> Post | RelayError:
    try:
        item = parsing.checked(bodies.BatchItem, value)
        body = _bytes_of(item)
        return Post(tenant, body, _content_type_of(item), item.type, item.idempotency_key)
    except RelayError as error:
        return error


def _content_type_of(item: bodies.BatchItem) -> str:
    content_type = events.JSON_CONTENT_TYPE if item.content_type is None else item.content_type
    if item.payload is None:
        return content_type
    charset = _CHARSET.search(content_type)
    if charset is None:
        return f"{content_type}; charset=utf-8" if content_type.lower().startswith("text/") else content_type
    if charset[1].lower() != "utf-8":
        raise RelayError(
            ErrorCode.CONTENT_TYPE_INVALID,
            "`payload` is text and is sent as UTF-8, not in the charset its content type says.",
            field="content_type",
            expected="charset=utf-8, or the bytes as `payload_base64`",
        )
    return content_type


def _bytes_of(item: bodies.BatchItem) -> bytes:
    if (item.payload is None) == (item.payload_base64 is None):
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "The event needs its bytes once.",
            field="payload",
            expected="either `payload` (text) or `payload_base64`",
        )
    try:
        if item.payload is not None:
            return item.payload.encode("utf-8")
        return base64.b64decode(item.payload_base64 or "", validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError) as error:
        field = "payload" if item.payload is not None else "payload_base64"
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`{field}` cannot be read as bytes.",
            field=field,
            expected="text without half surrogate pairs, or strict base64",
        ) from error


def _item(result: Accepted | RelayError) -> dict[str, Any]:
    if isinstance(result, RelayError):
        document = problems.document(result)
        if result.field in _ITEM_FIELDS:
            document["field"] = _ITEM_FIELDS[result.field]
        later = {"retry_after_s": result.retry_after_s} if result.retry_after_s else {}
        return {"status": document["status"], "error": document, **later}
    body: dict[str, Any] = {"status": 202, **json.loads(result.answer)}
    return body | {"idempotent_replay": True} if result.replayed else body
