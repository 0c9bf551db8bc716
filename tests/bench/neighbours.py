"""Who misbehaves beside the healthy endpoints, and whether they did as they should."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.bench.latency import Run
from tests.bench.stack import BenchStack
from tests.bench.steady import Arrival, spread

EVENT, EVENTS = "/v1/events", "/v1/events/batch"
TENS, HUNDREDS = 10, 100
PAGE = 200


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The endpoints of a phase: a path of the receiver each, and how many events a second each of them gets.

    `in_tens` posts those in batches of ten. `backlog` events are owed to each before anything is measured.
    """

    paths: tuple[str, ...] = ()
    per_s: float = 0.0
    in_tens: bool = False
    backlog: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)

    def arrivals(self, for_s: float, dice: random.Random) -> Iterator[Arrival]:
        """Give what is posted to them in a while."""
        for place, path in enumerate(self.paths):
            number = TENS if self.in_tens else 1
            item = {"payload": json.dumps({"type": _type(place)})}
            body = json.dumps({"events": [item] * TENS} if self.in_tens else {"type": _type(place)})
            for at_s in spread(self.per_s / number, for_s, dice):
                yield Arrival(at_s, EVENTS if self.in_tens else EVENT, body.encode(), path)

    def move_in(self, stack: BenchStack) -> list[str]:
        """Register them and build their backlogs; their ids."""
        ids = []
        for place, path in enumerate(self.paths):
            url = f"http://127.0.0.1:{stack.receiver_port}{path}"
            made = stack.ask(
                "POST", "/v1/endpoints", {"url": url, "event_types": _types(place), **self.limits}
            )
            ids.append(made["id"])
        for _ in range(0, self.backlog, HUNDREDS):
            item = {"payload": json.dumps({"type": "beside.all"})}
            stack.ask("POST", EVENTS, {"events": [item] * HUNDREDS})
        return ids


def _type(place: int) -> str:
    return f"beside.n{place}"


def _types(place: int) -> list[str]:
    return [_type(place), "beside.all"]


def left_over(stack: BenchStack, endpoint_id: str) -> int:
    """Count an endpoint's deliveries that are still owed."""
    count, cursor = 0, ""
    while True:
        asked = f"/v1/endpoints/{endpoint_id}/deliveries?limit={PAGE}{cursor}"
        page = stack.ask("GET", asked)
        count += sum(each["status"] in {"pending", "inflight"} for each in page["items"])
        if not page["cursor"]:
            return count
        cursor = f"&cursor={page['cursor']}"


def tell(stack: BenchStack, received: Sequence[Mapping[str, Any]], ids: Mapping[str, str]) -> dict[str, Any]:
    """Tell what the neighbours came to: what reached them, how it was answered, and what is left over."""
    told: dict[str, Any] = {}
    for path, endpoint_id in ids.items():
        theirs = [each for each in received if each["target"] == path]
        told[path] = {
            "requests": len(theirs),
            "answered_200": sum(each["status"] == 200 for each in theirs),
            "open": sum(each["outcome"] == "open" for each in theirs),
            "left_over": left_over(stack, endpoint_id),
        }
    return told


def faults(runs: Sequence[Run]) -> list[str]:
    """Say what was not as the measurement wants it; nothing when all is well."""
    return [f"{run.phase}: {fault}" for run in runs for fault in _faults(run)]


def _faults(run: Run) -> Iterator[str]:
    if run.missing:
        yield f"{run.missing} healthy deliveries never arrived"
    for path, told in run.neighbours.items():
        if run.phase == "backlogs" and not told["left_over"]:
            yield f"nothing is left over of the backlog of {path}"
        if run.phase == "ten_slow" and told["requests"] != told["answered_200"] + told["open"]:
            yield f"a request to {path} failed, so that a breaker may have tripped"
        if not told["requests"]:
            yield f"{path} got no request"
