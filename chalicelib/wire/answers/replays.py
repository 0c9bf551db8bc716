"""Bulk replays as the API shows them."""

from typing_extensions import TypedDict

from chalicelib.domain import ids
from chalicelib.domain.bulk_replay import BulkReplay, BulkState
from chalicelib.domain.delivery import Status
from chalicelib.domain.request import event_time
from chalicelib.wire.answers.plain import Time, time_or_none


class BulkReplayAnswer(TypedDict):
    """A bulk replay: what it takes, and how far it has come in the order of the events."""

    id: str
    endpoint_id: str
    state: BulkState
    reason: str | None
    since: Time
    until: Time
    status: Status
    event_types: list[str]
    matched: int
    matched_exactly: bool
    replayed: int
    skipped: int
    came_to: Time | None
    created_at: Time
    ended_at: Time | None


def bulk_replay(of: BulkReplay) -> BulkReplayAnswer:
    """Show a bulk replay: what it takes, and how far it has come in the order of the events."""
    wanted = of.wanted
    return {
        "id": of.id,
        "endpoint_id": of.endpoint_id,
        "state": of.state,
        "reason": of.reason or None,
        "since": event_time(wanted.since_ms),
        "until": event_time(wanted.until_ms),
        "status": wanted.status,
        "event_types": list(wanted.event_types),
        "matched": of.matched,
        "matched_exactly": of.exact,
        "replayed": of.replayed,
        "skipped": of.skipped,
        "came_to": event_time(ids.created_ms(of.cursor)) if of.cursor else None,
        "created_at": event_time(of.created_ms),
        "ended_at": time_or_none(of.ended_ms),
    }
