"""The shapes of notices: as the API shows them, as the topic carries them, and in words for people."""

from typing import assert_never

from typing_extensions import TypedDict

from chalicelib.domain.notice import Notice, NoticeKind
from chalicelib.domain.outcome import DeathReason
from chalicelib.domain.request import event_time
from chalicelib.wire.answers.plain import Time, time_or_none

_SUBJECTS = {
    NoticeKind.DEAD_LETTERS: "deliveries were given up on",
    NoticeKind.ADDRESS_REFUSED: "its address was refused",
    NoticeKind.BREAKER_OPEN: "it keeps failing and is left alone for now",
    NoticeKind.ENDPOINT_GONE: "it answered 410 Gone and was disabled",
    NoticeKind.ENDPOINT_DISABLED: "it was disabled",
    NoticeKind.RECOVERED: "it has recovered",
    NoticeKind.CERTIFICATE_EXPIRES: "a certificate of its authentication expires",
}


class PublishedNotice(TypedDict):
    """A notice as it is published."""

    id: str
    tenant: str
    endpoint_id: str
    kind: NoticeKind
    at: Time
    since: Time
    until: Time
    dead_letters: int
    reasons: dict[DeathReason, int]
    complete: bool
    text: str


class NoticeAnswer(PublishedNotice):
    """A notice as the API lists it; `published_at` is null until the channel has taken it."""

    published_at: Time | None


def shown(notice: Notice) -> NoticeAnswer:
    """Show a notice as `GET /v1/notices` lists it."""
    return {**published(notice), "published_at": time_or_none(notice.published_ms)}


def published(notice: Notice) -> PublishedNotice:
    """Give a notice as it is published: ids, numbers and words; never a URL, a payload or a secret."""
    finding = notice.finding
    return {
        "id": notice.id,
        "tenant": notice.tenant,
        "endpoint_id": notice.endpoint_id,
        "kind": finding.kind,
        "at": event_time(notice.at_ms),
        "since": event_time(finding.since_ms),
        "until": event_time(finding.until_ms),
        "dead_letters": sum(finding.reasons.values()),
        "reasons": dict(sorted(finding.reasons.items())),
        "complete": finding.complete,
        "text": text(notice),
    }


def subject(notice: Notice) -> str:
    """Give the subject of a mail: printable ASCII, at most 100 characters."""
    return f"Relay: endpoint {notice.endpoint_id}: {_SUBJECTS[notice.finding.kind]}"


def letter(notice: Notice) -> str:
    """Give the body of a mail."""
    lines = (text(notice), f"Endpoint: {notice.endpoint_id}", f"Tenant: {notice.tenant}")
    return "\n".join((*lines, f"Notice: {notice.id} (should it come twice, it is the same one)", ""))


def text(notice: Notice) -> str:
    """Say in plain words what a notice is about and what its reader can do."""
    finding = notice.finding
    since = event_time(finding.since_ms)
    match finding.kind:
        case NoticeKind.DEAD_LETTERS:
            return f"{_lost(notice)} since {since}; they will not be tried again by themselves."
        case NoticeKind.ADDRESS_REFUSED:
            return (
                f"{_lost(notice)} since {since}: nothing was sent, as the endpoint's address is not one that"
                " requests may go to. Change its URL or what its name resolves to."
            )
        case NoticeKind.BREAKER_OPEN:
            return (
                f"The endpoint has kept failing since {since}: it is tried now and then, and its deliveries"
                " wait without spending an attempt."
            )
        case NoticeKind.ENDPOINT_GONE | NoticeKind.ENDPOINT_DISABLED:
            return (
                f"The endpoint was disabled at {since}: {finding.why}."
                " Its deliveries wait until it is enabled again."
            )
        case NoticeKind.RECOVERED:
            lost = _lost(notice) if finding.reasons else "No delivery was given up on"
            return f"The endpoint answers again; it had been in trouble since {since}. {lost} meanwhile."
        case NoticeKind.CERTIFICATE_EXPIRES:
            return (
                f"The first certificate of the endpoint's `auth` expires at {event_time(finding.until_ms)}:"
                " give a new one before."
            )
        case _:
            assert_never(finding.kind)


def _lost(notice: Notice) -> str:
    finding = notice.finding
    count = sum(finding.reasons.values())
    why = ", ".join(f"{reason.value} {each}" for reason, each in sorted(finding.reasons.items()))
    least = "" if finding.complete else "At least "
    were = "delivery was" if count == 1 else "deliveries were"
    return f"{least}{count} {were} given up on ({why})"
