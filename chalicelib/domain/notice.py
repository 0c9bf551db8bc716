"""Notices: what an owner is told of an endpoint, and when it is time to tell.

A decision is made from the endpoint, its gate, its dead letters and what was told before; nothing here
publishes. Times are Unix milliseconds unless a name says otherwise.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from chalicelib.domain.delivery import Ended
from chalicelib.domain.endpoint import GONE_REASON, Endpoint, EndpointState
from chalicelib.domain.gate import Breaker, Gate, HoldReason
from chalicelib.domain.gate.alerts import FRESH
from chalicelib.domain.outcome import DeathReason

LATE_MS = 120_000
"""A dead letter may become readable so long after the moment that stands in it: a function's life, twice."""
AGAIN_MS = 60_000
EXPIRY_MS = 30 * 86_400_000
"""So long before a certificate of an endpoint's `auth` expires its owner is told."""
KEPT_S = 90 * 86_400
UNSURE = -1


class NoticeKind(StrEnum):
    """What a notice is about."""

    DEAD_LETTERS = "dead_letters"
    ADDRESS_REFUSED = "address_refused"
    BREAKER_OPEN = "breaker_open"
    ENDPOINT_GONE = "endpoint_gone"
    ENDPOINT_DISABLED = "endpoint_disabled"
    RECOVERED = "recovered"
    CERTIFICATE_EXPIRES = "certificate_expires"


REFUSALS = frozenset({DeathReason.REFUSED})
LOSSES = (
    frozenset(DeathReason)
    - REFUSALS
    - {
        DeathReason.ENDPOINT_DELETED,
        DeathReason.UNSUBSCRIBED,
        DeathReason.SKIPPED,
    }
)
"""What an owner is told of: not what they did themselves by deleting, unsubscribing or skipping."""
TOLD = REFUSALS | LOSSES
_REASONS = {NoticeKind.DEAD_LETTERS: LOSSES, NoticeKind.ADDRESS_REFUSED: REFUSALS}


@dataclass(frozen=True, slots=True)
class NoticeRules:
    """How long a window is with one notice of dead letters, and how long an open breaker is not worth one."""

    window_ms: int = 3_600_000
    outage_ms: int = 900_000


@dataclass(frozen=True, slots=True)
class Finding:
    """What there is to tell: of which kind, from when until when, with how many dead letters by reason.

    `complete` is False when there were more than were counted. `why` is the endpoint's own state reason.
    """

    kind: NoticeKind
    since_ms: int
    until_ms: int
    reasons: Mapping[DeathReason, int] = field(default_factory=dict)
    complete: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """One notice to the owner of an endpoint; `published_ms` is 0 until the channel has taken it."""

    tenant: str
    id: str
    endpoint_id: str
    at_ms: int
    finding: Finding
    published_ms: int = 0


@dataclass(frozen=True, slots=True)
class Track:
    """Dead letters of one sort: until when the window of the last notice lasts, and what has been counted.

    `sort` is the kind of its notices. Those up to `counted_ms` are told, and `beyond` says how many of the
    last `LATE_MS` of these, by reason: one that becomes readable late is one more than that. `marked_us` is
    the gate's mark that was seen.
    """

    sort: NoticeKind
    until_ms: int = 0
    counted_ms: int = 0
    beyond: Mapping[DeathReason, int] = field(default_factory=dict)
    marked_us: int = 0


@dataclass(frozen=True, slots=True)
class Trouble:
    """A trouble that was told and is not over: since when, and how many requests had been sent by then."""

    since_ms: int
    sent: int


@dataclass(frozen=True, slots=True)
class Told:
    """What the owner of an endpoint has been told, and what is on its way.

    `outage_us`, `disabled_ms` and `expiry_s` name the outage, the disabling and the expiry last told of.
    `unsent` are the notices that the channel has not taken; until `claimed_ms` one function alone
    publishes them.
    """

    version: int = 0
    losses: Track = Track(NoticeKind.DEAD_LETTERS)
    refusals: Track = Track(NoticeKind.ADDRESS_REFUSED)
    outage_us: int = 0
    disabled_ms: int = 0
    trouble: Trouble | None = None
    unsent: tuple[str, ...] = ()
    claimed_ms: int = 0
    expiry_s: int = 0


