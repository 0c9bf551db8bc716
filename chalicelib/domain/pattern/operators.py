"""The operators of a pattern, as values that say whether they take a value that an event has."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Protocol

ADDRESS_MAX = 45
"""Characters of the longest IPv6 address."""
_ADDRESSES_READ = 10_000
"""More than one pattern looks at of an event: each address is read once, however many blocks ask."""


class Operator(Protocol):
    """One thing that a value may be."""

    def takes(self, value: object) -> bool:
        """Say whether this is so of a value: a text, a number, True, False or None."""
        ...


@dataclass(frozen=True, slots=True)
class Equal:
    """One of several texts or numbers."""

    values: frozenset[object]

    def takes(self, value: object) -> bool:
        """Say whether the value is one of them."""
        return not isinstance(value, bool) and value in self.values


@dataclass(frozen=True, slots=True)
class Word:
    """`true`, `false` or `null`, which equal nothing else."""

    word: bool | None

    def takes(self, value: object) -> bool:
        """Say whether the value is this word."""
        return value is self.word


@dataclass(frozen=True, slots=True)
class Anything:
    """Whatever is there, `null` too."""

    def takes(self, value: object) -> bool:  # noqa: ARG002 - any value is one
        """Say yes."""
        return True


@dataclass(frozen=True, slots=True)
class Affix:
    """A text that begins, or ends, in a certain way, perhaps whatever its case."""

    text: str
    at_start: bool
    any_case: bool = False

    def takes(self, value: object) -> bool:
        """Say whether the value is such a text."""
        if not isinstance(value, str):
            return False
        text = value.casefold() if self.any_case else value
        return text.startswith(self.text) if self.at_start else text.endswith(self.text)


@dataclass(frozen=True, slots=True)
class SameText:
    """A text, whatever its case; `folded` is it without."""

    folded: str

    def takes(self, value: object) -> bool:
        """Say whether the value is this text in any case."""
        return isinstance(value, str) and value.casefold() == self.folded


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A text made of pieces in their order, with anything between two of them.

    The leftmost place of each piece is good enough for all that come after it, so nothing is tried twice.
    """

    pieces: tuple[str, ...]

    def takes(self, value: object) -> bool:
        """Say whether the value is such a text."""
        if not isinstance(value, str):
            return False
        if len(self.pieces) == 1:
            return value == self.pieces[0]
        first, *between, last = self.pieces
        end = len(value) - len(last)
        if len(first) > end or not value.startswith(first) or not value.endswith(last):
            return False
        at = len(first)
        for piece in between:
            at = value.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range of numbers, which belongs to it or not."""

    number: Decimal
    included: bool


@dataclass(frozen=True, slots=True)
class Range:
    """A number between two bounds, or beyond one."""

    low: Bound | None = None
    high: Bound | None = None

    def takes(self, value: object) -> bool:
        """Say whether the value is such a number."""
        return isinstance(value, Decimal) and self._above(value) and self._below(value)

    def _above(self, value: Decimal) -> bool:
        low = self.low
        return low is None or value > low.number or (low.included and value == low.number)

    def _below(self, value: Decimal) -> bool:
        high = self.high
        return high is None or value < high.number or (high.included and value == high.number)


@dataclass(frozen=True, slots=True)
class Within:
    """The text of an IP address in a block of addresses."""

    network: IPv4Network | IPv6Network

    def takes(self, value: object) -> bool:
        """Say whether the value is such an address."""
        address = address_of(value) if isinstance(value, str) else None
        return address is not None and address in self.network


@dataclass(frozen=True, slots=True)
class NoneOf:
    """Any value that is there, but for those that one of some operators takes."""

    operators: Sequence[Operator]

    def takes(self, value: object) -> bool:
        """Say whether none of the operators takes the value."""
        return not any(each.takes(value) for each in self.operators)


def cost_of(operator: Operator) -> int:
    """Count the comparisons that an operator may take for one value."""
    return len(operator.operators) if isinstance(operator, NoneOf) else 1


def address_of(text: str) -> IPv4Address | IPv6Address | None:
    """Read an IP address in its plain spelling, without zone."""
    return _read_address(text) if len(text) <= ADDRESS_MAX and "%" not in text else None


@lru_cache(_ADDRESSES_READ)
def _read_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
