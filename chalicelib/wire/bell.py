"""The bell and its kin as queue messages: names and keys in JSON, nothing of the event itself."""

import json
import re
from typing import Any

from chalicelib.application.ports import Bell, Hint
from chalicelib.domain import ids
from chalicelib.domain.delivery import Lane
from chalicelib.domain.gate import Queue

_TENANT = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_LANE_NUMBER = re.compile(r"[a-z]?[0-9]{1,3}", re.ASCII)
_CANARY = re.compile(r'\{"canary": ([0-9]{1,14})\}', re.ASCII)
_MOMENTS = 1 << 48  # what a UUIDv7 can hold


class NotABellError(ValueError):
    """A queue message that no part of Relay wrote; it can never become one."""


def dump(bell: Bell) -> str:
    """Write a bell; ASCII only."""
    hints = [[each.delivery_id, each.event_id, each.ready_ms] for each in bell.hints]
    body = {"lane": bell.lane.name, "rung_ms": bell.rung_ms, "hints": hints}
    return json.dumps(body, separators=(",", ":"))


def load(text: str) -> Bell:
    """Read a bell, or raise NotABellError; what is read may be trusted as far as names go."""
    body = _members(text)
    hints = body.get("hints")
    if not isinstance(hints, list):
        raise NotABellError("a bell without its list of hints")
    return Bell(lane_of(body.get("lane")), _moment(body.get("rung_ms")), tuple(_hint(each) for each in hints))


def dump_canary(rung_ms: int) -> str:
    """Write a canary: a message that rings no lane and asks only whether its queue is worked off."""
    return json.dumps({"canary": rung_ms})


def rung_canary(text: str) -> int | None:
    """Read when a canary was rung (Unix ms); None for any other message."""
    found = _CANARY.fullmatch(text)
    return int(found[1]) if found else None


def dump_delayed(lane: Lane, queue: Queue) -> str:
    """Write a delayed bell: the lane, and where it is to be rung."""
    return json.dumps({"lane": lane.name} | ({"queue": queue.value} if queue.value else {}))


def load_delayed(text: str) -> tuple[Lane, Queue]:
    """Read which lane a delayed bell is for and where it is to be rung, or raise NotABellError."""
    body = _members(text)
    try:
        return lane_of(body.get("lane")), Queue(body.get("queue", ""))
    except ValueError as error:
        raise NotABellError("a delayed bell for no lane or no queue") from error


def load_fan_out(text: str) -> tuple[str, str, int]:
    """Read tenant, event id and due time (Unix ms) of a call to fan out, or raise NotABellError."""
    body = _members(text)
    tenant, event_id = body.get("tenant"), body.get("event_id")
    if not (isinstance(tenant, str) and isinstance(event_id, str)):
        raise NotABellError("a fan-out of nothing")
    if not (_TENANT.fullmatch(tenant) and ids.is_id(event_id, "evt")):
        raise NotABellError("a fan-out with names that are none")
    return tenant, event_id, _moment(body.get("due_ms", 0))


def load_ending(text: str) -> tuple[str, str]:
    """Read the tenant and the endpoint id of a call to end deliveries in pages, or raise NotABellError."""
    body = _members(text)
    tenant, endpoint_id = body.get("tenant"), body.get("endpoint_id")
    if not (isinstance(tenant, str) and isinstance(endpoint_id, str)):
        raise NotABellError("an ending of nothing")
    if not (_TENANT.fullmatch(tenant) and ids.is_id(endpoint_id, "ep")):
        raise NotABellError("an ending with names that are none")
    return tenant, endpoint_id


def load_replay(text: str) -> tuple[str, str]:
    """Read the tenant and the id of a call to work on a bulk replay, or raise NotABellError."""
    body = _members(text)
    tenant, replay_id = body.get("tenant"), body.get("replay_id")
    if not (isinstance(tenant, str) and isinstance(replay_id, str)):
        raise NotABellError("a replay of nothing")
    if not (_TENANT.fullmatch(tenant) and ids.is_id(replay_id, "rp")):
        raise NotABellError("a replay with names that are none")
    return tenant, replay_id


def lane_of(name: object) -> Lane:
    """Read a lane's name."""
    parts = name.split("#") if isinstance(name, str) else []
    tenant, endpoint_id, number = parts if len(parts) == 3 else ("", "", "")  # noqa: PLR2004 - the three parts of a name
    if not (_TENANT.fullmatch(tenant) and ids.is_id(endpoint_id, "ep") and _LANE_NUMBER.fullmatch(number)):
        raise NotABellError("not a lane")
    return Lane(tenant, endpoint_id, number)


def _members(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotABellError("not JSON") from error
    if not isinstance(body, dict):
        raise NotABellError("not an object")
    return body


def _hint(value: object) -> Hint:
    parts = value if isinstance(value, list) else []
    delivery_id, event_id, ready_ms = parts if len(parts) == 3 else ("", "", 0)  # noqa: PLR2004 - the three parts of a hint
    named = isinstance(delivery_id, str) and isinstance(event_id, str)
    if not (named and ids.is_id(delivery_id) and ids.is_id(event_id, "evt")):
        raise NotABellError("a bell with names that are none")
    return Hint(delivery_id, event_id, _moment(ready_ms))


def _moment(value: object) -> int:
    if type(value) is not int or not 0 <= value < _MOMENTS:
        raise NotABellError("not a time in milliseconds")
    return value
