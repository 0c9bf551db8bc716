"""`python -m tests.bench.chaos`: a bad day in ten minutes, and what Relay kept of its promises.

Events are posted to healthy, flaky, slow, ordered and refusing receivers while processes are killed inside
their functions, every queue is emptied, and a proxy in front of the emulator throttles, drops answers and
cancels transactions. Then all faults stop, what is owed is worked off, and the witnesses are heard: see
`chaos_verdict`. Everything raw stays in build/bench/chaos.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

from infra.local.emulator import EmulatorName, free_port, running
from infra.local.processes import Leash
from tests.bench.chaos_blows import Executioner, Purger
from tests.bench.chaos_bulk import BulkReplayer, pages
from tests.bench.chaos_load import Accepted, Producers, Scene, build, path_of
from tests.bench.chaos_proxy import Proxy, changing_weather, proxy_before
from tests.bench.chaos_replays import Replayer
from tests.bench.chaos_verdict import Evidence, Sending, verdict
from tests.e2e.customer import ENDED, Customer
from tests.e2e.faults import hide_for
from tests.e2e.stack import Ports, RelayStack

TARGET = Path("build/bench/chaos.json")
RAW = Path("build/bench/chaos")
EVENTS = int(os.environ.get("RELAYCHAOS_EVENTS", "2000"))
KILLS = int(os.environ.get("RELAYCHAOS_KILLS", "24"))
PURGES = int(os.environ.get("RELAYCHAOS_PURGES", "3"))
PER_S = float(os.environ.get("RELAYCHAOS_EVENTS_PER_S", "12"))
SEED = int(os.environ.get("RELAYCHAOS_SEED", "0"))
OWED_AT_LEAST = int(os.environ.get("RELAYCHAOS_OWED", "200"))
BLOWS_WITHIN_S = 330
BETWEEN_BLOWS_S = 0.2
DRAINED_WITHIN_S = 240
# What died where nothing should has not arrived and never will.
NEARLY_NONE = 10
LOOK_EVERY_S = 2.0
KILLS_A_PURGE = KILLS // (PURGES + 1)
SCHEDULE_SPEED = 30.0
VISIBILITY_S = 10
SETTINGS = {
    "RELAY_TOTAL_TIMEOUT_SECS": "4",
    "RELAY_READ_TIMEOUT_SECS": "4",
    "RELAY_LEASE_SECS": "8",
    "RELAY_BREAKER_COOLDOWN_SECS": "2",
    "RELAY_BREAKER_MAX_COOLDOWN_SECS": "4",
    "RELAY_RAMP_SECS": "5",
}


def main() -> int:
    """Run it; the exit code is 1 when a promise was broken or too little happened."""
    began_s = time.monotonic()
    shutil.rmtree(RAW, ignore_errors=True)
    RAW.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="relaychaos-") as folder:
        figures = _run(Path(folder))
    figures["took_s"] = round(time.monotonic() - began_s)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))
    print(f"written to {TARGET}, the raw logs to {RAW}")
    return int(bool(figures["faults"]))


def _run(folder: Path) -> dict[str, Any]:
    orders = folder / "orders"
    orders.mkdir()
    with ExitStack() as stack_of:
        leash = stack_of.enter_context(Leash())
        emulator = stack_of.enter_context(
            running(EmulatorName.MINISTACK, folder / "emulator", free_port(), fast=True)
        )
        proxy = stack_of.enter_context(proxy_before(emulator, leash, folder / "proxy"))
        stack = stack_of.enter_context(_stack(folder / "relay", proxy, orders))
        customer = stack_of.enter_context(Customer(stack))
        try:
            return _chaos(customer, proxy, orders)
        finally:
            for log in (*(folder / "relay" / "logs").glob("*.log"), *(folder / "proxy").glob("*.log")):
                shutil.copy(log, RAW)


def _stack(state: Path, proxy: Proxy, orders: Path) -> RelayStack:
    """Make a stack whose emulator, as far as it knows, was started by others: it is the proxy."""
    return RelayStack(
        state,
        *("--app", "tests.bench.chaos_app:app", "--schedule-speed", str(SCHEDULE_SPEED)),
        emulator=EmulatorName.LOCALSTACK,
        ports=Ports(emulator=proxy.port),
        settings={**SETTINGS, "RELAYCHAOS_ORDERS": str(orders)},
    )


def _chaos(customer: Customer, proxy: Proxy, orders: Path) -> dict[str, Any]:
    hide_for(customer.stack, VISIBILITY_S)
    scene = build(customer)
    producers = Producers(customer.stack.api_url, scene, PER_S)
    bulk = BulkReplayer(customer, scene)
    executioner = Executioner(customer.stack, orders, Random(SEED), {"replay_many": bulk.begin})
    purger = Purger(customer.stack, lambda: _owed(customer, scene, list(producers.accepted)), OWED_AT_LEAST)
    replayer = Replayer(customer.stack.api_url, scene, producers)
    with changing_weather(proxy):
        producers.start()
        replayer.start()
        try:
            _blows(producers, executioner, purger)
        finally:
            producers.stop()
            replayer.stop()
    posted = Evidence(scene.targets, producers.accepted, (), {}, [*replayer.replays, *bulk.replays])
    before = replayer.before | bulk.before
    drained_s = _drain(customer, scene, posted, bulk)
    told = before | _told(customer, scene)
    evidence = replace(posted, received=customer.received(brief=1), told=told)
    _keep("accepted", map(asdict, evidence.accepted))
    _keep("received", evidence.received)
    _keep("deliveries", ({"path": path, **told} for (_, path, _), told in evidence.told.items()))
    _keep("replays", map(asdict, evidence.replays))
    _keep("kills", executioner.kills)
    _keep("purges", purger.purges)
    figures = verdict(evidence)
    few = {
        "accepted": len(producers.accepted) < EVENTS,
        "kills": len(executioner.kills) < KILLS,
        "purges": purger.count() < PURGES,
    }
    figures["faults"] |= {f"too few {name}": True for name, too_few in few.items() if too_few}
    return {
        **figures,
        "kills": len(executioner.kills),
        "kills_in": executioner.by_function(),
        "purges": [each["owed"] for each in purger.purges if each["counts"]],
        "refused_posts": dict(producers.refused),
        "bulk_replays": bulk.begun,
        "proxy": dict(proxy.faults()),
        "drained_s": drained_s,
    }


def _blows(producers: Producers, executioner: Executioner, purger: Purger) -> None:
    """Deal blow after blow until there were enough of each, and enough events."""
    deadline_s = time.monotonic() + BLOWS_WITHIN_S
    while time.monotonic() < deadline_s:
        producers.check()
        kills, purges = len(executioner.kills), purger.count()
        if purges < PURGES and kills >= min(KILLS, (purges + 1) * KILLS_A_PURGE):
            producers.hurry()
            if purger.purge():
                producers.calm()
        elif kills < KILLS:
            executioner.kill()
        elif len(producers.accepted) >= EVENTS:
            return
        time.sleep(BETWEEN_BLOWS_S)


def _owed(customer: Customer, scene: Scene, accepted: Sequence[Accepted]) -> int:
    """Count what is owed and has not arrived, too low by what arrived twice and by replays."""
    paths = {each.type: len(each.paths) for each in scene.targets}
    owed = sum(paths[each.type] for each in accepted)
    dying = {path for each in scene.targets if each.dies for path in each.paths}
    arrived = 0
    for path, stats in customer.receiver.get("/stats").json()["paths"].items():
        arrived += stats["count"] if path in dying else stats["statuses"].get("200", 0)
    return owed - arrived


def _drain(customer: Customer, scene: Scene, posted: Evidence, bulk: BulkReplayer) -> float:
    """Wait until all has ended, as far as the API tells; the seconds it took."""
    began_s = time.monotonic()
    owed = {each[:2] for each in posted.owed()}
    while time.monotonic() < began_s + DRAINED_WITHIN_S:
        if _owed(customer, scene, posted.accepted) <= NEARLY_NONE and bulk.ended():
            told = _told(customer, scene)
            ended = {each[:2] for each, shown in told.items() if shown["status"] in ENDED}
            if owed <= ended:
                break
        time.sleep(LOOK_EVERY_S)
    return round(time.monotonic() - began_s, 1)


def _told(customer: Customer, scene: Scene) -> dict[Sending, Mapping[str, Any]]:
    """Ask the API for every delivery of every endpoint in its newest generation."""
    told: dict[Sending, Mapping[str, Any]] = {}
    for hook in scene.hooks:
        for each in pages(customer, f"/v1/endpoints/{hook.id}/deliveries"):
            told[each["event_id"], path_of(hook), each["generation"]] = each
    return told


def _keep(name: str, lines: Iterable[Mapping[str, Any]]) -> None:
    with (RAW / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(each) + "\n" for each in lines)


if __name__ == "__main__":
    sys.exit(main())
