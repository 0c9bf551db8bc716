"""Rows and values: how each thing of the domain is written as a record, and read back."""

from typing import Any

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.auth_rows import auth_of, auth_value
from chalicelib.application.ports import Fanout, Idempotency, StoredEvent, Subscriber
from chalicelib.domain import ids, retention
from chalicelib.domain.allowance import Pace
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.change import Record
from chalicelib.domain.delivery import Attempt, Created, Ended, HistoryRow, Lane, Owed, placed
from chalicelib.domain.ending import Cause, Ending
from chalicelib.domain.endpoint import (
    Endpoint,
    EndpointState,
    Limits,
    Ordering,
    Transport,
    WrappedSecret,
)
from chalicelib.domain.event import Event, packed, unpacked
from chalicelib.domain.gate import HoldReason, Spell, Tally
from chalicelib.domain.gate.record import durations_of, held_of, written
from chalicelib.domain.outcome import DeathReason, Fault, Outcome
from chalicelib.domain.secret import Secret
from chalicelib.domain.sent import Sent
from chalicelib.domain.signing import SignatureForm

_NOT_TOLD_APART = (0, 0)
"""Processing and TLS in rows that are older than the two."""


def event_row(stored: StoredEvent) -> dict[str, Any]:
    """Write an event; the body inline unless it is kept apart."""
    event = stored.event
    row: dict[str, Any] = {
        "type": event.type,
        "content_type": event.content_type,
        "received_ms": event.received_ms,
        "size": stored.size,
        "fan_out": stored.fan_out,
        "ttl": retention.payload_until_s(event.received_ms),
    }
    if stored.matched:
        row["matched"] = list(stored.matched)
    if stored.payload_key:
        row["payload_key"] = stored.payload_key
    else:
        row["body"] = packed(event.body)
    return row


def event_of(record: Record) -> StoredEvent:
    """Read an event; a body kept apart is empty here."""
    tenant = record["pk"].partition("#")[0]
    body = unpacked(record["body"]) if "body" in record else b""
    event = Event(tenant, record["sk"], record["type"], record["content_type"], body, record["received_ms"])
    return StoredEvent(
        event,
        record["size"],
        record.get("payload_key", ""),
        record["fan_out"],
        tuple(record.get("matched", ())),
    )


def owed_row(owed: Owed) -> dict[str, Any]:
    """Write an owed row; what its key says is not said again, and a zero is left out."""
    counts = {
        "made": owed.made,
        "counted": owed.counted,
        "unknowns": owed.unknowns,
        "first_ms": owed.first_ms,
        "held_before_ms": owed.held_before_ms,
        "ready_ms": owed.ready_ms if owed.lane.ordered else 0,
        "sequence": owed.sequence if owed.lane.replay else 0,
    }
    return {"event": owed.event_id} | {name: value for name, value in counts.items() if value}


def owed_of(record: Record) -> Owed:
    """Read an owed row."""
    tenant, endpoint_id, number = record["pk"].split("#")
    position, delivery, generation = record["sk"].split("#")
    lane = Lane(tenant, endpoint_id, number)
    ready_ms, sequence = placed(lane, position)
    return Owed(
        lane,
        delivery,
        record["event"],
        record.get("ready_ms", ready_ms),
        int(generation),
        record.get("made", 0),
        record.get("counted", 0),
        record.get("unknowns", 0),
        record.get("first_ms", 0),
        record.get("sequence", sequence),
        record.get("held_before_ms", 0),
    )


def created_row(created: Created) -> dict[str, Any]:
    """Write a delivery's first history row."""
    return {
        "event": created.event_id,
        "type": created.event_type,
        "lane": created.lane,
        "at_ms": created.at_ms,
        "ttl": retention.history_until_s(created.at_ms),
        **({"sequence": created.sequence} if created.sequence else {}),
    }


def attempt_row(attempt: Attempt) -> dict[str, Any]:
    """Write an attempt; empty values are left out, as each is paid for on every write.

    `took_ms` lists its whole wait, what it took to connect, to the first byte and in all, then, of that,
    processing and TLS.
    """
    row: dict[str, Any] = {
        "event": attempt.event_id,
        "outcome": attempt.outcome.value,
        "at_ms": attempt.at_ms,
        "status": attempt.status,
        "fault": attempt.fault.value if attempt.fault else "",
        "detail": attempt.detail,
        "response": attempt.response,
        "truncated": int(attempt.truncated),
        "took_ms": [
            attempt.queue_ms,
            attempt.connect_ms,
            attempt.first_byte_ms,
            attempt.total_ms,
            attempt.processing_ms,
            attempt.tls_ms,
        ],
        "next_ms": attempt.next_ms,
        "held_ms": attempt.held_ms,
        "held_for": attempt.held_for.value if attempt.held_for else "",
        "sent": _sent(attempt.sent) if attempt.sent else [],
        "ttl": retention.history_until_s(attempt.at_ms),
    }
    return {name: value for name, value in row.items() if value}


