"""What tests ask of the receiver itself: secrets, the log, counts, switches. Nothing here is a delivery."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.receiver.answer import Answer, as_json, plain
from tests.receiver.log import Where
from tests.receiver.request import BadQueryError, Request, Target
from tests.receiver.script import checked_status, parse_script
from tests.receiver.site import UP, Site

DOWN = 503
Control: TypeAlias = Callable[[Site, Request], Answer]


def secret(site: Site, request: Request) -> Answer:
    """Register a secret, drop one, or say how many there are."""
    if request.method == "POST":
        fields = _object(request)
        try:
            site.secrets.add(_string(fields, "secret"), fields.get("endpoint"))
        except ValueError as wrong:
            raise BadQueryError(str(wrong)) from wrong
    elif request.method == "DELETE":
        site.secrets.remove(_string(_object(request), "secret"))
    return as_json(200, {"secrets": len(site.secrets), "endpoints": site.secrets.endpoints()})


def received(site: Site, request: Request) -> Answer:
    """List or count what arrived."""
    target = request.target
    where = _where(target)
    if target.query.get("count", "0") != "0":
        return as_json(200, {"count": site.log.count(where)})
    limit = int(target.number("limit", 0)) if target.query.get("limit") else None
    brief = target.query.get("brief", "0") != "0"
    return as_json(200, [entry.brief() if brief else entry.full() for entry in site.log.find(where, limit)])


def stats(site: Site, _request: Request) -> Answer:
    """Give the counts per path and of connections."""
    return as_json(200, site.stats())


def reset(site: Site, request: Request) -> Answer:
    """Forget everything and let go of who hangs."""
    if request.method != "POST":
        return plain(405, "POST it", [("Allow", "POST")])
    site.reset(keep_secrets=request.target.choice("keep", ("", "secrets")) == "secrets")
    return plain(200, "forgotten")


def script(site: Site, request: Request) -> Answer:
    """Write the answers of a path /script/<key>."""
    fields = _object(request)
    key = _string(fields, "key").removeprefix("/")
    try:
        site.scripts[key] = parse_script(fields.get("answers"))
    except ValueError as wrong:
        raise BadQueryError(str(wrong)) from wrong
    return plain(200, f"deliveries to /script/{key} get these answers in turn")


def toggle(site: Site, request: Request) -> Answer:
    """Switch a path /toggle[/<key>] up, down, to the other of the two, or to any status."""
    target = request.target
    if request.method != "POST":
        return plain(405, "POST it", [("Allow", "POST")])
    code = switched(target.query["to"], site.toggles.get(target.rest, UP))
    site.toggles[target.rest] = code
    return plain(200, f"{target.path} answers {code}")


def switched(to: str, now: int) -> int:
    """Give the status that a switch in the state `now` answers with next."""
    match to:
        case "up":
            return UP
        case "down":
            return DOWN
        case "flip":
            return DOWN if now == UP else UP
        case _ if to.isascii() and to.isdigit():
            try:
                return checked_status(int(to))
            except ValueError as wrong:
                raise BadQueryError(str(wrong)) from wrong
        case _:
            raise BadQueryError(f"to must be up, down, flip or a status, not {to!r}")


def _where(target: Target) -> Where:
    where = Where()
    query = target.query
    if "path" in query:
        where["path"] = query["path"]
    if "delivery_id" in query:
        where["delivery_id"] = query["delivery_id"]
    if "event_id" in query:
        where["event_id"] = query["event_id"]
    if "outcome" in query:
        where["outcome"] = query["outcome"]
    if "verified" in query:
        where["verified"] = target.choice("verified", ("true", "false")) == "true"
    if "after" in query:
        where["after"] = int(target.number("after", 0))
    return where


def _object(request: Request) -> dict[str, Any]:
    try:
        fields = json.loads(request.body)
    except ValueError as wrong:
        raise BadQueryError(f"the body is not JSON: {wrong}") from wrong
    if not isinstance(fields, dict):
        raise BadQueryError("the body must be a JSON object")
    return fields


def _string(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise BadQueryError(f'"{name}" must be a text that is not empty')
    return value
