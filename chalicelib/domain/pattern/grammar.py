"""How a pattern is written: read into a tree of questions, or refused with the place of the fault in it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from chalicelib.domain.pattern import operands, operators
from chalicelib.domain.pattern.operators import Equal, Operator, Word
from chalicelib.domain.pattern.place import FIELD, element, member, refuse
from chalicelib.domain.pattern.tree import Node, Pattern, Question
from chalicelib.domain.pattern.values import DECODER, is_number

PATTERN_MAX = 2_048
"""Bytes of a filter, written without spaces."""
LEVELS_MAX = 20
OPERATORS_MAX = 100
ALTERNATIVES_MAX = 1_000
"""What `$or` may multiply to, as on AWS."""
MARK_LENGTH = 16

OR = "$or"
_RESERVED = frozenset(
    (
        "anything-but cidr equals-ignore-case exactly exists numeric prefix suffix wildcard = < <= > >= regex"
        " not-wildcard not-equals-ignore-case date-after date-on-or-after date-before date-on-or-before"
        " in-date-range ip-address-in-range ip-address-not-in-range"
    ).split()
)
"""Names that AWS keeps for operators within `$or`, there already or yet to come."""


def admitted(filter_: Mapping[str, Any]) -> str:
    """Give a filter as it is kept: JSON without spaces. Raises RelayError for one that is no pattern."""
    text = json.dumps(filter_, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        refuse(FIELD, "The filter has half a surrogate pair in it.", "text without half surrogate pairs")
    if size > PATTERN_MAX:
        refuse(FIELD, f"The filter has {size} bytes.", f"at most {PATTERN_MAX} bytes of JSON without spaces")
    compiled(text)
    return text


def written(text: str) -> dict[str, Any] | None:
    """Give a filter back as its owner wrote it; None for none."""
    return dict(json.loads(text)) if text else None


def compiled(text: str) -> Pattern:
    """Compile a filter as it is kept; raises RelayError."""
    all_of = _Reader().read_object(DECODER.decode(text), FIELD, ())
    if (count := all_of.count()) > ALTERNATIVES_MAX:
        refuse(FIELD, f"`$or` makes {count} combinations.", f"at most {ALTERNATIVES_MAX} combinations")
    return _planted(list(all_of.alternatives()))


def mark(text: str) -> str:
    """Give the mark of a filter as it is kept: another filter of the same endpoint has another."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:MARK_LENGTH]


@dataclass(frozen=True, slots=True)
class _Leaf:
    path: tuple[str, ...]
    place: str
    question: Question = field(compare=False)


@dataclass(slots=True)
class _AllOf:
    """What has to hold at once: leaves, and one branch of each `$or`."""

    leaves: list[_Leaf] = field(default_factory=list)
    choices: list[list["_AllOf"]] = field(default_factory=list)

    def count(self) -> int:
        """Count the alternatives without making them."""
        return prod(sum(branch.count() for branch in branches) for branches in self.choices)

    def alternatives(self) -> Iterator[tuple[_Leaf, ...]]:
        """Give the leaves of each alternative."""
        each_of = [[one for branch in branches for one in branch.alternatives()] for branches in self.choices]
        for chosen in product(*each_of):
            yield (*self.leaves, *(leaf for leaves in chosen for leaf in leaves))


@dataclass(slots=True)
class _Reader:
    """Reads one pattern, and counts what has a bound."""

    operators: int = 0

    def read_object(
        self, value: object, place: str, path: tuple[str, ...], *, levels: int = 1, in_or: bool = False
    ) -> _AllOf:
        """Read an object of fields."""
        if not isinstance(value, dict) or not value:
            refuse(place, "Here stands no object with fields.", "an object with at least one field")
        if levels > LEVELS_MAX:
            refuse(place, "The filter is nested too deep.", f"at most {LEVELS_MAX} levels of objects")
        found = _AllOf()
        for name, inner in value.items():
            at = member(place, name)
            if name == OR:
                found.choices.append(self._branches(inner, at, path, levels + 1))
            elif in_or and name in _RESERVED:
                refuse(at, f"`{name}` stands for an operator within `$or`.", "the name of a field")
            elif isinstance(inner, list):
                found.leaves.append(_Leaf((*path, name), at, self._question(inner, at)))
            elif isinstance(inner, dict):
                deeper = self.read_object(inner, at, (*path, name), levels=levels + 1, in_or=in_or)
                found.leaves += deeper.leaves
                found.choices += deeper.choices
            else:
                refuse(at, "A field's value stands alone.", "a list of values, or an object of fields")
        return found

    def _branches(self, value: object, place: str, path: tuple[str, ...], levels: int) -> list[_AllOf]:
        if not isinstance(value, list) or len(value) < 2:  # noqa: PLR2004 - one choice is none
            refuse(place, "`$or` has no choice.", "a list of at least two objects")
        return [
            self.read_object(each, element(place, number), path, levels=levels, in_or=True)
            for number, each in enumerate(value)
        ]

    def _question(self, values: list[Any], place: str) -> Question:
        if not values:
            refuse(place, "The list is empty.", "at least one value")
        self.operators += len(values)
        if self.operators > OPERATORS_MAX:
            refuse(place, "The filter has too many values.", f"at most {OPERATORS_MAX} in all lists together")
        absence = False
        plain: list[object] = []
        found: list[Operator] = []
        for number, value in enumerate(values):
            at = element(place, number)
            if isinstance(value, dict):
                operator = operands.operator_of(value, at)
                absence = absence or operator is None
                found += [operator] if operator is not None else []
            elif value is None or isinstance(value, bool):
                found.append(Word(value))
            else:
                plain.append(_plain(value, at))
        all_of = (*([Equal(frozenset(plain))] if plain else []), *found)
        return Question(all_of, absence, sum(map(operators.cost_of, all_of)))


def _plain(value: object, place: str) -> object:
    if is_number(value):
        return operands.number_of(value, place)
    if not isinstance(value, str):
        refuse(place, "A list stands in a list.", "text, a number, true, false, null, or an operator")
    return value


def _planted(alternatives: list[tuple[_Leaf, ...]]) -> Pattern:
    """Make the tree: each leaf once, with a bit for each alternative that it belongs to."""
    asking: dict[_Leaf, int] = {}
    for number, leaves in enumerate(alternatives):
        seen: set[tuple[str, ...]] = set()
        for leaf in leaves:
            if leaf.path in seen:
                refuse(leaf.place, "This field is asked about twice.", "each field once in one combination")
            seen.add(leaf.path)
            asking[leaf] = asking.get(leaf, 0) | 1 << number
    root = Node()
    for leaf, bits in asking.items():
        node = root
        for name in leaf.path:
            node = node.fields.setdefault(name, Node())
        node.questions.append((leaf.question, bits))
    return Pattern(root, (1 << len(alternatives)) - 1)
