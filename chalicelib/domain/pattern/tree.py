"""A compiled pattern: the fields it asks about as a tree, and which of its alternatives each question is of.

`$or` makes alternatives, at most a thousand, one bit each. Walking the event once answers for all of them:
what a place of the event says is the set of alternatives for which all holds that they ask from there on.

Questions about one list of objects are answered by one and the same object of it, as in EventBridge. A
question that only asks for absence is no exception where a value is asked for beside it; where none is, no
object of the list may have what has to be absent. So each answer is in two parts: the alternatives that
hold with a value found, and those for which all that was asked for is absent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chalicelib.domain.pattern.operators import Operator
from chalicelib.domain.pattern.values import NOTHING, Nothing, elements

VALUES_MAX = 5_000
"""Values of one event that one pattern looks at."""


class _TooMany(Exception):  # noqa: N818 - no error: it ends the walk
    """The event has more values in the pattern's fields than are looked at."""


class _Answer(NamedTuple):
    found: int
    absent: int


@dataclass(frozen=True, slots=True)
class Question:
    """What one field has to be: taken by one of the operators, or, if that is allowed, not there."""

    operators: Sequence[Operator]
    absence: bool = False

    def answer(self, value: object) -> _Answer:
        """Answer for one value, in bits of one: whether it is taken, and whether its absence is."""
        if value is NOTHING:
            return _Answer(0, int(self.absence))
        return _Answer(int(any(each.takes(value) for each in self.operators)), 0)


@dataclass(slots=True)
class Node:
    """A field: the questions about it, each with the alternatives (bits) that ask it, and fields within."""

    questions: list[tuple[Question, int]] = field(default_factory=list)
    fields: dict[str, "Node"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that can be held to events; `everyone` has the bit of each alternative."""

    root: Node
    everyone: int

    def matches(self, members: Mapping[str, Any]) -> bool:
        """Say whether an event's members, as `members_of` reads them, are as the pattern wants them.

        An event with more than `VALUES_MAX` values in its fields is too large to be told apart; it matches,
        as a delivery too many does less harm than one that is missing.
        """
        try:
            answer = _Walk(self.everyone).of_element(self.root, members)
        except _TooMany:
            return True
        return bool(answer.found | answer.absent)


@dataclass(slots=True)
class _Walk:
    """One walk through an event."""

    everyone: int
    seen: int = 0

    def of_value(self, node: Node, value: object) -> _Answer:
        """Answer for what a field holds: any element of a list may have a thing, but all have to lack one."""
        found, absent, empty = 0, self.everyone, True
        for element in elements(value):
            empty = False
            answer = self.of_element(node, element)
            found |= answer.found
            absent &= answer.absent
            if found == self.everyone:
                break
        return self.of_element(node, NOTHING) if empty else _Answer(found, absent)

    def of_element(self, node: Node, element: object) -> _Answer:
        """Answer for one value or object."""
        self.seen += 1
        if self.seen > VALUES_MAX:
            raise _TooMany
        found, held = 0, self.everyone
        members: Mapping[str, Any] = element if isinstance(element, dict) else {}
        for answer, asking in self._answers(node, element, members):
            held &= answer.found | answer.absent | ~asking
            found |= answer.found
            if not held:
                break
        return _Answer(held & found, held & ~found)

    def _answers(
        self, node: Node, element: object, members: Mapping[str, Any]
    ) -> Iterator[tuple[_Answer, int]]:
        value: object | Nothing = NOTHING if isinstance(element, dict) else element
        for question, asking in node.questions:
            answer = question.answer(value)
            yield _Answer(answer.found * asking, answer.absent * asking), asking
        for name, child in node.fields.items():
            yield self.of_value(child, members.get(name, NOTHING)), self.everyone
