"""The bell as a queue message: names and keys in JSON, nothing of the event itself."""

import json
import re

from chalicelib.application.ports import Bell, Hint
from chalicelib.domain import ids
from chalicelib.domain.delivery import Lane

_TENANT = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_LANE_NUMBER = re.compile(r"[a-z]?[0-9]{1,3}", re.ASCII)


class NotABellError(ValueError):
    """A queue message that no part of Relay wrote."""


def dump(bell: Bell) -> str:
    """Write a bell; ASCII only."""
    hints = [[each.delivery_id, each.event_id, each.ready_ms] for each in bell.hints]
    body = {"lane": bell.lane.name, "rung_ms": bell.rung_ms, "hints": hints}
    return json.dumps(body, separators=(",", ":"))


def load(text: str) -> Bell:
    """Read a bell, or raise NotABellError; what is read may be trusted as far as names go."""
    try:
        body = json.loads(text)
        lane = lane_of(body["lane"])
        rung_ms = int(body["rung_ms"])
        hints = tuple(Hint(str(delivery), str(event), int(ready)) for delivery, event, ready in body["hints"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NotABellError("not a bell") from error
    if not all(ids.is_id(hint.delivery_id) and ids.is_id(hint.event_id, "evt") for hint in hints):
        raise NotABellError("a bell with names that are none")
    return Bell(lane, rung_ms, hints)


def lane_of(name: str) -> Lane:
    """Read a lane's name."""
    parts = name.split("#")
    tenant, endpoint_id, number = parts if len(parts) == 3 else ("", "", "")  # noqa: PLR2004 - the three parts of a name
    if not (_TENANT.fullmatch(tenant) and ids.is_id(endpoint_id, "ep") and _LANE_NUMBER.fullmatch(number)):
        raise NotABellError("not a lane")
    return Lane(tenant, endpoint_id, number)
