"""What an update may not do, however it is written: to keys, to overlapping paths, to expiry, to sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.dynamodb_values import ITEM_LARGEST_BYTES, item_size, type_of, value_size
from chalicelib.adapters.aws_limits.nodes import Call, Value
from chalicelib.adapters.aws_limits.refusal import check_bytes, refuse, utf8_bytes
from chalicelib.adapters.aws_limits.table_keys import check_index_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chalicelib.adapters.aws_limits.dynamodb_values import AttributeValue, Item
    from chalicelib.adapters.aws_limits.nodes import Assignment, Change, Path
    from chalicelib.adapters.aws_limits.table_keys import TableKeys


def check_change(change: Change, keys: TableKeys, ttl: str, where: str) -> None:
    """Refuse changes of key attributes, overlapping paths, and values that index or expiry cannot take."""
    for path in change.paths:
        if path.root in keys.primary:
            refuse(where, f"{path.root} is part of the key and cannot be changed")
    check_apart(change.paths, where)
    for path, content in _plain_values(change):
        if path.parts == (ttl,):
            check_expiry(content, where, ttl)
        if path.root in keys.index_keys and len(path.parts) == 1:
            check_index_value(keys, path.root, content, where)


def check_expiry(content: AttributeValue, where: str, ttl: str) -> None:
    """Refuse an expiry that is no number: AWS would take the item and never expire it."""
    if type_of(content) != "N":
        refuse(where, f"{ttl} tells when the item expires and must be a number, is {type_of(content)}")


def check_apart(paths: Sequence[Path], where: str) -> None:
    """Refuse paths of which one lies on the other, or that take one attribute for both a map and a list."""
    for place, first in enumerate(paths):
        for second in paths[place + 1 :]:
            _check_pair(first, second, where)


def _check_pair(first: Path, second: Path, where: str) -> None:
    for one, other in zip(first.parts, second.parts, strict=False):
        if isinstance(one, int) is not isinstance(other, int):
            refuse(where, f"the paths {first} and {second} conflict")
        if one != other:
            return
    refuse(where, f"the paths {first} and {second} overlap")


def check_change_size(change: Change, key: Item, where: str) -> int:
    """Refuse an update that alone makes its item larger than 400 KB; return the bytes it surely writes."""
    size = item_size(key)
    for path, content in _set_values(change):
        size += utf8_bytes(path.root) * (len(path.parts) == 1) + value_size(content)
    check_bytes(size, ITEM_LARGEST_BYTES, where)
    return size


def check_written_size(change: Change, where: str) -> None:
    """Refuse an UpdateItem that writes more than 400 KB as that call alone counts it.

    Most regions add 3 bytes for the call, 19 for each value set and 1 for each path removed, and leave out
    what is not changed; the whole item must fit all the same.
    """
    size = 3 + sum(1 + _target_size(path) for path in change.removed)
    size += sum(19 + _target_size(path) + value_size(content) for path, content in _set_values(change))
    check_bytes(size, ITEM_LARGEST_BYTES, where)


def _set_values(change: Change) -> Iterator[tuple[Path, AttributeValue]]:
    for assignment in change.assigned:
        if isinstance(assignment.value, Value):
            yield assignment.path, assignment.value.content


def _target_size(path: Path) -> int:
    return utf8_bytes(path.root) + sum(4 + utf8_bytes(str(part)) for part in path.parts[1:])


def _plain_values(change: Change) -> Iterator[tuple[Path, AttributeValue]]:
    for assignment in change.assigned:
        content = _plain_value(assignment)
        if content is not None:
            yield assignment.path, content
    for path, value in change.added:
        yield path, value.content


def _plain_value(assignment: Assignment) -> AttributeValue | None:
    value = assignment.value
    if isinstance(value, Call) and value.function == "if_not_exists":
        value = value.arguments[1]
    return value.content if isinstance(value, Value) else None
