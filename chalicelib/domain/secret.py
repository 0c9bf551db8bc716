"""A text that cannot be shown: every signing secret, API key and custom header value in memory is one.

Whoever needs the text itself calls `reveal()`; that call is what a reviewer looks for.
"""

import hmac
from typing import NoReturn, Self

MASK = "********"


class Secret:
    """A text that no printing, formatting, logging, JSON, pickle or `asdict` shows.

    Two are compared in constant time. Not a dataclass: a dataclass can be taken apart field by field.
    """

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """Give the text itself: to be signed with, sent, sealed, or shown once to its owner."""
        return self.__text

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __bool__(self) -> bool:
        return bool(self.__text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self), _bytes(other))

    def __hash__(self) -> int:
        return hash(self.__text)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is not pickled: it would be written as it is")


def _bytes(of: Secret) -> bytes:
    return of.reveal().encode("utf-8", "surrogatepass")
