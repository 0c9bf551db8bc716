"""Ingest: an event is checked, made durable with what it owes, and only then are lanes rung.

Nothing here contacts an endpoint or waits for one.
"""

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from chalicelib.application import fan_out
from chalicelib.application.filtering import passing
from chalicelib.application.limiter import Limiter, Need
from chalicelib.application.pacing import Pacing, Wanted
from chalicelib.application.ports import (
    Allowance,
    Bells,
    Capture,
    Capturing,
    Clock,
    Dice,
    Idempotency,
    Owing,
    Payloads,
    StoredEvent,
    Subscriber,
    Unavailable,
)
from chalicelib.domain import event as events
from chalicelib.domain import ids
from chalicelib.domain.allowance import UNPACED, Pace
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.event import Event
from chalicelib.domain.pattern import members_of
from chalicelib.domain.tenant import Quotas

IDEMPOTENCY_SECONDS = 24 * 3600
LOOKED_AT_MAX = 100
"""Takers of a type whose filters are looked at before the event is accepted: one read, at most."""
_KEY_MAX = 255
_PRINTABLE_LOW, _PRINTABLE_HIGH = " ", "~"


@dataclass(frozen=True, slots=True)
class Post:
    """What a producer posted; `named_type` is that of the header or the batch item, if there is one."""

    tenant: str
    body: bytes
    content_type: str
    named_type: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The exact JSON of a 202, and whether it repeats an earlier one."""

    answer: str
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """The settings ingest needs; sizes in bytes."""

    payload_max: int
    inline_max: int
    inline_fan_out_max: int


@dataclass(frozen=True, slots=True)
class _Draft:
    event: Event
    key: str | None

    @property
    def fingerprint(self) -> str:
        head = f"{self.event.type}\n".encode()
        return hashlib.sha256(head + self.event.body).hexdigest()


@dataclass(frozen=True, slots=True)
class _Takers:
    """Whom an event is fanned out to at once, and whether others may have to follow later; when, if known."""

    now: tuple[Subscriber, ...] = ()
    later: bool = True
    pace: Pace = UNPACED


@dataclass(frozen=True, slots=True)
class Ingest:
    """Accepts events."""

    store: Capturing
    payloads: Payloads
    bells: Bells
    clock: Clock
    dice: Dice
    limits: IngestLimits
    limiter: Limiter | None = None
    pacing: Pacing | None = None

    def one(self, post: Post, quotas: Quotas | None = None) -> Accepted:
        """Accept one event; raises RelayError for the producer's mistakes and Unavailable for ours."""
        (result,) = self.many([post], quotas)
        if isinstance(result, RelayError):
            raise result
        return result

    def many(self, posts: Sequence[Post], quotas: Quotas | None = None) -> list[Accepted | RelayError]:
        """Accept events of one tenant, each all or nothing, and answer each in its place.

        Of those without a fault the first are accepted, as many as the quotas allow by now; without quotas
        nothing is counted.
        """
        results: dict[int, Accepted | RelayError] = {}
        drafts: dict[int, _Draft] = {}
        for place, post in enumerate(posts):
            try:
                drafts[place] = self._draft(post)
            except RelayError as error:
                results[place] = error
        results.update(zip(drafts, self._admit(list(drafts.values()), quotas), strict=True))
        return [results[place] for place in range(len(posts))]

    def _draft(self, post: Post) -> _Draft:
        content_type = events.valid_content_type(post.content_type)
        event_type = events.admit_body(
            post.body, content_type, post.named_type, max_bytes=self.limits.payload_max
        )
        key = None if post.idempotency_key is None else valid_key(post.idempotency_key)
        now_ms = self.clock.now_ms()
        event_id = ids.new_id("evt", now_ms, self.dice.bits(ids.ENTROPY_BITS))
        return _Draft(Event(post.tenant, event_id, event_type, content_type, post.body, now_ms), key)

    def _admit(self, drafts: Sequence[_Draft], quotas: Quotas | None) -> list[Accepted | RelayError]:
        """Accept the first of them, as many as may be posted by now, and tell the others when they may."""
        if self.limiter is None or quotas is None or not drafts:
            return self._accept(drafts, quotas)
        need = events_of(drafts[0].event.tenant, quotas, len(drafts))
        granted = self.limiter.take(need)
        others = len(drafts) - granted.count
        accepted = self._accept(drafts[: granted.count], quotas)
        return [*accepted, *(too_many_events(need.per_second, granted.retry_after_s) for _ in range(others))]

    def _accept(self, drafts: Sequence[_Draft], quotas: Quotas | None) -> list[Accepted | RelayError]:
        if not drafts:
            return []
        tenant = drafts[0].event.tenant
        found = self._match(drafts)
        numbers = self._number(tenant, found)
        matches = self._paced(tenant, found, quotas)
        captures = [self._capture(*each) for each in zip(drafts, matches, numbers, strict=True)]
        owing = [each for capture in captures for each in capture.owing]
        now_ms = self.clock.now_ms()
        self.store.arm({(each.owed.lane.tenant, each.owed.lane.endpoint_id) for each in owing}, now_ms)
        claims = self.store.commit(captures, now_ms // 1000)
        self._ring([capture for capture, claim in zip(captures, claims, strict=True) if claim is None])
        return [_answer(*each) for each in zip(drafts, captures, claims, strict=True)]

    def _match(self, drafts: Sequence[_Draft]) -> list[_Takers]:
        tenant = drafts[0].event.tenant
        try:
            types = {draft.event.type for draft in drafts}
            found = self.store.subscribers(tenant, types, self.clock.now_ms())
            return self._takers(tenant, [(draft.event, found[draft.event.type]) for draft in drafts])
        except Unavailable:
            # Fanned out later it would come after events accepted after it.
            if self.store.any_ordered(tenant):
                raise
            return [_Takers()] * len(drafts)

    def _takers(
        self, tenant: str, candidates: Sequence[tuple[Event, tuple[Subscriber, ...]]]
    ) -> list[_Takers]:
        """Say whom each event is fanned out to at once: those whose filters it passes, unless they are many.

        Of more than `LOOKED_AT_MAX` only the ordered ones are looked at.
        """
        looked_at = [some if len(some) <= LOOKED_AT_MAX else _ordered(some) for _, some in candidates]
        filters = self.store.filters(tenant, {each for some in looked_at for each in some})
        found = []
        for (event, some), at in zip(candidates, looked_at, strict=True):
            passed = passing(partial(members_of, event), at, filters)
            few = at is some and len(passed) <= self.limits.inline_fan_out_max
            now = passed if few else _ordered(passed)
            found.append(_Takers(now, later=at is not some or len(now) < len(passed)))
        return found

    def _number(self, tenant: str, matches: Sequence[_Takers]) -> list[Mapping[str, int]]:
        """Give each event its number for each ordered endpoint, in the order they came.

        Taken before anything is written: whatever is posted once this is acknowledged gets a larger one.
        """
        ordered = [[each.endpoint_id for each in _ordered(found.now)] for found in matches]
        counts = Counter(endpoint_id for found in ordered for endpoint_id in found)
        if not counts:
            return [fan_out.NO_NUMBERS] * len(matches)
        firsts = self.store.take_numbers(tenant, counts, self.clock.now_us())
        following = {endpoint_id: itertools.count(first) for endpoint_id, first in firsts.items()}
        return [{endpoint_id: next(following[endpoint_id]) for endpoint_id in found} for found in ordered]

    def _paced(self, tenant: str, matches: list[_Takers], quotas: Quotas | None) -> list[_Takers]:
        """Put off to later whom the tenant's budget does not reach at once; ordered endpoints never wait."""
        if self.pacing is None or quotas is None:
            return matches
        wanted = [Wanted.of(each.now) for each in matches]
        paces = self.pacing.admit(tenant, quotas.fan_out_per_second, wanted)
        return [
            found if pace is None else _Takers(_ordered(found.now), later=True, pace=pace)
            for found, pace in zip(matches, paces, strict=True)
        ]

    def _capture(self, draft: _Draft, found: _Takers, numbers: Mapping[str, int]) -> Capture:
        event = draft.event
        owing = fan_out.plan(event.tenant, event.id, event.type, found.now, numbers)
        how = "later" if found.later else "inline" if owing else "none"
        matched = tuple(each.owed.lane.endpoint_id for each in owing)
        stored = StoredEvent(event, len(event.body), self._keep(event), how, matched)
        return Capture(stored, owing, self._claim(draft, stored, owing), found.pace)

    def _keep(self, event: Event) -> str:
        if (
            len(event.body) <= self.limits.inline_max
            or len(events.packed(event.body)) <= self.limits.inline_max
        ):
            return ""
        key = f"{event.tenant}/{event.id}"
        self.payloads.put(key, event.body)
        return key

    def _claim(self, draft: _Draft, stored: StoredEvent, owing: tuple[Owing, ...]) -> Idempotency | None:
        if draft.key is None:
            return None
        expires_s = draft.event.received_ms // 1000 + IDEMPOTENCY_SECONDS
        return Idempotency(draft.key, draft.fingerprint, answer_of(stored, owing), expires_s)

    def _ring(self, captures: Sequence[Capture]) -> None:
        owing = [each for capture in captures for each in capture.owing]
        now_ms = self.clock.now_ms()
        seen = self.store.gates_seen({fan_out.owner_of(each) for each in owing}, now_ms)
        bells = fan_out.bells_for(owing, now_ms, seen)
        if bells:
            self.bells.ring(bells)
        for capture in captures:
            if capture.stored.fan_out == "later":
                event = capture.stored.event
                fan_out.call_later(self.bells, (event.tenant, event.id), capture.pace, now_ms)


def _ordered(subscribers: Sequence[Subscriber]) -> tuple[Subscriber, ...]:
    return tuple(each for each in subscribers if each.ordered)


def valid_key(key: str) -> str:
    """Give an idempotency key back: 1 to 255 printable ASCII characters, or refuse it."""
    if 1 <= len(key) <= _KEY_MAX and all(_PRINTABLE_LOW <= each <= _PRINTABLE_HIGH for each in key):
        return key
    raise RelayError(
        ErrorCode.IDEMPOTENCY_KEY_INVALID,
        "The idempotency key is not valid.",
        field="Idempotency-Key",
        expected="1 to 255 printable ASCII characters",
    )


def answer_of(stored: StoredEvent, owing: Sequence[Owing]) -> str:
    """Write the body of the 202: the event's id, its deliveries' ids, and how it was fanned out."""
    return json.dumps(
        {
            "event_id": stored.event.id,
            "delivery_ids": [each.owed.delivery_id for each in owing],
            "fan_out": stored.fan_out,
        }
    )


def events_of(tenant: str, quotas: Quotas, count: int = 1) -> Need:
    """Say what posting so many events takes of a tenant's quota."""
    return Need(Allowance(tenant, "events"), quotas.events_per_second, count)


def too_many_events(per_second: int, retry_after_s: int) -> RelayError:
    """Make the answer to an event above its tenant's quota; nothing of it was kept."""
    return RelayError(
        ErrorCode.TOO_MANY_EVENTS,
        f"The quota `events_per_second` of this tenant is {per_second}; it is used up for now.",
        expected=f"the same request again, in {retry_after_s} s",
    ).after(retry_after_s)


def unavailable() -> RelayError:
    """Make the answer to an event that our own store kept from being accepted."""
    return RelayError(
        ErrorCode.UNAVAILABLE,
        "Relay could not do this just now; nothing was lost.",
        expected="the same request again, in a few seconds",
    )


def _answer(
    draft: _Draft, capture: Capture, earlier: Idempotency | Unavailable | None
) -> Accepted | RelayError:
    if earlier is None:
        return Accepted(answer_of(capture.stored, capture.owing))
    if isinstance(earlier, Unavailable):
        return unavailable()
    if earlier.fingerprint == draft.fingerprint:
        return Accepted(earlier.answer, replayed=True)
    return RelayError(
        ErrorCode.IDEMPOTENCY_CONFLICT,
        "This idempotency key was used in the last 24 hours with another event type or body.",
        field="Idempotency-Key",
        expected="the same event again, or a new key",
    )