def ended_row(ended: Ended) -> dict[str, Any]:
    """Write the last row of a delivery that was given up on."""
    return {
        "event": ended.event_id,
        "reason": ended.reason.value,
        "at_ms": ended.at_ms,
        "attempts": ended.attempts,
        "ttl": retention.history_until_s(ended.at_ms),
    }


def dead_letter_row(ended: Ended) -> dict[str, Any]:
    """Write a dead letter; it says what the last row of its history says, and is gone before that."""
    return {**ended_row(ended), "ttl": retention.dead_until_s(ended.at_ms)}


def dead_letter_of(record: Record) -> Ended:
    """Read a dead letter."""
    delivery, generation = record["sk"].split("#")
    reason = DeathReason(record["reason"])
    return Ended(delivery, int(generation), record["event"], reason, record["at_ms"], record["attempts"])


def history_of(record: Record) -> HistoryRow:
    """Read a history row of whichever kind its key says."""
    delivery, generation, number = record["sk"].split("#")
    if number == keys.END:
        reason = DeathReason(record["reason"])
        return Ended(delivery, int(generation), record["event"], reason, record["at_ms"], record["attempts"])
    if int(number) == keys.CREATED_NUMBER:
        return Created(
            delivery,
            int(generation),
            record["event"],
            record["type"],
            record["lane"],
            record["at_ms"],
            record.get("sequence", 0),
        )
    return attempt_of(record)


def attempt_of(record: Record) -> Attempt:
    """Read an attempt."""
    delivery, generation, number = record["sk"].split("#")
    fault = record.get("fault")
    queue_ms, connect_ms, first_byte_ms, total_ms, *rest = record["took_ms"]
    processing_ms, tls_ms = rest or _NOT_TOLD_APART
    return Attempt(
        delivery,
        int(generation),
        int(number),
        record["event"],
        Outcome(record["outcome"]),
        record["at_ms"],
        record.get("status"),
        Fault(fault) if fault else None,
        record.get("detail", ""),
        record.get("response", b""),
        bool(record.get("truncated", 0)),
        queue_ms,
        connect_ms,
        first_byte_ms,
        total_ms,
        record.get("next_ms", 0),
        record.get("held_ms", 0),
        HoldReason(record["held_for"]) if "held_for" in record else None,
        processing_ms,
        tls_ms,
        _sent_of(record["sent"]) if "sent" in record else None,
    )


def _sent(sent: Sent) -> list[str | int]:
    """Write what is kept of a request as one list: a name for each part would cost more than the part."""
    return [sent.form.value, sent.timestamp, sent.signature, sent.agent, sent.url, *sent.custom]


def _sent_of(parts: list[Any]) -> Sent:
    form, timestamp, signature, agent, url, *custom = parts
    return Sent(url, SignatureForm(form), timestamp, signature, agent, tuple(custom))


