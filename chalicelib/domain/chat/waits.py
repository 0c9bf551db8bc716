"""What chats answer when they are told too much: how long each asks to be left alone, wherever it says so.

Read into the header that `judge` knows. A wait is for the endpoint that got it, also a global one.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from chalicelib.domain.backoff import RETRY_AFTER_CEILING
from chalicelib.domain.chat.platform import is_chat
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.outcome import Reply, retry_after_of

NO_HINT_S = 300
"""How long a chat is left alone that answers 429 and does not say for how long: a ban lasts minutes."""
_CEILING_S = RETRY_AFTER_CEILING // timedelta(seconds=1)
_HEADER = "retry-after"
_MILLI, _MILLI_LEAST = 1000, 100


def heard(transport: Transport, reply: Reply, now: datetime) -> Reply:
    """Give a reply with the wait it asks for in its Retry-After header, in whole seconds rounded up.

    `now` (aware UTC) is what a date in that header is measured from.
    """
    if not is_chat(transport) or reply.status != HTTPStatus.TOO_MANY_REQUESTS:
        return reply
    said = _said(reply.header(_HEADER), now)
    told = _TOLD[transport](_parsed(reply.body))
    found = [each for each in (said, _of_header(told, said)) if each is not None]
    wait_s = math.ceil(max(found)) if found else NO_HINT_S
    others = tuple(each for each in reply.headers if each[0].lower() != _HEADER)
    return replace(reply, headers=(*others, (_HEADER, str(wait_s))))


def _said(header: str | None, now: datetime) -> float | None:
    seconds = _seconds(header)
    until = retry_after_of(header, now) if header and seconds is None else None
    return seconds if until is None else until / timedelta(seconds=1)


def _of_header(told: float | None, said: float | None) -> float | None:
    """Read what a body tells in milliseconds so where a header says the same in seconds."""
    if told is None or not said or told < _MILLI_LEAST:
        return told
    return told / _MILLI if math.ceil(told / _MILLI) == math.ceil(said) else told


def _parsed(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _in_parameters(of: Mapping[str, Any]) -> float | None:
    parameters = of.get("parameters")
    return _seconds(parameters.get("retry_after")) if isinstance(parameters, dict) else None


def _at_the_top(of: Mapping[str, Any]) -> float | None:
    return _seconds(of.get("retry_after"))


_TOLD: Mapping[Transport, Callable[[Mapping[str, Any]], float | None]] = MappingProxyType(
    {
        Transport.TELEGRAM: _in_parameters,
        Transport.DISCORD: _at_the_top,
        Transport.SLACK: lambda _: None,
    }
)


def _seconds(value: object) -> float | None:
    """Read a wait in seconds, whole or not, a number or its text; none is below 0 or beyond reason."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return min(number, float(_CEILING_S * _MILLI)) if number >= 0 else None
