"""What each operator of a pattern may be applied to."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from ipaddress import ip_network
from typing import Any

from chalicelib.domain.pattern.operators import (
    Affix,
    Anything,
    Bound,
    Equal,
    NoneOf,
    Operator,
    Range,
    SameText,
    Wildcard,
    Within,
    address_of,
)
from chalicelib.domain.pattern.place import element, member, refuse
from chalicelib.domain.pattern.values import NUMBER_MAX, is_number

_ANY_CASE = "equals-ignore-case"
_RANGE = 'one of ["=", n], ["<", n], ["<=", n], [">", n], [">=", n], or a range such as [">", 0, "<=", 5]'
_WILDCARD = r"text in which no two * follow one another, and \ stands before * or \ only"
_BITS = re.compile(r"[0-9]{1,3}", re.ASCII)
_PIECE = re.compile(r"\\(?:\*|\\)|[^\\]|\\", re.DOTALL)


def operator_of(expression: Mapping[str, Any], place: str) -> Operator | None:
    """Read an operator, such as `{"prefix": "a"}`; None stands for a field that must not be there.

    Raises RelayError.
    """
    known = ", ".join(_READERS)
    if len(expression) != 1:
        refuse(place, "Here stands not one operator.", f"one of: {known}")
    (name,) = expression
    if name not in _READERS:
        refuse(member(place, name), "There is no such operator.", f"one of: {known}")
    return _READERS[name](expression[name], member(place, name))


def number_of(value: object, place: str) -> Decimal:
    """Give a number that can be compared."""
    if not isinstance(value, Decimal):
        refuse(place, "This is no number to compare with.", f"a number of at most {NUMBER_MAX} characters")
    return value


def _exists(value: object, place: str) -> Operator | None:
    if not isinstance(value, bool):
        refuse(place, "`exists` is neither true nor false.", "true or false")
    return Anything() if value else None


def _affix(value: object, place: str, *, at_start: bool) -> Operator:
    if isinstance(value, dict):
        if list(value) != [_ANY_CASE]:
            refuse(place, "This is no text.", f'text, or {{"{_ANY_CASE}": text}}')
        return Affix(_text(value[_ANY_CASE], member(place, _ANY_CASE)).casefold(), at_start, any_case=True)
    return Affix(_text(value, place), at_start)


def _prefix(value: object, place: str) -> Operator:
    return _affix(value, place, at_start=True)


def _suffix(value: object, place: str) -> Operator:
    return _affix(value, place, at_start=False)


def _same_text(value: object, place: str) -> Operator:
    return SameText(_text(value, place).casefold())


def _wildcard(value: object, place: str) -> Operator:
    pieces = [""]
    last = ""
    for piece in _PIECE.findall(_text(value, place)):
        if piece == "\\" or (piece == last == "*"):
            refuse(place, "This is no text with wildcards.", _WILDCARD)
        if piece == "*":
            pieces.append("")
        else:
            pieces[-1] += piece[-1]
        last = piece
    return Wildcard(tuple(pieces))


def _cidr(value: object, place: str) -> Operator:
    address, _, bits = _text(value, place).partition("/")
    read = address_of(address)
    if read is None or not _BITS.fullmatch(bits) or int(bits) > read.max_prefixlen:
        refuse(place, "This is no block of addresses.", "a block such as 10.0.0.0/8 or 2001:db8::/32")
    return Within(ip_network(f"{address}/{int(bits)}", strict=False))


def _numeric(value: object, place: str) -> Operator:
    if not isinstance(value, list) or len(value) not in {2, 4}:
        refuse(place, "This is no comparison of numbers.", _RANGE)
    for number, sign in enumerate(value[::2]):
        allowed = ("=", "<", "<=", ">", ">=") if len(value) == 2 else ((">", ">="), ("<", "<="))[number]  # noqa: PLR2004 - sign and number
        if sign not in allowed:
            refuse(element(place, 2 * number), "This is no comparison that may stand here.", _RANGE)
    numbers = [number_of(each, element(place, 2 * at + 1)) for at, each in enumerate(value[1::2])]
    if len(numbers) > 1 and numbers[0] >= numbers[1]:
        refuse(element(place, 3), "The range is empty.", "a number above the first")
    return _range(dict(zip(value[::2], numbers, strict=True)))


def _range(numbers: Mapping[str, Decimal]) -> Operator:
    if "=" in numbers:
        return Equal(frozenset([numbers["="]]))
    bounds = {sign[0]: Bound(number, included="=" in sign) for sign, number in numbers.items()}
    return Range(bounds.get(">"), bounds.get("<"))


def _anything_but(value: object, place: str) -> Operator:
    if isinstance(value, dict):
        return _anything_but_such(value, place)
    texts, numbers = (
        [each for each in _listed(value) if kind(each)]
        for kind in (lambda one: isinstance(one, str), is_number)
    )
    if not _listed(value) or len(_listed(value)) not in {len(texts), len(numbers)}:
        refuse(place, "This is nothing to exclude.", _EXCLUDED)
    for number, each in enumerate(numbers):
        number_of(each, element(place, number) if isinstance(value, list) else place)
    return NoneOf((Equal(frozenset(_listed(value))),))


def _anything_but_such(value: Mapping[str, Any], place: str) -> Operator:
    if len(value) != 1 or not set(value) <= _EXCLUDING.keys():
        refuse(place, "This is nothing to exclude.", _EXCLUDED)
    ((name, inner),) = value.items()
    at = member(place, name)
    if not _listed(inner):
        refuse(at, "The list is empty.", "at least one text")
    excluded = []
    for number, each in enumerate(_listed(inner)):
        here = element(at, number) if isinstance(inner, list) else at
        if not _text(each, here) and name in {"prefix", "suffix"}:
            refuse(here, "Every text begins and ends like this.", "text of at least one character")
        excluded.append(_EXCLUDING[name](each, here))
    return NoneOf(tuple(excluded))


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        refuse(place, "This is no text.", "text")
    return value


_EXCLUDING: Mapping[str, Callable[[object, str], Operator]] = {
    "prefix": _prefix,
    "suffix": _suffix,
    _ANY_CASE: _same_text,
    "wildcard": _wildcard,
}
_EXCLUDED = "text, a number, a list of texts, a list of numbers, or an object with one of: " + ", ".join(
    _EXCLUDING
)
_READERS: Mapping[str, Callable[[object, str], Operator | None]] = {
    "anything-but": _anything_but,
    "cidr": _cidr,
    _ANY_CASE: _same_text,
    "exists": _exists,
    "numeric": _numeric,
    "prefix": _prefix,
    "suffix": _suffix,
    "wildcard": _wildcard,
}
