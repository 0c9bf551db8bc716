"""A small run keeps what Relay promises, is the same for the same seed, and is told from its parts."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace

import pytest

from chalicelib.application.visit import Visit
from chalicelib.domain.bucket import Bucket
from tests.simulation.numbers import SECOND, Load, Numbers, Platform, Receivers
from tests.simulation.relay import Relay
from tests.simulation.runs import run
from tests.simulation.summary import summary

LOAD = Load(endpoints=60, tenants=5, events_per_s=60.0, tens_from=20.0, own_limits=0.5, aggregated=0.5)
SMALL = Numbers(LOAD, seconds=6, seed=7, receivers=Receivers(median_ms=60.0, down=0.05, hanging=0.02))
TELL = "from tests.infra.simulation.test_runs import told; print(told(7))"


class WatchedRelay(Relay):
    """Writes down for which moments requests were let in, but for probes: those are paced by the breaker."""

    def __init__(self, numbers: Numbers) -> None:
        self.moments: dict[str, list[int]] = defaultdict(list)
        super().__init__(numbers)

    def admitted(self, visit: Visit) -> None:
        if visit.claim is not None and not visit.claim.probe:
            self.moments[visit.lane.endpoint_id] += [moment for _, moment in visit.granted]


def told(seed: int, parts: int = 1) -> str:
    """Run and tell everything but what the machine took for it."""
    numbers = replace(SMALL, seed=seed, parts=parts)
    figures = summary(numbers, [run(numbers, part) for part in range(parts)])
    return json.dumps({**figures, "cpu_s": 0}, sort_keys=True)


def test_the_same_seed_tells_the_same_in_another_process() -> None:
    hashes = os.environ | {"PYTHONHASHSEED": "1"}
    other = subprocess.run(
        [sys.executable, "-c", TELL], env=hashes, capture_output=True, text=True, check=True, timeout=120
    )
    assert told(7) == other.stdout.strip()


def test_another_seed_tells_something_else() -> None:
    assert told(7) != told(8)


def test_nothing_is_lost_and_no_slot_while_it_runs_nor_once_it_has_drained() -> None:
    relay = Relay(SMALL)
    for _ in range(SMALL.seconds):
        relay.run(1)
    relay.drain(40)
    assert relay.store.created > 100
    assert relay.crowd.created > 20
    healthy = [each for each in relay.store.owing() if each.made == 0]
    stuck = {"down", "hanging", "paced"}
    kinds = {each.endpoint.id: each.kind for each in relay.receivers}
    assert {kinds[each.lane.endpoint_id].value for each in healthy} <= stuck


def test_no_endpoint_is_sent_more_than_its_burst_and_rate_allow() -> None:
    relay = WatchedRelay(
        replace(SMALL, load=replace(LOAD, events_per_s=300.0, own_limits=0.0, aggregated=0.0))
    )
    relay.run()
    busiest = max(len(moments) for moments in relay.moments.values())
    assert busiest >= 60
    for receiver in relay.receivers:
        limits = receiver.endpoint.limits
        bucket = Bucket(SECOND // limits.rate_per_second, limits.burst * SECOND // limits.rate_per_second)
        tat = 0
        for moment in sorted(relay.moments[receiver.endpoint.id]):
            assert bucket.tokens(tat, moment) >= 1
            tat = max(tat, moment) + bucket.cost


def test_parts_together_see_every_event_and_every_endpoint_once() -> None:
    whole, halves = json.loads(told(7)), json.loads(told(7, parts=2))
    assert halves["per_s"]["events"] == whole["per_s"]["events"]
    assert halves["deliveries"]["created"] == whole["deliveries"]["created"]


def test_endpoints_that_are_down_are_left_alone() -> None:
    broken = replace(SMALL, receivers=Receivers(median_ms=60.0, down=1.0, hanging=0.0), seconds=20)
    relay = Relay(replace(broken, load=replace(LOAD, events_per_s=200.0)))
    relay.run()
    asked = relay.figures.first_waits["down"].total + relay.figures.retry_waits["down"].total
    busy = [each for each in relay.receivers if each.per_s > 5]
    assert asked < 60 * len(relay.receivers)
    assert all(relay.store.gate(each.owner).state.value != "closed" for each in busy)


@pytest.mark.parametrize("at_first", [2, 20])
def test_pollers_grow_while_bells_wait_and_not_beyond_what_is_allowed(at_first: int) -> None:
    platform = Platform(pollers_at_first=at_first, pollers_a_minute=120)
    relay = Relay(replace(SMALL, load=replace(LOAD, events_per_s=400.0), platform=platform, most_shard=24))
    relay.run()
    pollers = {m.queue.name: m.pollers for m in relay.mappings}
    shards = [count for name, count in pollers.items() if name.startswith("shard")]
    assert all(at_first <= each <= 24 for each in shards)
    assert max(shards) > at_first or at_first == 20
    assert pollers["hot-0"] == at_first
