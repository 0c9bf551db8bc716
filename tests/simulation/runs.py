"""The runs of `make simulate`: half an hour at a twentieth of the scale, and a minute at all of it."""

import time
from dataclasses import dataclass

from tests.simulation.figures import Figures
from tests.simulation.numbers import Load, Numbers, Platform
from tests.simulation.relay import Relay

PARTS = 2
SEED = 20
TWENTIETH = Numbers(
    Load(endpoints=2_000, tenants=100, events_per_s=1_250.0), seconds=1_800, seed=SEED, parts=PARTS
)
FULL = Numbers(
    Load(),
    seconds=60,
    seed=SEED,
    parts=PARTS,
    most_shard=1_000,
    most_slow=500,
    most_hot=500,
    most_api=1_000,
    platform=Platform(pollers_at_first=1_000),
)
RUNS = {"twentieth": TWENTIETH, "full": FULL}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a part of a run came to; `cpu_s` is what simulating it took."""

    seconds: int
    figures: Figures
    created: int
    succeeded: int
    dead: int
    owed: int
    cpu_s: float


def run(numbers: Numbers, part: int) -> Ran:
    """Run one part of a run."""
    began = time.process_time()
    relay = Relay(numbers, part)
    relay.run()
    return ran(relay, numbers.seconds, time.process_time() - began)


def ran(relay: Relay, seconds: int, cpu_s: float) -> Ran:
    """Tell what a run has come to so far."""
    store, crowd = relay.store, relay.crowd
    return Ran(
        seconds,
        relay.figures,
        store.created + crowd.created,
        store.succeeded + crowd.succeeded,
        store.dead + crowd.dead,
        store.owed + crowd.owed,
        cpu_s,
    )
