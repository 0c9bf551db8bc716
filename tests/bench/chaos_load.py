"""The producers and endpoints of the chaos run: what is posted, and what a 202 for it promised."""

import hashlib
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from random import Random
from typing import Any

import httpx

from tests.e2e.customer import Customer, Hook

PRODUCERS = 6
IN_BATCHES, BATCH = 0.3, 8
HURRY = 5
AGAIN_AFTER_S, ANSWERED_WITHIN_S = 0.2, 60
CROWD = 45
NOISE = 8_192
AMPLE = {"rate_per_second": 1_000, "burst": 1_000, "retry_profile": "quick"}


Stretch = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Kind:
    """A sort of endpoint: how many, how they answer, their share of the events, and what comes of those."""

    name: str
    count: int
    target: str
    share: float
    limits: dict[str, Any] = field(default_factory=dict)
    dies: bool = False


KINDS = (
    Kind("healthy", 6, "/verify/{key}", 28),
    Kind("flaky", 4, "/flaky/{key}?pct=15", 20),
    Kind("slow", 4, "/slow/{key}?ms=1500", 24, {"max_concurrency": 2}),
    Kind("ordered", 6, "/flaky/{key}?pct=2", 24, {"ordering": "endpoint"}),
    Kind("refusing", 1, "/status/404/{key}", 4, dies=True),
)
CROWD_SHARE = 1.5


@dataclass(frozen=True, slots=True)
class Target:
    """Where the events of a type go: the paths of the endpoints that take it."""

    kind: str
    type: str
    paths: tuple[str, ...]
    dies: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """An event that was answered 202: when its producer first posted it, and when it knew (seconds)."""

    event_id: str
    type: str
    posted_s: float
    acknowledged_s: float
    tries: int
    fan_out: str
    delivery_ids: tuple[str, ...] = ()
    body_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """All endpoints by kind, and where each type goes."""

    hooks: Sequence[Hook]
    targets: Sequence[Target]
    weights: Sequence[float]


def build(customer: Customer) -> Scene:
    """Register every endpoint, those of the crowd for one type that takes a later fan-out."""
    hooks, targets, weights = [], [], []
    for kind in KINDS:
        for _ in range(kind.count):
            hook = customer.hook(kind.target, **{**AMPLE, **kind.limits})
            hooks.append(hook)
            targets.append(Target(kind.name, hook.type, (path_of(hook),), kind.dies))
            weights.append(kind.share / kind.count)
    crowd = [customer.hook("/verify/{key}", **AMPLE, event_types=["crowd.paid"]) for _ in range(CROWD)]
    targets.append(Target("crowd", "crowd.paid", tuple(path_of(each) for each in crowd)))
    return Scene([*hooks, *crowd], targets, [*weights, CROWD_SHARE])


def path_of(hook: Hook) -> str:
    """Give the path under which the receiver knows an endpoint."""
    return httpx.URL(hook.shown["url"]).path


