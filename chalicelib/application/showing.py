"""Showing: what of payloads and answers may be seen, where a tenant has marked some of it sensitive.

Done on reading alone: what is stored and sent is what was posted. Who has marked nothing pays one read.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from chalicelib.application.ports import Clock, Payloads, Reading, StoredEvent, Tenants
from chalicelib.application.questions import Delivery
from chalicelib.domain import redaction, sensitive
from chalicelib.domain.delivery import Attempt
from chalicelib.domain.outcome import Fault
from chalicelib.domain.secret import MASK
from chalicelib.domain.sensitive import Path

LOOKED_AT_MAX = 4 * 1024 * 1024
"""For how many bytes of payloads, counted by attempts, a view looks for echoes; beyond, it hides answers."""
_REDIRECTIONS = range(300, 400)


class BodyShown(StrEnum):
    """How much of a body is shown: all, all but what is sensitive, nothing, or it is not kept any more."""

    EXACT = "exact"
    REDACTED = "redacted"
    HIDDEN = "hidden"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Body:
    """A body as it may be seen; `exact` is what it really is."""

    shown: BodyShown
    seen: bytes = field(default=b"", repr=False)
    exact: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Showing:
    """Makes what may be seen."""

    reading: Reading
    payloads: Payloads
    tenants: Tenants
    clock: Clock
    looked_at_max: int = LOOKED_AT_MAX

    def body(self, tenant: str, stored: StoredEvent | None) -> Body:
        """Make what may be seen of an event's body."""
        exact = self._bytes(stored)
        if exact is None:
            return Body(BodyShown.GONE)
        paths = self._paths(tenant)
        if not paths:
            return Body(BodyShown.EXACT, exact, exact)
        text = redaction.payload(exact, paths)
        if text is None:
            return Body(BodyShown.HIDDEN, exact=exact)
        seen = text.encode()
        return Body(BodyShown.EXACT if seen == exact else BodyShown.REDACTED, seen, exact)

    def deliveries(self, tenant: str, told: Sequence[Delivery]) -> tuple[Delivery, ...]:
        """Give deliveries as they may be seen, with their earlier generations."""
        every = [attempt for each in told for attempt in _attempts_of(each)]
        seen = dict(zip(map(_name, every), self.attempts(tenant, every), strict=True))
        return tuple(_with(each, seen) for each in told)

    def attempts(self, tenant: str, told: Sequence[Attempt]) -> tuple[Attempt, ...]:
        """Give attempts as they may be seen; the events of those with something to hide are read."""
        paths = self._paths(tenant) if any(map(_says_something, told)) else ()
        if not paths:
            return tuple(told)
        wanted = Counter(each.event_id for each in told if _says_something(each))
        events = self.reading.events_named(tenant, list(wanted), self.clock.now_ms())
        values = self._values(events, wanted, paths)
        return tuple(
            _seen(each, paths, values[each.event_id]) if _says_something(each) else each for each in told
        )

    def _paths(self, tenant: str) -> tuple[Path, ...]:
        found = self.tenants.get(tenant)
        return tuple(map(sensitive.parse, found.sensitive_paths)) if found else ()

    def _values(
        self, events: Mapping[str, StoredEvent], wanted: Mapping[str, int], paths: Sequence[Path]
    ) -> dict[str, frozenset[str] | None]:
        """Give the sensitive values of events' payloads by id, as far as the bytes go to be looked at."""
        values: dict[str, frozenset[str] | None] = {}
        left = self.looked_at_max
        for name, times in wanted.items():
            stored = events.get(name)
            left -= times * stored.size if stored else 0
            body = self._bytes(stored) if left >= 0 else None
            values[name] = None if body is None else redaction.values_in(body, paths)
        return values

    def _bytes(self, stored: StoredEvent | None) -> bytes | None:
        if stored is None or not stored.payload_key:
            return stored.event.body if stored else None
        return self.payloads.get(stored.payload_key)


def _says_something(attempt: Attempt) -> bool:
    return bool(attempt.response or attempt.detail)


def _seen(attempt: Attempt, paths: Sequence[Path], values: frozenset[str] | None) -> Attempt:
    """Hide in an attempt what its endpoint has said back: in its answer, or in what was wrong with it."""
    response = redaction.response(attempt.response, paths, values, cut=attempt.truncated)
    return replace(attempt, response=response, detail=_detail(attempt, values))


def _detail(attempt: Attempt, values: frozenset[str] | None) -> str:
    """Give the words about an answer: Relay's own, but that they quote one that redirects or is no HTTP."""
    if values is None:
        quotes = attempt.fault is Fault.PROTOCOL_ERROR or attempt.status in _REDIRECTIONS
        return MASK if quotes and attempt.detail else attempt.detail
    return redaction.words(attempt.detail, values) or MASK if attempt.detail else ""


def _attempts_of(told: Delivery) -> list[Attempt]:
    return [attempt for each in (told, *told.earlier) for attempt in each.attempts]


def _name(attempt: Attempt) -> tuple[str, int, int]:
    return attempt.delivery_id, attempt.generation, attempt.number


def _with(told: Delivery, seen: dict[tuple[str, int, int], Attempt]) -> Delivery:
    attempts = tuple(seen[_name(each)] for each in told.attempts)
    return replace(told, attempts=attempts, earlier=tuple(_with(each, seen) for each in told.earlier))
