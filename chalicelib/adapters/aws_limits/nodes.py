"""What expressions and PartiQL statements mean, once read: operands, conditions and changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chalicelib.adapters.aws_limits.dynamodb_values import AttributeValue


@dataclass(frozen=True, slots=True)
class Path:
    """A document path with its placeholders resolved: names, and list positions as numbers."""

    parts: tuple[str | int, ...]

    @property
    def root(self) -> str:
        """The top-level attribute."""
        return str(self.parts[0])

    def __str__(self) -> str:
        """Write the path as one would in an expression."""
        return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.parts)[1:]


@dataclass(frozen=True, slots=True)
class Value:
    """A value from a placeholder, a parameter or a literal."""

    content: AttributeValue


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments."""

    function: str
    arguments: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """Two operands added or subtracted; only SET knows it."""

    operator: str
    operands: tuple[Operand, Operand]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Operands compared: = <> < <= > >= BETWEEN IN, IS MISSING, IS NULL."""

    operator: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Logic:
    """Conditions joined by AND or OR, or one under NOT."""

    operator: str
    parts: tuple[Condition, ...]


Operand = Path | Value | Call
Condition = Comparison | Logic | Call
Node = Path | Value | Call | Comparison | Logic


@dataclass(frozen=True, slots=True)
class Assignment:
    """A path that is set to something."""

    path: Path
    value: Operand | Sum


@dataclass(frozen=True, slots=True)
class Change:
    """All that an update does: paths set, removed, added to and deleted from."""

    assigned: tuple[Assignment, ...] = ()
    removed: tuple[Path, ...] = ()
    added: tuple[tuple[Path, Value], ...] = ()
    deleted: tuple[tuple[Path, Value], ...] = ()

    @property
    def paths(self) -> list[Path]:
        """Every path that is changed, in the order of SET, REMOVE, ADD, DELETE."""
        return [
            *(assignment.path for assignment in self.assigned),
            *self.removed,
            *(path for path, _ in self.added),
            *(path for path, _ in self.deleted),
        ]


def conjuncts(condition: Condition) -> Iterator[Condition]:
    """Yield the conditions that must all hold, ANDs within ANDs laid flat."""
    if isinstance(condition, Logic) and condition.operator == "AND":
        for part in condition.parts:
            yield from conjuncts(part)
    else:
        yield condition


def children(node: Node) -> tuple[Node, ...]:
    """Return the parts that a condition or operand is made of."""
    match node:
        case Call():
            return node.arguments
        case Comparison():
            return node.operands
        case Logic():
            return node.parts
        case Path() | Value():
            return ()


def every_node(node: Node) -> Iterator[Node]:
    """Yield a condition or operand and all that it is made of."""
    yield node
    for child in children(node):
        yield from every_node(child)


def roots(node: Node) -> Iterator[str]:
    """Yield the top-level attributes that a condition or operand mentions."""
    return (part.root for part in every_node(node) if isinstance(part, Path))


def operators(node: Node) -> int:
    """Count the operators and functions of a condition, as DynamoDB counts them against 300."""
    return sum(_own_operators(part) for part in every_node(node))


def _own_operators(node: Node) -> int:
    if isinstance(node, (Path, Value)):
        return 0
    return max(len(node.parts) - 1, 1) if isinstance(node, Logic) else 1