def hold_row(spell: Spell) -> dict[str, Any]:
    """Write a hold of an endpoint; times in Unix microseconds."""
    return {
        "reason": spell.reason.value,
        "from_us": spell.since,
        "until_us": spell.until,
        "ttl": retention.hold_until_s(spell.until // 1000),
    }


def hold_of(record: Record) -> Spell:
    """Read a hold of an endpoint."""
    return Spell(HoldReason(record["reason"]), record["from_us"], record["until_us"])


def endpoint_row(endpoint: Endpoint) -> dict[str, Any]:
    """Write an endpoint's configuration; secrets as they were wrapped."""
    return {
        "url": endpoint.url,
        "event_types": list(endpoint.event_types),
        "created_ms": endpoint.created_ms,
        "transport": endpoint.transport.value,
        "description": endpoint.description,
        "rate": endpoint.limits.rate_per_second,
        "burst": endpoint.limits.burst,
        "cap": endpoint.limits.max_concurrency,
        "ordering": endpoint.ordering.value,
        "retry_profile": endpoint.retry_profile.value,
        "signature": endpoint.signature.value,
        "headers": [[name, value.reveal()] for name, value in endpoint.headers],
        "state": endpoint.state.value,
        "state_reason": endpoint.state_reason,
        "secrets": [_secret_value(each) for each in endpoint.secrets],
        "version": endpoint.version,
        "changed_ms": endpoint.changed_ms,
        "state_ms": endpoint.state_ms,
        "skip_before_ms": endpoint.skip_before_ms,
        "lanes_before": endpoint.lanes_before,
        **({"filter": endpoint.filter} if endpoint.filter else {}),
        **({"auth": auth_value(endpoint.auth)} if endpoint.auth else {}),
        **({"role": endpoint.role} if endpoint.role else {}),
    }


def endpoint_of(record: Record) -> Endpoint:
    """Read an endpoint's configuration."""
    return Endpoint(
        record["pk"],
        record["sk"],
        record["url"],
        tuple(record["event_types"]),
        record["created_ms"],
        Transport(record["transport"]),
        record["description"],
        Limits(record["rate"], record["burst"], record["cap"]),
        Ordering(record["ordering"]),
        RetryProfile(record["retry_profile"]),
        SignatureForm(record["signature"]),
        tuple((name, Secret(value)) for name, value in record["headers"]),
        EndpointState(record["state"]),
        record["state_reason"],
        tuple(_secret_of(*each) for each in record["secrets"]),
        record["version"],
        record.get("changed_ms", 0),
        record.get("state_ms", 0),
        record.get("skip_before_ms", 0),
        record.get("lanes_before", 0),
        record.get("filter", ""),
        auth_of(record.get("auth")),
        record.get("role", ""),
    )


def _secret_value(secret: WrappedSecret) -> list[Any]:
    public = [secret.public_key] if secret.public_key else []
    return [secret.ciphertext, secret.expires_at or 0, *public]


def _secret_of(ciphertext: bytes, expires_at: int, public_key: str = "") -> WrappedSecret:
    return WrappedSecret(ciphertext, expires_at or None, public_key)


def subscriber_value(endpoint: Endpoint) -> list[int | str]:
    """Write what a packed subscription row holds of an endpoint: lanes and age.

    A third value only if it is ordered or filtered, a fourth, the mark of its filter, only if it has one.
    """
    value: list[int | str] = [endpoint.limits.lanes, endpoint.created_ms]
    if endpoint.filter:
        return [*value, int(endpoint.ordered), endpoint.filter_mark]
    return [*value, 1] if endpoint.ordered else value


def subscribers_of(record: Record) -> list[Subscriber]:
    """Read a packed subscription row."""
    return [
        Subscriber(name, value[0], value[1], value[2:3] == [1], value[3] if value[3:] else "")
        for name, value in record.items()
        if ids.is_id(name, "ep")
    ]


def idempotency_row(claim: Idempotency) -> dict[str, Any]:
    """Write an idempotency key's claim."""
    return {"fingerprint": claim.fingerprint, "answer": claim.answer, "ttl": claim.expires_s}


def idempotency_of(record: Record) -> Idempotency:
    """Read an idempotency key's claim."""
    key = record["pk"].partition("#")[2]
    return Idempotency(key, record["fingerprint"], record["answer"], record["ttl"])


def tally_row(tally: Tally) -> dict[str, Any]:
    """Write what an endpoint's requests of an hour came to."""
    return {
        "attempts": tally.attempts,
        "failed": tally.failed,
        "timed_out": tally.timed_out,
        "took": written(tally.took),
        "waited": written(tally.waited),
        "held_ms": written(tally.held_ms),
        "ttl": retention.stats_until_s(tally.hour),
    }


def tally_of(record: Record) -> Tally:
    """Read what an endpoint's requests of an hour came to."""
    counts = (int(record["sk"]), record["attempts"], record["failed"], record["timed_out"])
    durations = (durations_of(record.get("took", {})), durations_of(record.get("waited", {})))
    return Tally(*counts, *durations, held_of(record.get("held_ms", {})))


def ending_row(ending: Ending) -> dict[str, Any]:
    """Write what is being ended of an endpoint."""
    return {"version": ending.version, "due_ms": ending.due_ms, "cursor": ending.cursor}


def ending_of(record: Record) -> Ending:
    """Read what is being ended of an endpoint."""
    endpoint_id, cause = record["sk"].split("#")
    of = (record["pk"], endpoint_id, Cause(cause))
    return Ending(*of, record["version"], record["due_ms"], record["cursor"])


def fanout_row(fanout: Fanout) -> dict[str, Any]:
    """Write a later fan-out."""
    return {"type": fanout.event_type, "cursor": fanout.cursor, **pace_row(fanout.pace)}


def fanout_of(record: Record) -> Fanout:
    """Read a later fan-out."""
    pace = Pace(record.get("paid", 0), record.get("due_ms", 0), record.get("cost", 0))
    return Fanout(record["pk"], record["sk"], record["type"], record["cursor"], pace)


def pace_row(pace: Pace) -> dict[str, Any]:
    """Write when a fan-out goes on; one that no budget holds back says nothing of it."""
    return {"paid": pace.paid, "due_ms": pace.due_ms, "cost": pace.cost} if pace.cost else {}
