"""Every panel of the dashboards, in rows by what an operator asks; for CloudWatch and Grafana alike."""

from dataclasses import dataclass
from typing import Final

from chalicelib.domain import metrics
from chalicelib.domain.metrics import Metric


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: what is in it, and how it is read."""

    title: str
    metrics: tuple[Metric, ...]
    reads: str


@dataclass(frozen=True, slots=True)
class Row:
    """The panels that answer one question."""

    question: str
    panels: tuple[Panel, ...]


RESCUED: Final = Panel(
    "Rescued lanes: flat at zero",
    (metrics.RESCUED,),
    "Read as a negative. Each is a lane that no bell led to and the watchdog found: a queue lost something.",
)
UNRELATED: Final = Panel(
    "Ingest and endpoints: two lines that have nothing to do with each other",
    (metrics.INGEST_TIME, metrics.CONSUMER),
    "Read as a negative. Ingest never waits for an endpoint: where the lines move together, it does.",
)
ROWS: Final = (
    Row(
        "Is anything lost or late?",
        (
            RESCUED,
            Panel(
                "Oldest delivery that is due",
                (metrics.OLDEST_PENDING,),
                "Over a minute is late. Endpoints that are held do not count; no line: nothing is due.",
            ),
            Panel("Owed, and in flight", (metrics.DEPTH, metrics.IN_FLIGHT), "In flight follows owed."),
            Panel(
                "Age of the canary, and of this reading",
                (metrics.CANARY_AGE, metrics.READING_AGE),
                "Both below two minutes, or nothing else here is to be believed.",
            ),
            Panel("Payloads lost", (metrics.PAYLOADS_LOST,), "Flat at zero."),
        ),
    ),
    Row(
        "Is one endpoint's trouble spreading?",
        (
            UNRELATED,
            Panel(
                "Wait for Relay",
                (metrics.PLATFORM, metrics.FIRST_ATTEMPT),
                "Relay's own part. It stays as it is whatever endpoints do.",
            ),
            Panel("Breakers", (metrics.BREAKERS,), "How many endpoints are in trouble of their own."),
            Panel("Endpoints held", (metrics.HELD,), "How many wait, and why."),
            Panel("Put off", (metrics.DEFERRED,), "What holds cost in visits."),
            Panel("Breakers that opened, and probes", (metrics.BREAKER_TRIPS, metrics.PROBES), "Few."),
            Panel("Bells in flight", (metrics.BELLS,), "SQS stops at 120,000 a queue."),
        ),
    ),
    Row(
        "Are we sending twice?",
        (
            Panel(
                "Attempts",
                (metrics.ATTEMPTS,),
                "`unknown` is flat at zero: each is a sender that died while it sent.",
            ),
            Panel("Leases lost", (metrics.LEASES_LOST,), "Flat at zero."),
        ),
    ),
    Row(
        "Is ingest well?",
        (Panel("Posted events", (metrics.INGESTED,), "`unavailable` is flat at zero."),),
    ),
    Row(
        "Is somebody kept in the dark?",
        (
            Panel("Dead letters", (metrics.DEAD_LETTERS,), "Why deliveries were given up on."),
            Panel("Notices", (metrics.NOTICES,), "What owners were told."),
            Panel(
                "Age of the last good run",
                (metrics.SCHEDULE_AGE,),
                "Minutes for reconcile and notify, hours for the others.",
            ),
        ),
    ),
    Row(
        "Does anything go where it must not, or stay too long?",
        (
            Panel("Requests refused", (metrics.REFUSED,), "A few are mistakes; many are somebody trying."),
            Panel("Removed, and overdue", (metrics.REMOVED, metrics.OVERDUE), "Overdue is flat at zero."),
        ),
    ),
)
