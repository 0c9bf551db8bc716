"""The catalogue of metrics: what Relay counts and measures, for Prometheus and CloudWatch alike.

Every metric is here with every value its label can have, so that what never happened reads as 0, not as
missing. Names and units follow Prometheus's conventions. docs/operations.md says what each is good for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from chalicelib.domain.gate.record import Breaker, HoldReason
from chalicelib.domain.notice import NoticeKind
from chalicelib.domain.outcome import DeathReason, Outcome


class Kind(StrEnum):
    """How a metric behaves: it only grows, it goes up and down, or it says how durations are spread."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Part(StrEnum):
    """Who writes a counter: each part is a record of its own, so that it stays one write unit."""

    DELIVERY = "delivery"
    INGEST = "ingest"
    UPKEEP = "upkeep"
    REPORTER = "reporter"


class IngestResult(StrEnum):
    """What became of a posted event."""

    ACCEPTED = "accepted"
    REPEATED = "repeated"
    REJECTED = "rejected"
    LIMITED = "limited"
    UNAVAILABLE = "unavailable"


class ProbeResult(StrEnum):
    """What a half-open breaker's one request came to."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Schedule(StrEnum):
    """The scheduled functions on which a promise hangs."""

    RECONCILE = "reconcile"
    NOTIFY = "notify"
    RETENTION = "retention"
    EXPORT_AUDIT = "export_audit"


BUCKETS_MS: Final = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000)
"""The upper bounds of every histogram's buckets; the last bucket has none."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; `label` is empty for those that have none, and `values` are all that it can have."""

    name: str
    kind: Kind
    part: Part
    help: str
    label: str = ""
    values: tuple[str, ...] = ("",)


def _counter(
    name: str, part: Part, told: str, label: str = "", values: type[StrEnum] | None = None
) -> Metric:
    return Metric(name, Kind.COUNTER, part, told, label, tuple(values) if values else ("",))


def _gauge(name: str, told: str, label: str = "", values: tuple[str, ...] = ("",)) -> Metric:
    return Metric(name, Kind.GAUGE, Part.REPORTER, told, label, values)


def _histogram(name: str, part: Part, told: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, part, told)


ATTEMPTS: Final = _counter(
    "relay_delivery_attempts_total", Part.DELIVERY, "Attempts in history, by the class of their outcome.",
    "outcome", Outcome,
)  # fmt: skip
DEFERRED: Final = _counter(
    "relay_deliveries_deferred_total", Part.DELIVERY,
    "Ready deliveries that a visit put off, by what holds their endpoint; put off again, counted again.",
    "reason", HoldReason,
)  # fmt: skip
DEAD_LETTERS: Final = _counter(
    "relay_dead_letters_total", Part.DELIVERY, "Deliveries given up on, by why.", "reason", DeathReason
)
BREAKER_TRIPS: Final = _counter("relay_breaker_trips_total", Part.DELIVERY, "Times that a breaker opened.")
PROBES: Final = _counter(
    "relay_probes_total", Part.DELIVERY, "Requests that try whether a breaker may close, by their result.",
    "result", ProbeResult,
)  # fmt: skip
REFUSED: Final = _counter(
    "relay_requests_refused_total",
    Part.DELIVERY,
    "Requests that the address policy refused before a connection.",
)
LEASES_LOST: Final = _counter(
    "relay_leases_lost_total",
    Part.DELIVERY,
    "Visits that outlived their lease, so that another took it over.",
)
PAYLOADS_LOST: Final = _counter(
    "relay_payloads_lost_total",
    Part.DELIVERY,
    "Deliveries whose payload was gone, or not whole, as it was to be sent; they are dead letters.",
)
FIRST_ATTEMPT: Final = _histogram(
    "relay_time_to_first_attempt_seconds", Part.DELIVERY,
    "From an event's acceptance to the start of a delivery's first attempt, less what it was held.",
)  # fmt: skip
PLATFORM: Final = _histogram(
    "relay_attempt_platform_seconds", Part.DELIVERY,
    "From an attempt's ready time to its start, less what its endpoint was held: Relay's own part.",
)  # fmt: skip
CONSUMER: Final = _histogram(
    "relay_attempt_consumer_seconds", Part.DELIVERY, "What an endpoint took to answer, connecting included."
)
INGESTED: Final = _counter(
    "relay_ingest_total", Part.INGEST, "Events posted, by what became of them.", "result", IngestResult
)
INGEST_TIME: Final = _histogram(
    "relay_ingest_duration_seconds", Part.INGEST, "What a request that posts events took inside the function."
)
RESCUED: Final = _counter(
    "relay_rescued_total",
    Part.UPKEEP,
    "Late lanes that nobody had looked at and reconcile rang: bells were lost.",
)
NOTICES: Final = _counter(
    "relay_notices_total", Part.UPKEEP, "Notices told to owners, by kind.", "kind", NoticeKind
)
REMOVED: Final = Metric(
    "relay_retention_removed_total", Kind.COUNTER, Part.UPKEEP, "What retention removed, by kind.",
    "kind", ("payloads", "rows", "tombstones"),
)  # fmt: skip
OLDEST_PENDING: Final = _gauge(
    "relay_queue_oldest_pending_age_seconds",
    "How long the oldest delivery has been due among endpoints that are not held; NaN: none is due.",
)
DEPTH: Final = _gauge(
    "relay_queue_depth", "Deliveries that are owed, due or not; at most 20,000 of a lane are counted."
)
IN_FLIGHT: Final = _gauge("relay_inflight", "Deliveries that live leases name.")
BREAKERS: Final = _gauge(
    "relay_breakers", "Endpoints that have, or just had, something owed, by the state of their breaker.",
    "state", tuple(Breaker),
)  # fmt: skip
HELD: Final = _gauge(
    "relay_endpoints_held", "Endpoints that are owed something and held, by why.", "reason", tuple(HoldReason)
)
BELLS: Final = _gauge(
    "relay_bells_inflight", "Bells that the fullest queue holds as being worked on; SQS stops at 120,000."
)
READING_AGE: Final = _gauge(
    "relay_reading_age_seconds",
    "How old the gauges of the queue are: how long ago the last whole walk began.",
)
CANARY_AGE: Final = _gauge(
    "relay_canary_age_seconds",
    "How long ago the canary that came through a shard last had been rung; of the shards, the longest.",
)
SCHEDULE_AGE: Final = _gauge(
    "relay_schedule_age_seconds", "How long ago a scheduled function last did all that it had to.",
    "schedule", tuple(Schedule),
)  # fmt: skip
OVERDUE: Final = _gauge(
    "relay_retention_overdue", "What should have been gone two days ago and is still there."
)

CATALOGUE: Final[tuple[Metric, ...]] = (
    OLDEST_PENDING, DEPTH, IN_FLIGHT, BREAKERS, HELD,
    BELLS, READING_AGE, CANARY_AGE, SCHEDULE_AGE, OVERDUE,
    ATTEMPTS, DEFERRED, DEAD_LETTERS, BREAKER_TRIPS, PROBES, REFUSED, LEASES_LOST, PAYLOADS_LOST,
    FIRST_ATTEMPT, PLATFORM, CONSUMER,
    INGESTED, INGEST_TIME,
    RESCUED, NOTICES, REMOVED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spread:
    """How durations are spread: how many fell into each bucket of BUCKETS_MS and above, and their sum."""

    counts: tuple[int, ...] = (0,) * (len(BUCKETS_MS) + 1)
    sum_ms: int = 0


Reading = Mapping[tuple[str, str], float | Spread]
"""What was read of the catalogue: by metric's name and label's value; what is missing was never counted."""
