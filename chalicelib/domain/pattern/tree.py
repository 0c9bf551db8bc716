"""A compiled pattern: the fields it asks about as a tree, and which of its alternatives each question is of.

`$or` makes alternatives, at most a thousand, one bit each. Walking the event once answers for all of them:
what a place of the event says is the set of alternatives for which all holds that they ask from there on.

Questions about one list of objects are answered by one and the same object of it, as in EventBridge. A
question that only asks for absence is no exception where a value is asked for beside it; where none is, no
object of the list may have what has to be absent. So each answer is in two parts: the alternatives that
hold with a value found, and those for which all that was asked for is absent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.domain.pattern.operators import Operator
from chalicelib.domain.pattern.values import NOTHING, elements

VALUES_MAX = 5_000
"""Values of one event that one pattern looks at."""
COMPARED_MAX = 50_000
"""Comparisons of one event with one pattern: ten for each of the most values."""


class _TooMany(Exception):  # noqa: N818 - no error: it ends the walk
    """The event has more values in the pattern's fields than are looked at, or takes too many comparisons."""


_NO_MEMBERS: Mapping[str, Any] = {}

Answer = tuple[int, int]
"""The alternatives that hold with a value found, and those for which all that was asked for is absent."""


@dataclass(frozen=True, slots=True)
class Question:
    """What one field has to be: taken by one of the operators, or, if that is allowed, not there.

    `cost` is how many comparisons a value may take.
    """

    operators: Sequence[Operator]
    absence: bool = False
    cost: int = 1

    def takes(self, value: object) -> bool:
        """Say whether a value that is there is taken."""
        for each in self.operators:  # noqa: SIM110 - a generator would cost what the test does
            if each.takes(value):
                return True
        return False


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

        An event with more than `VALUES_MAX` values in its fields, or that may take more than `COMPARED_MAX`
        comparisons, is too large to be told apart; it matches, as a delivery too many does less
        harm than one that is missing.
        """
        try:
            found, absent = _Walk(self.everyone).of_element(self.root, members)
        except _TooMany:
            return True
        return bool(found | absent)


@dataclass(slots=True)
class _Walk:
    """One walk through an event."""

    everyone: int
    seen: int = 0
    compared: int = 0

    def of_value(self, node: Node, value: object) -> Answer:
        """Answer for what a field holds: any element of a list may have a thing, but all have to lack one."""
        if not isinstance(value, list):
            return self.of_element(node, value)
        found, absent, empty = 0, self.everyone, True
        for element in elements(value):
            empty = False
            found_here, absent_here = self.of_element(node, element)
            found |= found_here
            absent &= absent_here
            if found == self.everyone:
                break
        return self.of_element(node, NOTHING) if empty else (found, absent)

    def of_element(self, node: Node, element: object) -> Answer:
        """Answer for one value or object."""
        self.seen += 1
        if self.seen > VALUES_MAX:
            raise _TooMany
        members: Mapping[str, Any] = element if isinstance(element, dict) else _NO_MEMBERS
        found, held = self._of_questions(node, NOTHING if members is element else element)
        for name, child in node.fields.items():
            if not held:
                return 0, 0
            found_within, absent_within = self.of_value(child, members.get(name, NOTHING))
            found |= found_within
            held &= found_within | absent_within
        return held & found, held & ~found

    def _of_questions(self, node: Node, value: object) -> Answer:
        """Answer what is asked of this very value: the alternatives that take it, and those that hold."""
        found, held = 0, self.everyone
        for question, asking in node.questions:
            if value is NOTHING:
                held &= self.everyone if question.absence else ~asking
                continue
            self.compared += question.cost
            if self.compared > COMPARED_MAX:
                raise _TooMany
            if question.takes(value):
                found |= asking
            else:
                held &= ~asking
        return found, held
