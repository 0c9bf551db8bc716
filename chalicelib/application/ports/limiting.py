"""What holding callers to their allowances needs of the world."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from chalicelib.domain.bucket import Bucket


class Allowance(NamedTuple):
    """Which allowance: the tenant's, and of what: its events, its fan-out, or the requests of a key."""

    tenant: str
    what: str


EVENTS, FAN_OUT = "events", "fan-out"


def requests_of(key_id: str) -> str:
    """Name what the requests of a key are an allowance of."""
    return f"key-{key_id}"


@dataclass(frozen=True, slots=True)
class Wish:
    """So many tokens of an allowance, at most; `tat` is its bucket's as last seen, 0 when never."""

    of: Allowance
    bucket: Bucket
    count: int
    tat: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """How many tokens were taken, and the bucket's tat as it is then."""

    count: int
    tat: int


class Allowances(Protocol):
    """Keeps the buckets; each token is given out once, however many ask."""

    def take(self, wishes: Sequence[Wish], now: int) -> list[Taken]:
        """Take of each what is there and wished for, in one call as a rule; at a Unix microsecond."""
        ...

    def reserve(self, wish: Wish, now: int) -> int:
        """Take all that is wished for, there or not, and give the bucket's tat as it is then."""
        ...
