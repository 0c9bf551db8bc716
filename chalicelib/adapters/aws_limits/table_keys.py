"""Key schemas of tables: what a client has learned, what is assumed otherwise, and rules for key values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chalicelib.adapters.aws_limits.dynamodb_values import canonical, type_of, value_size
from chalicelib.adapters.aws_limits.refusal import check_bytes, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from chalicelib.adapters.aws_limits.dynamodb_values import AttributeValue, Item
    from chalicelib.adapters.aws_limits.refusal import Params

    Identity = frozenset[tuple[str, tuple[str, object]]]

HASH_LONGEST_BYTES = 2_048
RANGE_LONGEST_BYTES = 1_024
_KEY_TYPES = frozenset({"S", "N", "B"})
_EMPTIABLE = frozenset({"S", "B"})


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The key attributes of one table.

    `types` holds the types that are known, `index_keys` those of its indexes by their longest bytes, and
    `certain` is False for a table that nobody has described.
    """

    hash_key: str = "pk"
    range_key: str | None = "sk"
    types: Mapping[str, str] = field(default_factory=dict)
    index_keys: Mapping[str, int] = field(default_factory=dict)
    global_indexes: frozenset[str] = frozenset()
    ttl: str = "ttl"
    certain: bool = True

    @property
    def primary(self) -> tuple[str, ...]:
        """The names of the table's own key attributes."""
        return (self.hash_key,) if self.range_key is None else (self.hash_key, self.range_key)

    def longest(self, name: str) -> int:
        """Return the most bytes that a value of this key attribute may take."""
        return RANGE_LONGEST_BYTES if name == self.range_key else HASH_LONGEST_BYTES

    def identity(self, attributes: Item) -> Identity | None:
        """Return what tells this item from others in its table, or None when its keys are not known."""
        names = [name for name in self.primary if name in attributes]
        if self.hash_key not in names:
            return None
        return frozenset((name, canonical(attributes[name])) for name in names)


ASSUMED = TableKeys(certain=False)


class KnownTables:
    """The key schemas that have been told or learned; may be shared by clients and threads."""

    def __init__(self, tables: Mapping[str, TableKeys] | None = None) -> None:
        """Begin with the tables given, by full name."""
        self._tables = dict(tables or {})
        self._ttl: dict[str, str] = {}

    def of(self, table: str) -> TableKeys:
        """Return the keys of a table by name or ARN; assumed to be `pk` and perhaps `sk` when never seen."""
        return self._tables.get(table.rpartition("/")[2], ASSUMED)

    def ttl_of(self, table: str) -> str:
        """Return the attribute that lets items of the table expire."""
        return self._ttl.get(table.rpartition("/")[2], self.of(table).ttl)

    def learn_ttl(self, table: str, attribute: str) -> None:
        """Remember the attribute that lets items of a table expire."""
        self._ttl[table.rpartition("/")[2]] = attribute

    def learn_from_answer(self, parsed: Mapping[str, Any], **_: object) -> None:
        """Remember a table from the answer to CreateTable or DescribeTable."""
        described = parsed.get("TableDescription") or parsed.get("Table")
        if described and "KeySchema" in described:
            self._tables[described["TableName"]] = _keys_of(described)


def _keys_of(described: Params) -> TableKeys:
    global_indexes = described.get("GlobalSecondaryIndexes") or []
    indexes = [*global_indexes, *(described.get("LocalSecondaryIndexes") or [])]
    roles = _roles(described["KeySchema"])
    return TableKeys(
        hash_key=roles["HASH"],
        range_key=roles.get("RANGE"),
        types={
            entry["AttributeName"]: entry["AttributeType"]
            for entry in described.get("AttributeDefinitions", [])
        },
        index_keys=_index_keys(indexes, roles.values()),
        global_indexes=frozenset(index["IndexName"] for index in global_indexes),
    )


def _roles(key_schema: Iterable[Params]) -> dict[str, str]:
    return {entry["KeyType"]: entry["AttributeName"] for entry in key_schema}


def _index_keys(indexes: Iterable[Params], primary: Iterable[str]) -> dict[str, int]:
    own = set(primary)
    return {
        entry["AttributeName"]: HASH_LONGEST_BYTES if entry["KeyType"] == "HASH" else RANGE_LONGEST_BYTES
        for index in indexes
        for entry in index["KeySchema"]
        if entry["AttributeName"] not in own
    }


def check_key(keys: TableKeys, key: Item, where: str) -> None:
    """Refuse a Key that is not exactly the table's key attributes, or has a bad value."""
    if keys.certain and set(key) != set(keys.primary):
        refuse(where, f"must be exactly {' and '.join(keys.primary)}")
    for name, value in key.items():
        check_key_value(keys, name, value, f"{where}.{name}")


def check_item_keys(keys: TableKeys, item: Item, where: str) -> None:
    """Refuse an item that lacks a key attribute, or whose key or index attributes have a bad value."""
    for name in keys.primary:
        if name in item:
            check_key_value(keys, name, item[name], f"{where}.{name}")
        elif keys.certain:
            refuse(where, f"lacks the key attribute {name}")
    for name in keys.index_keys:
        if name in item:
            check_index_value(keys, name, item[name], f"{where}.{name}")


def check_key_value(keys: TableKeys, name: str, value: AttributeValue, where: str) -> None:
    """Refuse a key value that is empty, too long or of the wrong type."""
    _check_key_scalar(value, keys.types.get(name), where)
    check_bytes(value_size(value), keys.longest(name), where)


def check_index_value(keys: TableKeys, name: str, value: AttributeValue, where: str) -> None:
    """Refuse a value of an index's key attribute that is empty, too long or of the wrong type."""
    _check_key_scalar(value, keys.types.get(name), where)
    check_bytes(value_size(value), keys.index_keys[name], where)


def _check_key_scalar(value: AttributeValue, expected: str | None, where: str) -> None:
    kind = type_of(value)
    if kind not in _KEY_TYPES or (expected is not None and kind != expected):
        refuse(where, f"a key attribute must be {expected or 'S, N or B'}, is {kind}")
    if kind in _EMPTIABLE and not value[kind]:
        refuse(where, "a key attribute must not be empty")
