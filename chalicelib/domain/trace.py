"""Traces: what an attempt's span says, as an X-Ray segment document; ids, classes, times and numbers only.

Why X-Ray's own form: docs/decisions/0030.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple, Self

from chalicelib.domain import ids

NAME: Final = "relay"
SPAN_BITS: Final = 64
_ROOT = re.compile(r"1-[0-9a-f]{8}-[0-9a-f]{24}", re.ASCII)
_PARENT = re.compile(r"[0-9a-f]{16}", re.ASCII)
_HEADER_MAX = 512
_TOO_MANY, _CALLER, _SERVER = 429, 400, 500


class Steps(NamedTuple):
    """When an attempt's lane asked its gate, its turn came, it was sent, answered and settled (Unix µs)."""

    asked_us: int
    turn_us: int
    sent_us: int
    answered_us: int
    settling_us: int
    settled_us: int

    @property
    def in_order(self) -> "Steps":
        """Give them with none before another: two clocks tell them, of which one knows milliseconds."""
        return Steps(*accumulate(self, max))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a trace comes from: its id, the span it goes on from, whether it is wanted (None: not said)."""

    trace_id: str
    parent: str = ""
    wanted: bool | None = None

    @classmethod
    def of_header(cls, header: str) -> Self | None:
        """Read AWS's trace header; None for what is none."""
        parts = header.split(";") if len(header) <= _HEADER_MAX else []
        said = dict(part.strip().split("=", 1) for part in parts if "=" in part)
        trace_id, parent = said.get("Root", ""), said.get("Parent", "")
        if not _ROOT.fullmatch(trace_id):
            return None
        wanted = {"1": True, "0": False}.get(said.get("Sampled", ""))
        return cls(trace_id, parent if _PARENT.fullmatch(parent) else "", wanted)

    @classmethod
    def of_delivery(cls, delivery_id: str) -> Self:
        """Name a delivery's own trace, the same for all its attempts, wherever they are made."""
        began_s = ids.created_ms(delivery_id) // 1000
        return cls(f"1-{began_s:08x}-{hashlib.sha256(delivery_id.encode()).hexdigest()[:24]}")


@dataclass(frozen=True, slots=True)
class Told:
    """What a span says: its words, those of its gate, the answer's status if there was one, if it failed."""

    annotations: Mapping[str, str | int]
    gate: Mapping[str, str | int]
    status: int | None
    failed: bool


def document(origin: Origin, span_ids: tuple[str, str, str, str], steps: Steps, told: Told) -> dict[str, Any]:
    """Write the span of an attempt, with gate, send and settle inside it."""
    whole, gate, send, settle = span_ids
    at = steps.in_order
    sent = _part("send", send, at.sent_us, at.answered_us) | {"namespace": "remote"} | _blame(told)
    if told.status is not None:
        sent["http"] = {"response": {"status": told.status}}
    held = _part("gate", gate, at.asked_us, at.turn_us) | (
        {"annotations": dict(told.gate)} if told.gate else {}
    )
    made = _part(NAME, whole, at.asked_us, at.settled_us) | {"trace_id": origin.trace_id}
    return (
        made
        | ({"parent_id": origin.parent} if origin.parent else {})
        | _blame(told)
        | {"annotations": dict(told.annotations)}
        | {"subsegments": [held, sent, _part("settle", settle, at.settling_us, at.settled_us)]}
    )


def span_id(bits: int) -> str:
    """Write 64 random bits as the id of a span."""
    return f"{bits:016x}"


def _part(name: str, span: str, from_us: int, until_us: int) -> dict[str, Any]:
    return {"name": name, "id": span, "start_time": from_us / 1e6, "end_time": until_us / 1e6}


def _blame(told: Told) -> dict[str, bool]:
    """Say in X-Ray's words whose fault it was: `error` for a 4xx, `throttle` for a 429, else `fault`."""
    if not told.failed:
        return {}
    status = told.status or _SERVER
    if _CALLER <= status < _SERVER:
        return {"error": True} | ({"throttle": True} if status == _TOO_MANY else {})
    return {"fault": True}
