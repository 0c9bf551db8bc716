"""The app as the chaos run kills it: the same app, whose processes die where they are told to.

A file in RELAYCHAOS_ORDERS, named after a function, says at which AWS call of its next invocation the whole
process dies by SIGKILL: before the call leaves or after its answer has come.
"""

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3

ORDERS = Path(os.environ["RELAYCHAOS_ORDERS"])
POSTS = {
    "/v1/events": "ingest",
    "/v1/events/batch": "ingest",
    "/v1/deliveries/{delivery_id}/replay": "replay",
}


class _Fate(threading.local):
    """What this thread's invocation was told: at which of its calls to die, None when it may live."""

    left: int | None = None
    after: bool = False


_fate = _Fate()


def _invoked(event: Any, get_response: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - any function's
    """Invoke as always, unless there is an order for the function: then die on the way, or at the end."""
    if not _taken(_function_of(event)):
        return get_response(event)
    answer = get_response(event)
    _die()
    return answer


def _function_of(event: Any) -> str:  # noqa: ANN401 - any function's
    """Name what is invoked: what is asked of the API, `deliver` of all shards, any other by its own name."""
    context = event.context
    if isinstance(context, dict):
        posts = context["httpMethod"] == "POST"
        return POSTS.get(context["resourcePath"], "other") if posts else "other"
    name: str = context.function_name
    return "deliver" if name.startswith("deliver_") else name


def _taken(function: str) -> bool:
    """Take the order for a function; only one invocation gets it."""
    mine = ORDERS / f"taken by {os.getpid()}"
    try:
        (ORDERS / function).rename(mine)
    except FileNotFoundError:
        return False
    order = json.loads(mine.read_text())
    _fate.left, _fate.after = order["call"], order["after"]
    return True


def _before_call(**_: object) -> None:
    if _fate.left is not None:
        _fate.left -= 1
        if not _fate.left and not _fate.after:
            _die()


def _after_call(**_: object) -> None:
    if _fate.left is not None and _fate.left <= 0:
        _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


boto3.setup_default_session()
_events: Any = boto3.DEFAULT_SESSION.events  # type: ignore[union-attr]  # set just above
_events.register_first("before-send", _before_call)
_events.register_last("after-call", _after_call)

from app import app  # noqa: E402 - the hooks have to be there first

app.register_middleware(_invoked, "all")

__all__ = ["app"]
