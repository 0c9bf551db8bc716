"""An endpoint: one destination with its subscription, limits and secrets.

Bounds live here; what a URL may be lives in `target`, what a header may be here.
"""

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum

from chalicelib.domain import pattern
from chalicelib.domain.auth import Auth
from chalicelib.domain.backoff import RetryProfile
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import SignatureForm, SignatureKey

LANE_ROWS = 10
ORDERED_LANE = "o0"
REPLAY_LANE = "r0"
RATE_MAX = 100_000
BURST_MAX = 100_000
CONCURRENCY_MAX = 1_000
EVENT_TYPES_MAX = 48  # a change rewrites the old and the new ones in one transaction of a hundred writes
HEADERS_MAX = 20
DESCRIPTION_MAX = 500
GONE_REASON = "the endpoint answered 410 Gone"
ORDERED_MAX = 40  # all of them have to fit into the transaction of one event
HEADER_VALUE_MAX = 2_048
OVERLAP_S, OVERLAP_MAX_S = 604_800, 2_592_000
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)
_HEADER_VALUE = re.compile(r"[!-~]([ \t!-~]*[!-~])?", re.ASCII)
_RESERVED_HEADERS = frozenset(
    (
        "host content-length content-type content-encoding transfer-encoding connection te trailer upgrade"
        " keep-alive proxy-authorization proxy-connection expect accept accept-encoding cookie user-agent"
    ).split()
)
_RESERVED_PREFIXES = ("relay-", "webhook-")


class Transport(StrEnum):
    """How a request to an endpoint is built."""

    HTTP = "http"
    TELEGRAM = "telegram"
    DISCORD = "discord"
    SLACK = "slack"
    SQS = "sqs"
    EVENTBRIDGE = "eventbridge"
    TUNNEL = "tunnel"


class Ordering(StrEnum):
    """Whether an endpoint's deliveries wait for one another."""

    NONE = "none"
    ENDPOINT = "endpoint"


