"""What delivering needs of the world: the work list, the gates, and what sends."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from chalicelib.application.ports.accepting import StoredEvent
from chalicelib.domain.auth import ClientCertificate
from chalicelib.domain.change import Change
from chalicelib.domain.counts import NOTHING, Counts
from chalicelib.domain.delivery import Again, Attempt, Dead, Lane, Owed
from chalicelib.domain.endpoint import Endpoint, WrappedSecret, lane_numbers
from chalicelib.domain.gate import Gate, Spell, Tally
from chalicelib.domain.outcome import Reply
from chalicelib.domain.request import Request
from chalicelib.domain.secret import Secret


@dataclass(frozen=True, slots=True)
class Reread:
    """What the store says under the lease; what is missing is gone.

    Owed rows and attempts by `Owed.key` of the row asked for, events by (tenant, event id),
    endpoints by (tenant, endpoint id).
    """

    owed: Mapping[str, Owed]
    attempts: Mapping[str, Attempt]
    events: Mapping[tuple[str, str], StoredEvent]
    endpoints: Mapping[tuple[str, str], Endpoint]


@dataclass(frozen=True, slots=True)
class Changed:
    """Whether a gate's change was made, and the gate as it is now (None: there is none)."""

    made: bool
    gate: Gate | None


class Gates(Protocol):
    """Reads and changes gates."""

    def read(self, endpoints: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Gate]:
        """Read the gates of (tenant, endpoint) pairs strongly consistent."""
        ...

    def change(self, changes: Sequence[tuple[tuple[str, str], Change]]) -> list[Changed]:
        """Make each change if its tests hold, in one call per 25; answers in the order asked."""
        ...


Note = Spell | Tally
"""What is noted of an endpoint: a hold that has ended, or an hour."""


class Work(Protocol):
    """The work list and the record of what was tried."""

    def peek(self, lane: Lane, limit: int) -> list[Owed]:
        """Read a lane's first rows in the order of `Owed.position`, strongly consistent."""
        ...

    def reread(self, owed: Sequence[Owed]) -> Reread:
        """Read the owed rows, next attempts, events and endpoints of deliveries, strongly consistent.

        A row without an event id gets its owed row and attempt read, nothing else.
        """
        ...

    def insert(
        self, attempts: Sequence[tuple[Owed, Attempt]], notes: Sequence[tuple[tuple[str, str], Note]] = ()
    ) -> list[bool]:
        """Add attempts and holds to history, hours to statistics, in one call per 25.

        Notes are of (tenant, endpoint) pairs. False for an attempt that is there already; a note that is
        there already stays as it is.
        """
        ...

    def close(
        self,
        arrived: Sequence[tuple[Owed, Counts]],
        changes: Sequence[tuple[tuple[str, str], Change]],
        beside: Counts = NOTHING,
    ) -> tuple[list[Changed], Counts]:
        """Remove the owed rows of attempts that are in, and make gate changes, in one call per 24.

        What each attempt counts for is counted in the call that removes its row, and in the last call what
        else was. What could not be counted is given back; after a failure nothing of what is beside was.
        """
        ...

    def move(self, moves: Sequence[tuple[Owed, Again | Dead]]) -> list[bool]:
        """Record failures and move or end their owed rows, several in a transaction; False: lost the race.

        What is recorded of one delivery is recorded whole or not at all.
        """
        ...


@dataclass(frozen=True, slots=True)
class Finished:
    """A send that ended: its key, what came back, and when it began and ended (Unix ms).

    One that was not `begun` in time was given up before anything left: its reply is empty.
    """

    key: str
    reply: Reply
    began_ms: int
    ended_ms: int
    begun: bool = True


class Outbox(Protocol):
    """Sends of one invocation, so many side by side; leaving it cancels what runs and what waits."""

    def start(self, key: str, request: Request, after_s: float = 0.0, within_s: float = math.inf) -> None:
        """Begin a send after so many seconds, as soon as there is room for it then.

        Its timeouts run from when it really begins. One that cannot begin within `within_s`
        seconds from now is given up. Those that wait for room begin in the order of their moments.
        """
        ...

    def finished(self, timeout_s: float) -> list[Finished]:
        """Wait at most so long for one send to end and give all that have ended."""
        ...

    def __enter__(self) -> Self:
        """Open the outbox."""
        ...

    def __exit__(self, *exc: object) -> None:
        """Cancel what runs and wait until it has stopped."""
        ...


class Sender(Protocol):
    """Sends requests under the address policy and one total deadline each."""

    def outbox(self) -> Outbox:
        """Open a place for the sends of one visit."""
        ...


class Ed25519(Protocol):
    """Signs with key pairs."""

    def public_key(self, seed: bytes) -> bytes:
        """Give the 32 bytes of the public key of a seed of 32 bytes."""
        ...

    def sign(self, seed: bytes, message: bytes) -> bytes:
        """Sign a message: 64 bytes, the same for the same message."""
        ...


class Sealer(Protocol):
    """Wraps and unwraps secrets by the key service."""

    def seal(self, tenant: str, secret: Secret) -> bytes:
        """Encrypt a secret for storing."""
        ...

    def unseal(self, tenant: str, secret: WrappedSecret) -> Secret:
        """Decrypt a stored secret, through a short-lived cache."""
        ...


class Certificates(Protocol):
    """Tries certificates that owners give, before anything is sent with them."""

    def certificate_fault(self, of: ClientCertificate[Secret]) -> str | None:
        """Say what would be right instead of a certificate and key that cannot be used, else None."""
        ...

    def authorities_fault(self, pem: str) -> str | None:
        """Say what would be right instead of certificates that cannot be trusted, else None."""
        ...


@dataclass(frozen=True, slots=True)
class Watched:
    """An endpoint that reconcile looks at, and its gate's own marks (Unix ms and µs)."""

    tenant: str
    endpoint_id: str
    lanes: int
    armed_until_ms: int
    seen_us: int
    gate: Gate
    ordered: bool = False

    @property
    def numbers(self) -> tuple[str, ...]:
        """Number the lanes to look at."""
        return lane_numbers(self.lanes, ordered=self.ordered, replays=self.gate.replays)


class Watching(Protocol):
    """What reconcile walks."""

    def armed(self, begin: float = 0.0) -> Iterable[Watched]:
        """Walk every endpoint that may have work, all the way round from a part of it (0 to 1)."""
        ...

    def disarm(self, watched: Watched, before_ms: int) -> bool:
        """Stop walking an endpoint whose mark is older than a moment; False when it was set again."""
        ...