@dataclass(frozen=True, slots=True)
class Sight:
    """An endpoint as it was looked at."""

    endpoint: Endpoint
    gate: Gate
    told: Told


@dataclass(frozen=True, slots=True)
class Letters:
    """The dead letters that were read, in any order; `complete` is False when there are more."""

    ended: tuple[Ended, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """What is found, what has been told once it is, and when to look again (None: when marked again)."""

    findings: tuple[Finding, ...]
    told: Told
    again_ms: int | None


def wants_letters(sight: Sight, now_ms: int) -> bool:
    """Say whether the dead letters have to be read: there may be new ones, or what recovered is summed up."""
    return _recovered(sight) or any(_counts(*each, now_ms) for each in _tracks(sight))


def decide(sight: Sight, letters: Letters, now_ms: int, rules: NoticeRules) -> Decision:
    """Decide what an owner is to be told of an endpoint now."""
    before = sight.told
    (losses, lost), (refusals, refused) = (
        _track(track, marked_us, letters, now_ms, rules) for track, marked_us in _tracks(sight)
    )
    found = [*_disabling(sight, now_ms), *_outage(sight, now_ms, rules)]
    expiring = _expiring(sight, now_ms)
    findings = [*refused, *lost, *found, *expiring]
    if before.trouble and _recovered(sight):
        findings.append(_summary(before.trouble, letters, now_ms))
    told = replace(
        before,
        losses=losses,
        refusals=refusals,
        trouble=_trouble(sight, found),
        outage_us=sight.gate.held_from if _tells(found, NoticeKind.BREAKER_OPEN) else before.outage_us,
        disabled_ms=sight.endpoint.state_ms if _disabling(sight, now_ms) else before.disabled_ms,
        expiry_s=expiring[0].until_ms // 1000 if expiring else before.expiry_s,
    )
    return Decision(tuple(findings), told, _again(replace(sight, told=told), now_ms, rules))


def _trouble(sight: Sight, found: Sequence[Finding]) -> Trouble | None:
    """Say which trouble goes on: what is sent after its last turn for the worse decides when it is over."""
    trouble, state = sight.told.trouble, sight.endpoint.state
    if state is EndpointState.DELETED or _recovered(sight):
        return None
    if found:
        return Trouble(trouble.since_ms if trouble else found[0].since_ms, sight.gate.sent)
    if trouble and state is EndpointState.DISABLED:
        return replace(trouble, sent=sight.gate.sent)
    return trouble


def disabled_by_relay(endpoint: Endpoint) -> bool:
    """Say whether an endpoint is disabled, and not by its owner: then its state has a reason of Relay's."""
    return endpoint.state is EndpointState.DISABLED and endpoint.state_reason != ""


def _tracks(sight: Sight) -> tuple[tuple[Track, int], tuple[Track, int]]:
    """Pair what was counted of each sort with the gate's mark for it (Unix µs)."""
    told, gate = sight.told, sight.gate
    return (told.losses, gate.died), (told.refusals, gate.refused)


def _counts(track: Track, marked_us: int, now_ms: int) -> bool:
    return track.until_ms <= now_ms and track.marked_us != marked_us


def _track(
    track: Track, marked_us: int, letters: Letters, now_ms: int, rules: NoticeRules
) -> tuple[Track, list[Finding]]:
    """Count what is new of one sort, if its window is over."""
    if not _counts(track, marked_us, now_ms):
        return track, []
    reasons = _REASONS[track.sort]
    horizon_ms = track.counted_ms - LATE_MS
    counted = [each for each in letters.ended if each.reason in reasons and each.at_ms > horizon_ms]
    new = Counter(each.reason for each in counted) - Counter(track.beyond)
    beyond = Counter(each.reason for each in counted if each.at_ms > now_ms - LATE_MS)
    settled = marked_us <= now_ms * 1000 - FRESH
    seen = replace(track, counted_ms=now_ms, beyond=beyond, marked_us=marked_us if settled else UNSURE)
    if not new:
        return seen, []
    newest = sorted(each.at_ms for each in counted)[-new.total() :]
    finding = Finding(track.sort, newest[0], newest[-1], dict(new), letters.complete)
    return replace(seen, until_ms=now_ms + rules.window_ms), [finding]


def _disabling(sight: Sight, now_ms: int) -> list[Finding]:
    endpoint = sight.endpoint
    if not disabled_by_relay(endpoint) or sight.told.disabled_ms == endpoint.state_ms:
        return []
    gone = endpoint.state_reason == GONE_REASON
    kind = NoticeKind.ENDPOINT_GONE if gone else NoticeKind.ENDPOINT_DISABLED
    return [Finding(kind, endpoint.state_ms, now_ms, why=endpoint.state_reason)]


def _expiring(sight: Sight, now_ms: int) -> list[Finding]:
    expires_ms = _untold_expiry_ms(sight)
    if expires_ms is None or now_ms < expires_ms - EXPIRY_MS:
        return []
    return [Finding(NoticeKind.CERTIFICATE_EXPIRES, now_ms, expires_ms)]


def _untold_expiry_ms(sight: Sight) -> int | None:
    """Say when the first certificate of an endpoint expires, unless its owner knows or it is deleted."""
    endpoint = sight.endpoint
    expires_s = endpoint.auth.expires_s if endpoint.auth else None
    if expires_s is None or expires_s == sight.told.expiry_s or endpoint.state is EndpointState.DELETED:
        return None
    return expires_s * 1000


def _outage(sight: Sight, now_ms: int, rules: NoticeRules) -> list[Finding]:
    since_us = _open_since(sight)
    if since_us is None or since_us == sight.told.outage_us or since_us // 1000 > now_ms - rules.outage_ms:
        return []
    return [Finding(NoticeKind.BREAKER_OPEN, since_us // 1000, now_ms)]


def _open_since(sight: Sight) -> int | None:
    """Say since when (Unix µs) the breaker of an endpoint that is not switched off has been open."""
    gate = sight.gate
    fails = gate.state is not Breaker.CLOSED and gate.held_for is HoldReason.BREAKER_OPEN
    return gate.held_from if fails and sight.endpoint.state is EndpointState.ENABLED else None


def _recovered(sight: Sight) -> bool:
    """Say whether an endpoint that was in trouble answers again: something was sent since, and well."""
    gate, trouble = sight.gate, sight.told.trouble
    works = sight.endpoint.state is EndpointState.ENABLED and gate.state is Breaker.CLOSED and not gate.fails
    return trouble is not None and works and gate.sent not in {0, trouble.sent}


def _summary(trouble: Trouble, letters: Letters, now_ms: int) -> Finding:
    lost = Counter(
        each.reason for each in letters.ended if each.reason in TOLD and each.at_ms >= trouble.since_ms
    )
    return Finding(NoticeKind.RECOVERED, trouble.since_ms, now_ms, dict(lost), letters.complete)


def _again(sight: Sight, now_ms: int, rules: NoticeRules) -> int | None:
    """Say when there is more to see, if nothing marks the gate before."""
    return min(_moments(sight, now_ms, rules), default=None)


def _moments(sight: Sight, now_ms: int, rules: NoticeRules) -> Iterable[int]:
    told, gate = sight.told, sight.gate
    for track, marked_us in _tracks(sight):
        if track.marked_us != marked_us:
            yield max(track.until_ms, now_ms + AGAIN_MS)
    expires_ms = _untold_expiry_ms(sight)
    if expires_ms is not None:
        yield expires_ms - EXPIRY_MS
    since_us = _open_since(sight)
    if since_us is not None and since_us != told.outage_us:
        yield since_us // 1000 + rules.outage_ms
    enabled = sight.endpoint.state is EndpointState.ENABLED
    if told.trouble is not None and enabled and gate.state is Breaker.CLOSED:
        yield now_ms + AGAIN_MS


def _tells(findings: Iterable[Finding], kind: NoticeKind) -> bool:
    return any(each.kind is kind for each in findings)
