"""Which resource a request path belongs to, as API Gateway decides it.

Values to values: nothing here knows HTTP bodies, events or servers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Match:
    """A resource, the methods it takes, and what its placeholders stand for, percent-encoded as sent."""

    resource: str
    methods: tuple[str, ...]
    params: Mapping[str, str]


@dataclass(slots=True)
class _Node:
    literal: "dict[str, _Node]" = field(default_factory=dict)
    placeholder: "tuple[str, _Node] | None" = None
    greedy: "tuple[str, _Node] | None" = None
    resource: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    resource: str
    params: dict[str, str]


class RouteTable:
    """Finds the resource of a path: literal segments win over `{name}`, and that over `{name+}`."""

    def __init__(self, routes: Mapping[str, Iterable[str]]) -> None:
        """Take each resource template with the methods it answers.

        Raises ValueError for what API Gateway would not deploy: two placeholder names in one place.
        """
        self._methods = {resource: tuple(methods) for resource, methods in routes.items()}
        self._root = _Node()
        for resource in routes:
            self._add(resource)

    def match(self, path: str) -> Match | None:
        """Find the resource of a path as it was sent, or None; a trailing slash does not matter."""
        found = _find(self._root, _segments(path))
        return Match(found.resource, self._methods[found.resource], found.params) if found else None

    def _add(self, resource: str) -> None:
        node = self._root
        for segment in _segments(resource):
            node = _child(node, segment)
        node.resource = resource


def _segments(path: str) -> list[str]:
    stripped = path.strip("/")
    return stripped.split("/") if stripped else []


def _child(node: _Node, segment: str) -> _Node:
    if not segment.startswith("{"):
        return node.literal.setdefault(segment, _Node())
    name = segment.strip("{+}")
    if segment.endswith("+}"):
        node.greedy = node.greedy or (name, _Node())
        return _same_name(node.greedy, name)
    node.placeholder = node.placeholder or (name, _Node())
    return _same_name(node.placeholder, name)


def _same_name(placeholder: tuple[str, _Node], name: str) -> _Node:
    known, node = placeholder
    if known != name:
        raise ValueError(
            f"API Gateway takes one placeholder name in one place, not both {{{known}}} and {{{name}}}"
        )
    return node


def _find(node: _Node, rest: Sequence[str]) -> _Found | None:
    if not rest:
        return _Found(node.resource, {}) if node.resource is not None else None
    return _find_literal(node, rest) or _find_placeholder(node, rest) or _find_greedy(node, rest)


def _find_literal(node: _Node, rest: Sequence[str]) -> _Found | None:
    child = node.literal.get(rest[0])
    return _find(child, rest[1:]) if child else None


def _find_placeholder(node: _Node, rest: Sequence[str]) -> _Found | None:
    if node.placeholder is None or not rest[0]:
        return None
    name, child = node.placeholder
    found = _find(child, rest[1:])
    return _Found(found.resource, {name: rest[0], **found.params}) if found else None


def _find_greedy(node: _Node, rest: Sequence[str]) -> _Found | None:
    if node.greedy is None:
        return None
    name, child = node.greedy
    return _Found(child.resource, {name: "/".join(rest)}) if child.resource is not None else None
