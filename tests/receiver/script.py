"""Scripted answers: deliveries take them in turn, the last one repeats. Nothing is sent here."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.receiver.answer import Answer, build

LOWEST_STATUS, HIGHEST_STATUS = 100, 999
_FIELDS = frozenset({"status", "body", "body_b64", "headers", "raw_b64", "do", "delay_ms", "close"})


class Deed(StrEnum):
    """What can be done instead of answering."""

    HANG = "hang"
    CLOSE = "close"
    RST = "rst"


@dataclass(frozen=True, slots=True)
class Step:
    """One scripted reaction: wait, then do this."""

    act: Answer | Deed
    delay_s: float = 0


class Script:
    """Steps in turn; the last one is for everybody who comes later."""

    def __init__(self, steps: list[Step]) -> None:
        """Start before the first of at least one step."""
        self._steps = steps
        self._taken = 0

    def take(self) -> Step:
        """Give the next step."""
        step = self._steps[min(self._taken, len(self._steps) - 1)]
        self._taken += 1
        return step


def parse_script(answers: object) -> Script:
    """Read a list of answers as they are posted to /script; ValueError says what is wrong with which."""
    if not isinstance(answers, list) or not answers:
        raise ValueError('"answers" must be a list with at least one answer')
    return Script([_parse_step(index, answer) for index, answer in enumerate(answers)])


def _parse_step(index: int, spec: object) -> Step:
    if not isinstance(spec, Mapping) or not spec.keys() <= _FIELDS:
        raise ValueError(f"answer {index}: must be an object with fields among {', '.join(sorted(_FIELDS))}")
    try:
        return Step(_parse_act(spec), _delay_s(spec.get("delay_ms", 0)))
    except (ValueError, TypeError, AttributeError) as wrong:
        raise ValueError(f"answer {index}: {wrong}") from wrong


def _parse_act(spec: Mapping[str, Any]) -> Answer | Deed:
    if "do" in spec:
        return Deed(spec["do"])
    if "raw_b64" in spec:
        return Answer(None, decode_base64(spec["raw_b64"]), close=spec.get("close", True))
    headers = spec.get("headers", {})
    pairs = (
        headers.items()
        if isinstance(headers, Mapping)
        else [(str(name), str(value)) for name, value in headers]
    )
    body = decode_base64(spec["body_b64"]) if "body_b64" in spec else str(spec.get("body", "")).encode()
    return build(checked_status(spec.get("status", 200)), body, pairs, close=bool(spec.get("close")))


def _delay_s(ms: object) -> float:
    if not isinstance(ms, int | float) or not 0 <= ms < float("inf"):
        raise ValueError(f"delay_ms is a number from 0 up, not {ms!r}")
    return ms / 1000


def checked_status(status: object) -> int:
    """Give a status that three digits can hold, or raise ValueError."""
    if (
        isinstance(status, bool)
        or not isinstance(status, int)
        or not LOWEST_STATUS <= status <= HIGHEST_STATUS
    ):
        raise ValueError(f"a status is a number from {LOWEST_STATUS} to {HIGHEST_STATUS}, not {status!r}")
    return status


def decode_base64(text: str) -> bytes:
    """Decode either alphabet, padded or not; a blank counts as the plus that a query turned into it."""
    plain = text.replace("-", "+").replace("_", "/").replace(" ", "+").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error as wrong:
        raise ValueError(f"not base64: {text[:40]!r}") from wrong
