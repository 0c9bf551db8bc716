"""The simulation held against what was measured on one machine, and what arithmetic says of one gate.

The measured figures are those of docs/load-test.md. One number was fitted, what a call takes of the machine;
throughput, rows a visit, calls and write units are what the simulation has to find by itself.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tests.simulation.numbers import MS, SECOND, Cost, Latencies, Load, Numbers, Platform, Receivers
from tests.simulation.receivers import Receiver
from tests.simulation.relay import Relay

WARM_UP, SECONDS = 2, 6
CALL = 900
"""What a call takes of the machine (µs): the one number that was fitted."""
INGEST = ("ingest get", "ingest transaction", "ingest send")
DELIVERING = ("get", "query", "statements", "transaction", "send", "hide")


@dataclass(frozen=True, slots=True)
class Case:
    """A case of the load test: how it was posted, how many arrived a second, and what was counted."""

    endpoints: int
    in_tens: bool
    measured: Mapping[str, float]


def _row(*measured: float) -> dict[str, float]:
    names = (
        "delivered a second",
        "rows a visit",
        "calls a delivery",
        "calls an event accepted",
        "write units a delivery",
    )
    return dict(zip(names, measured, strict=True))


CASES = {
    "8 endpoints, in tens": Case(8, in_tens=True, measured=_row(558, 5.8, 0.50, 0.52, 8.4)),
    "8 endpoints, singly": Case(8, in_tens=False, measured=_row(241, 2.0, 0.83, 3.0, 9.0)),
    "200 endpoints, in tens": Case(200, in_tens=True, measured=_row(352, 1.0, 0.66, 0.58, 10.0)),
    "200 endpoints, singly": Case(200, in_tens=False, measured=_row(236, 1.0, 1.3, 3.0, 10.0)),
}
ON_ONE_MACHINE = Numbers(
    receivers=Receivers(2.0, 0.0, 0.2, fails=0.0, slow=0.0, down=0.0, hanging=0.0),
    latencies=Latencies(CALL, CALL, CALL, CALL, CALL // 10, CALL, CALL),
    cost=Cost(invocation=300, visit=200, attempt=1_100, event=500),
    platform=Platform(cold_start=0, receive=CALL // 2, handover=0, pollers_at_first=1, local=True),
)


def simulate(case: Case, seed: int = 1) -> dict[str, float]:
    """Simulate a case for a while, after a warm-up, and give what was measured."""
    load = Load(
        case.endpoints,
        tenants=1,
        events_per_s=case.measured["delivered a second"],
        second_taker=0.0,
        skew=0.0,
        tens_from=0.0 if case.in_tens else 1e9,
        own_limits=1.0,
        aggregated=0.0,
        event_units=2,
        under_way=120 if case.in_tens else 24,
    )
    relay = Relay(replace(ON_ONE_MACHINE, load=load, seed=seed))
    relay.run(WARM_UP)
    before, units = Counter(relay.figures.counts), relay.figures.units.total()
    relay.run(SECONDS)
    return found(relay.figures.counts - before, relay.figures.units.total() - units)


def found(counts: Counter[str], units: int) -> dict[str, float]:
    """Give what was measured on one machine as the simulation has it."""
    return {
        "delivered a second": counts["attempts"] / SECONDS,
        "rows a visit": counts["granted"] / counts["visits"],
        "calls a delivery": sum(counts[each] for each in DELIVERING) / counts["attempts"],
        "calls an event accepted": sum(counts[each] for each in INGEST) / counts["events"],
        "write units a delivery": units / counts["attempts"],
    }


@dataclass(frozen=True, slots=True)
class Paced:
    """How long deliveries waited for a gate, as arithmetic and as the simulation has it (ms).

    `early` counts those that began before their token was there; `sent` and `could` those that began in all,
    and that could have.
    """

    deliveries: int
    expected_mean_ms: float
    found_mean_ms: float
    late_at_most_ms: float
    early: int
    sent: int
    could: int


class _WatchedRelay(Relay):
    """Writes down when each attempt was ready, and when it began."""

    def __init__(self, numbers: Numbers) -> None:
        """Have seen none."""
        self.seen: list[tuple[int, int]] = []
        super().__init__(numbers)

    def count_attempt(self, receiver: Receiver, began: int, ready: int, *, first: bool) -> None:
        """Count as always."""
        self.seen.append((ready, began))
        super().count_attempt(receiver, began, ready, first=first)


RATE, BURST, OFFERED = 10, 20, 15
FIRST_VISIT_MS = 50
"""At most so long before its first send the first visit passed the gate; the bucket counts from there."""


def one_gate(seconds: int = 60, seed: int = 1) -> Paced:
    """Offer one endpoint of 10 a second and a burst of 20 fifteen a second, and hold each wait to its due.

    The nth can begin when it is there, and n - 20 tenths of a second after the first.
    """
    load = Load(
        1,
        tenants=1,
        events_per_s=OFFERED,
        second_taker=0.0,
        skew=0.0,
        own_limits=0.0,
        aggregated=0.0,
        tens_from=1e9,
    )
    receivers = Receivers(50.0, 0.0, 0.0, fails=0.0, slow=0.0, down=0.0, hanging=0.0)
    relay = _WatchedRelay(Numbers(load, seconds=seconds, seed=seed, receivers=receivers))
    relay.run()
    seen = sorted(relay.seen)
    first = seen[0][1]
    due = [max(ready, first + (place + 1 - BURST) * SECOND // RATE) for place, (ready, _) in enumerate(seen)]
    late = [
        (began - moment) / MS
        for (_, began), moment in zip(sorted(seen, key=lambda each: each[1]), due, strict=True)
    ]
    waits = [(moment - ready) / MS for (ready, _), moment in zip(seen, due, strict=True)]
    return Paced(
        len(seen),
        round(sum(waits) / len(seen), 1),
        round(sum(began - ready for ready, began in seen) / MS / len(seen), 1),
        round(max(late), 1),
        sum(each < -FIRST_VISIT_MS for each in late),
        len(seen),
        min(OFFERED * seconds, BURST + RATE * seconds),
    )