class EndpointState(StrEnum):
    """Whether an endpoint takes deliveries: enabled, held back, or gone but for its history."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    DELETED = "deleted"


class Backlog(StrEnum):
    """What becomes of what waited for a disabled endpoint when it is enabled."""

    DELIVER = "deliver"
    SKIP = "skip"
    RESUME_FROM = "resume_from"


@dataclass(frozen=True, slots=True)
class WrappedSecret:
    """A signing secret encrypted by the key service, and the Unix second it stops signing (None: never).

    One of a key pair is its private part, and has its public key beside it. Of a chat it is the
    credential that its platform has made.
    """

    ciphertext: bytes = field(repr=False)
    expires_at: int | None = None
    public_key: str = ""

    @property
    def kind(self) -> SignatureKey:
        """Say what kind of key it is."""
        return SignatureKey.ED25519 if self.public_key else SignatureKey.HMAC


@dataclass(frozen=True, slots=True)
class Limits:
    """What an endpoint can take: requests a second, requests at once, and how many lanes serve it."""

    rate_per_second: int = 10
    burst: int = 20
    max_concurrency: int = 8

    @property
    def lanes(self) -> int:
        """Count the unordered lanes: one for every ten requests in flight."""
        return -(-self.max_concurrency // LANE_ROWS)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One destination of a tenant. `version` counts changes; times are Unix epoch milliseconds.

    `state_ms` is since when its state is what it is, 0 for from the beginning. What was received before
    `skip_before_ms` its owner has skipped. `lanes_before` is how many lanes it ever had. `filter`
    is a payload filter as `pattern.admitted` gives it, empty for none; `role` the ARN of the role by which
    a queue or bus of AWS is reached, empty for others.
    """

    tenant: str
    id: str
    url: str = field(repr=False)
    event_types: tuple[str, ...]
    created_ms: int
    transport: Transport = Transport.HTTP
    description: str = ""
    limits: Limits = Limits()
    ordering: Ordering = Ordering.NONE
    retry_profile: RetryProfile = RetryProfile.DEFAULT
    signature: SignatureForm = SignatureForm.RELAY
    headers: tuple[tuple[str, Secret], ...] = ()
    state: EndpointState = EndpointState.ENABLED
    state_reason: str = ""
    secrets: tuple[WrappedSecret, ...] = ()
    version: int = 1
    changed_ms: int = 0
    state_ms: int = 0
    skip_before_ms: int = 0
    lanes_before: int = 0
    filter: str = ""
    auth: Auth[WrappedSecret] | None = None
    role: str = ""

    @property
    def ordered(self) -> bool:
        """Say whether its deliveries are sent one after another, in the order of their events."""
        return self.ordering is Ordering.ENDPOINT

    @property
    def filter_mark(self) -> str:
        """Give the mark of its filter, empty for none."""
        return pattern.mark(self.filter) if self.filter else ""

    @property
    def lanes(self) -> tuple[str, ...]:
        """Number its lanes: the one of an ordered endpoint, else as many as its cap asks for."""
        return lane_numbers(self.limits.lanes, ordered=self.ordered)

    @property
    def lanes_ever(self) -> tuple[str, ...]:
        """Number the lanes that may have work: also those of a cap that was higher once."""
        return lane_numbers(max(self.limits.lanes, self.lanes_before), ordered=self.ordered)

    def next_to(self, old: "Endpoint", now_ms: int) -> "Endpoint":
        """Give this endpoint as the version after an old one, changed at a moment."""
        state_ms = old.state_ms if self.state is old.state else now_ms
        lanes = max(old.limits.lanes, old.lanes_before)
        return replace(
            self, version=old.version + 1, changed_ms=now_ms, state_ms=state_ms, lanes_before=lanes
        )

    def disabled(self, now_ms: int, reason: str = "") -> "Endpoint":
        """Give it as it is once disabled: by its owner, or by Relay for a reason."""
        off = replace(self, state=EndpointState.DISABLED, state_reason=reason)
        return off.next_to(self, now_ms)

    def enabled(self, now_ms: int, skip_before_ms: int = 0) -> "Endpoint":
        """Give it as it is once enabled; what was received before a moment is skipped, as once it was."""
        skipped_ms = max(self.skip_before_ms, skip_before_ms)
        on = replace(self, state=EndpointState.ENABLED, state_reason="", skip_before_ms=skipped_ms)
        return on.next_to(self, now_ms)

    @property
    def signed(self) -> bool:
        """Say whether its requests are signed."""
        return self.signature is not SignatureForm.NONE

    @property
    def signature_key(self) -> SignatureKey:
        """Say of which kind its newest key is."""
        return self.secrets[0].kind if self.secrets else SignatureKey.HMAC

    @property
    def previous_expires_at(self) -> int | None:
        """Give the Unix second at which its previous key stops signing, or did; None: there is none."""
        return self.secrets[1].expires_at if len(self.secrets) > 1 else None

    def rotated(self, newest: WrappedSecret, now_ms: int, overlap_s: int) -> "Endpoint":
        """Give it with a new key, the one it has signing for a while longer, what was before it gone."""
        expires_at = now_ms // 1000 + overlap_s
        previous = tuple(replace(each, expires_at=expires_at) for each in self.secrets[:1] if overlap_s)
        return replace(self, secrets=(newest, *previous)).next_to(self, now_ms)

    def overlap_ended(self, now_ms: int, within_s: int = 0) -> "Endpoint | None":
        """Give it with its previous key signing for so many seconds at most; None when it does not anyway."""
        expires_at = now_ms // 1000 + within_s
        newest, others = self.secrets[:1], self.secrets[1:]
        if not any(each.expires_at is None or each.expires_at > expires_at for each in others):
            return None
        previous = tuple(replace(each, expires_at=expires_at) for each in others if within_s)
        return replace(self, secrets=(*newest, *previous)).next_to(self, now_ms)

    def live_secrets(self, now_s: int) -> tuple[WrappedSecret, ...]:
        """Give the secrets that sign at a moment (Unix seconds), newest first."""
        return tuple(each for each in self.secrets if each.expires_at is None or each.expires_at > now_s)


def lane_numbers(lanes: int, *, ordered: bool, replays: bool = False) -> tuple[str, ...]:
    """Number the lanes of an endpoint: an ordered one has one, others as many as told; and its replays'."""
    numbers = (ORDERED_LANE,) if ordered else tuple(map(str, range(lanes)))
    return (*numbers, REPLAY_LANE) if replays else numbers


def header_fault(name: str, value: str) -> str | None:
    """Say in plain words why a custom header cannot be sent, or None when it can."""
    if not _HEADER_NAME.fullmatch(name):
        return "a header name of letters, digits and hyphens, at most 128 characters"
    lowered = name.lower()
    if lowered in _RESERVED_HEADERS or lowered.startswith(_RESERVED_PREFIXES):
        return "a header that Relay does not set itself"
    if len(value) > HEADER_VALUE_MAX or not _HEADER_VALUE.fullmatch(value):
        return f"a value in printable ASCII without line breaks, at most {HEADER_VALUE_MAX} characters"
    return None
