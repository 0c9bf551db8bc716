"""Notices as records, and what was told of an endpoint; written and read back here alone."""

from collections.abc import Mapping
from typing import Any

from chalicelib.domain.change import Record
from chalicelib.domain.delivery import Ended
from chalicelib.domain.notice import KEPT_S, Finding, Notice, NoticeKind, Told, Track, Trouble
from chalicelib.domain.outcome import DeathReason


def notice_row(notice: Notice) -> dict[str, Any]:
    """Write a notice."""
    finding = notice.finding
    return {
        "endpoint": notice.endpoint_id,
        "kind": finding.kind.value,
        "at_ms": notice.at_ms,
        "since_ms": finding.since_ms,
        "until_ms": finding.until_ms,
        "reasons": _counts(finding.reasons),
        "complete": int(finding.complete),
        "why": finding.why,
        "published_ms": notice.published_ms,
        "ttl": notice.at_ms // 1000 + KEPT_S,
    }


def notice_of(record: Record) -> Notice:
    """Read a notice."""
    finding = Finding(
        NoticeKind(record["kind"]),
        record["since_ms"],
        record["until_ms"],
        _reasons(record["reasons"]),
        complete=record["complete"] == 1,
        why=record["why"],
    )
    whose = (record["pk"], record["sk"], record["endpoint"])
    return Notice(*whose, record["at_ms"], finding, record["published_ms"])


def letter_of(record: Record) -> Ended:
    """Read a dead letter."""
    delivery, generation = record["sk"].split("#")
    reason = DeathReason(record["reason"])
    return Ended(delivery, int(generation), record["event"], reason, record["at_ms"], record["attempts"])


def told_row(told: Told) -> dict[str, Any]:
    """Write what an endpoint's owner was told; what is not there is left out."""
    row: dict[str, Any] = {
        "version": told.version,
        "losses": _track_row(told.losses),
        "refusals": _track_row(told.refusals),
        "outage_us": told.outage_us,
        "disabled_ms": told.disabled_ms,
        "unsent": list(told.unsent),
        "claimed_ms": told.claimed_ms,
    }
    trouble = told.trouble
    row |= {"trouble": [trouble.since_ms, trouble.sent]} if trouble else {}
    return row | ({"expiry_s": told.expiry_s} if told.expiry_s else {})


def told_of(record: Record) -> Told:
    """Read what an endpoint's owner was told."""
    return Told(
        record["version"],
        _track_of(NoticeKind.DEAD_LETTERS, record["losses"]),
        _track_of(NoticeKind.ADDRESS_REFUSED, record["refusals"]),
        record["outage_us"],
        record["disabled_ms"],
        Trouble(*record["trouble"]) if "trouble" in record else None,
        tuple(record["unsent"]),
        record["claimed_ms"],
        record.get("expiry_s", 0),
    )


def _track_row(track: Track) -> list[Any]:
    return [track.until_ms, track.counted_ms, _counts(track.beyond), track.marked_us]


def _track_of(sort: NoticeKind, stored: list[Any]) -> Track:
    until_ms, counted_ms, beyond, marked_us = stored
    return Track(sort, until_ms, counted_ms, _reasons(beyond), marked_us)


def _counts(reasons: Mapping[DeathReason, int]) -> dict[str, int]:
    return {reason.value: count for reason, count in sorted(reasons.items())}


def _reasons(stored: Mapping[str, int]) -> dict[DeathReason, int]:
    return {DeathReason(reason): count for reason, count in stored.items()}