class Producers:
    """Threads that post until they are stopped, and post again whatever was not answered 202."""

    def __init__(self, api_url: str, scene: Scene, per_s: float) -> None:
        """Post so many events a second in all."""
        self._api_url = api_url
        self._scene = scene
        self._calm_s = self._pause_s = PRODUCERS / per_s
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._produce, args=(n,)) for n in range(PRODUCERS)]
        self._failures: list[Exception] = []
        self.accepted: list[Accepted] = []
        self.refused: Counter[str] = Counter()

    def start(self) -> None:
        """Begin."""
        for each in self._threads:
            each.start()

    def hurry(self) -> None:
        """Post faster than the slow endpoints can take it."""
        self._pause_s = self._calm_s / HURRY

    def calm(self) -> None:
        """Post as at first."""
        self._pause_s = self._calm_s

    def stop(self) -> None:
        """Post nothing new, and wait until everything posted is answered; raises what a thread died of."""
        self._stopping.set()
        for each in self._threads:
            each.join()
        self.check()

    def check(self) -> None:
        """Raise what a thread died of, if one did."""
        if self._failures:
            raise self._failures[0]

    def _produce(self, number: int) -> None:
        dice = Random(number)
        try:
            with httpx.Client(base_url=self._api_url, timeout=30, trust_env=False) as api:
                while not self._stopping.is_set():
                    began_s = time.monotonic()
                    posted = self._post(api, dice)
                    self._stopping.wait(max(0.0, began_s + posted * self._pause_s - time.monotonic()))
        except Exception as error:  # noqa: BLE001 - told by whoever stops it
            self._failures.append(error)

    def _post(self, api: httpx.Client, dice: Random) -> int:
        """Post one event, or a batch of one type, until all of it is accepted; how many it were."""
        (target,) = dice.choices(self._scene.targets, self._scene.weights)
        batch = dice.random() < IN_BATCHES and target.kind != "crowd"
        keys = [uuid.uuid4().hex for _ in range(dice.randint(2, BATCH) if batch else 1)]
        began_s = time.monotonic()
        left, tries = keys, 0
        while left:
            tries += 1
            told = self._try(api, target.type, left, batch=batch)
            self._note(target.type, (began_s, time.monotonic()), tries, told)
            left = [key for key in left if key not in told]
            if left:
                if time.monotonic() > began_s + ANSWERED_WITHIN_S:
                    raise TimeoutError(f"not accepted within {ANSWERED_WITHIN_S} s: {dict(self.refused)}")
                time.sleep(AGAIN_AFTER_S)
        return len(keys)

    def _note(self, event_type: str, between_s: Stretch, tries: int, told: Mapping[str, Any]) -> None:
        """Write down what was accepted, by idempotency key."""
        with self._lock:
            for key, each in told.items():
                ids, digest = tuple(each["delivery_ids"]), hashlib.sha256(body_of(key)).hexdigest()
                self.accepted.append(
                    Accepted(each["event_id"], event_type, *between_s, tries, each["fan_out"], ids, digest)
                )

    def _try(self, api: httpx.Client, event_type: str, keys: Sequence[str], *, batch: bool) -> dict[str, Any]:
        """Post once; what was accepted by idempotency key."""
        try:
            answer = _post_batch(api, event_type, keys) if batch else _post_one(api, event_type, keys[0])
        except httpx.TransportError as error:
            self._refuse(type(error).__name__)
            return {}
        if answer.status_code not in {HTTPStatus.ACCEPTED, HTTPStatus.MULTI_STATUS}:
            self._refuse(f"{answer.status_code} {answer.json().get('code')}")
            return {}
        results = answer.json()["results"] if batch else [{"status": answer.status_code, **answer.json()}]
        told = {}
        for key, result in zip(keys, results, strict=True):
            if result["status"] == HTTPStatus.ACCEPTED:
                told[key] = result
            else:
                self._refuse(f"{result['status']} {result['error'].get('code')}")
        return told

    def _refuse(self, why: str) -> None:
        with self._lock:
            self.refused[why] += 1


def body_of(key: str) -> bytes:
    """Make the body of an event; one in sixteen is too large to be kept beside the event's row."""
    noise = hashlib.shake_256(key.encode()).hexdigest(NOISE) if key.startswith("0") else ""
    return json.dumps({"key": key, "noise": noise}).encode()


def _post_one(api: httpx.Client, event_type: str, key: str) -> httpx.Response:
    headers = {"Relay-Event-Type": event_type, "Idempotency-Key": key, "Content-Type": "application/json"}
    return api.post("/v1/events", content=body_of(key), headers=headers)


def _post_batch(api: httpx.Client, event_type: str, keys: Sequence[str]) -> httpx.Response:
    items = [{"type": event_type, "payload": body_of(key).decode(), "idempotency_key": key} for key in keys]
    return api.post("/v1/events/batch", json={"events": items})
