"""The endpoints' side: who they are, how popular, and how each answers; the same for every part."""

import math
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from chalicelib.application.ports import Subscriber
from chalicelib.domain import ids
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import CONCURRENCY_MAX, Endpoint, Limits
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request
from tests.simulation.numbers import Load, Numbers, Receivers

CREATED_MS = 1_700_000_000_000
TIMEOUT_MS = 10_000
SLOWEST_OF_TEN, ROUND_MS = 2.5, 150
HOT_FROM, BUSY_FROM, STEADY_FROM = 50.0, 5.0, 0.5
_OK = Reply(status=200)
_FAILED, _DOWN = Reply(status=503), Reply(status=500)
_NO_ANSWER = Reply(fault=Fault.TIMEOUT, total_ms=TIMEOUT_MS)


class Kind(StrEnum):
    """Classes of endpoints: by what they are offered a second, or by what stands in their way."""

    HOT = "hot"
    BUSY = "busy"
    STEADY = "steady"
    IDLE = "idle"
    PACED = "paced"
    DOWN = "down"
    HANGING = "hanging"


_UNHINDERED = frozenset({Kind.STEADY, Kind.IDLE})


@dataclass(frozen=True, slots=True)
class Receiver:
    """An endpoint, what it is offered a second, and how long it usually takes (ms)."""

    number: int
    endpoint: Endpoint
    subscriber: Subscriber
    per_s: float
    kind: Kind
    usual_ms: float
    in_crowd: bool = False

    @property
    def owner(self) -> tuple[str, str]:
        """Name its gate."""
        return self.endpoint.tenant, self.endpoint.id

    @property
    def lane(self) -> Lane:
        """Name its only lane, as an idle one has no more."""
        return Lane(self.endpoint.tenant, self.endpoint.id, "0")

    def answer(self, dice: random.Random, assumed: Receivers) -> tuple[Reply, int]:
        """Answer one request: what, and after how long (ms)."""
        if self.kind is Kind.HANGING:
            return _NO_ANSWER, TIMEOUT_MS
        took_ms = max(1, int(self.usual_ms * dice.lognormvariate(0.0, assumed.spread_over_requests)))
        if took_ms >= TIMEOUT_MS:
            return _NO_ANSWER, TIMEOUT_MS
        if self.kind is Kind.DOWN:
            return _DOWN, took_ms
        return (_FAILED if dice.random() < assumed.fails else _OK), took_ms


class Letter(Request):
    """A request of which nothing is built but to whom it goes."""

    __slots__ = ("receiver",)

    receiver: Receiver

    @classmethod
    def to(cls, receiver: Receiver) -> "Letter":
        """Address one."""
        letter = cls(receiver.endpoint.url, (("User-Agent", "Relay"),), b"", address=receiver.endpoint.url)
        object.__setattr__(letter, "receiver", receiver)
        return letter

    @property
    def confidential(self) -> tuple[()]:
        """Have nothing that an answer could echo."""
        return ()


class Chosen:
    """Draws from weighted things."""

    def __init__(self, weights: Sequence[float]) -> None:
        """Weigh each place."""
        self._heaps = list(accumulate(weights))

    @property
    def total(self) -> float:
        """Give the sum of all weights."""
        return self._heaps[-1]

    def draw(self, dice: random.Random) -> int:
        """Give a place."""
        return bisect_right(self._heaps, dice.random() * self._heaps[-1], hi=len(self._heaps) - 1)


def population(numbers: Numbers) -> list[Receiver]:
    """Make all endpoints, the most popular first."""
    load, assumed = numbers.load, numbers.receivers
    dice = random.Random(f"{numbers.seed} endpoints")
    weights = [(rank + 1) ** -load.skew for rank in range(load.endpoints)]
    deliveries_per_s = load.events_per_s * (1 + load.second_taker) / sum(weights)
    tenants = Chosen([1 / (rank + 1) for rank in range(load.tenants)])
    return [
        _receiver(number, f"t{tenants.draw(dice):05d}", weight * deliveries_per_s, (load, assumed), dice)
        for number, weight in enumerate(weights)
    ]


def _receiver(
    number: int, tenant: str, per_s: float, of: tuple[Load, Receivers], dice: random.Random
) -> Receiver:
    load, assumed = of
    slower = assumed.slower if dice.random() < assumed.slow else 1.0
    usual_ms = assumed.median_ms * slower * dice.lognormvariate(0.0, assumed.spread_over_endpoints)
    fate, own = dice.random(), dice.random() < load.own_limits
    limits = limits_for(per_s, usual_ms) if own else Limits()
    kind = _kind(per_s, fate, assumed, limits)
    endpoint_id = ids.new_id("ep", CREATED_MS, dice.getrandbits(ids.ENTROPY_BITS))
    url = f"https://receiver.example/{number}"
    endpoint = Endpoint(tenant, endpoint_id, url, ("*",), CREATED_MS, limits=limits)
    in_crowd = kind in _UNHINDERED and per_s < load.idle_below and dice.random() < load.aggregated
    subscriber = Subscriber(endpoint_id, limits.lanes, CREATED_MS)
    return Receiver(number, endpoint, subscriber, per_s, kind, usual_ms, in_crowd)


def limits_for(per_s: float, usual_ms: float) -> Limits:
    """Give the limits that an owner sets who knows the load: twice of it, at least the defaults.

    A lane sends ten and looks again when the slowest of them has ended and what it came to is written down:
    two and a half times the usual answer, and `ROUND_MS`.
    """
    rate = max(10, math.ceil(2 * per_s))
    cap = max(8, math.ceil(1.5 * per_s * (SLOWEST_OF_TEN * usual_ms + ROUND_MS) / 1000))
    return Limits(rate, 2 * rate, min(CONCURRENCY_MAX, cap))


def _kind(per_s: float, fate: float, assumed: Receivers, limits: Limits) -> Kind:
    if fate < assumed.hanging:
        return Kind.HANGING
    if fate < assumed.hanging + assumed.down:
        return Kind.DOWN
    if per_s / (1 - assumed.fails) > limits.rate_per_second:
        return Kind.PACED
    if per_s >= HOT_FROM:
        return Kind.HOT
    if per_s >= BUSY_FROM:
        return Kind.BUSY
    return Kind.STEADY if per_s >= STEADY_FROM else Kind.IDLE
