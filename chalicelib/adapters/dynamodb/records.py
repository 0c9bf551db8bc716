"""What the stores need of a table service, as values and one protocol.

`DynamoTables` implements it with boto3, the tests' `MemoryTables` in a dictionary; both pass the
same contract suite.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

from chalicelib.domain.change import Change, Record, Test


class Key(NamedTuple):
    """Where a record is: table (without prefix), partition key, and sort key where the table has one."""

    table: str
    pk: str
    sk: str = ""

    @property
    def parts(self) -> dict[str, str]:
        """Give the key's attributes."""
        return {"pk": self.pk, "sk": self.sk} if self.sk else {"pk": self.pk}

    @classmethod
    def of(cls, table: str, record: Record) -> Self:
        """Say where a record of a table was read."""
        return cls(table, record["pk"], record.get("sk", ""))


@dataclass(frozen=True, slots=True)
class Insert:
    """Write a record that must not be there yet."""

    key: Key
    record: Record


@dataclass(frozen=True, slots=True)
class Put:
    """Write a record over what is there, if the tests hold for that."""

    key: Key
    record: Record
    tests: tuple[Test, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a record, if the tests hold for it; without tests a missing one is no error."""

    key: Key
    tests: tuple[Test, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """Change a record that must be there, if the change's tests hold."""

    key: Key
    change: Change


@dataclass(frozen=True, slots=True)
class Merge:
    """Set and remove attributes of a record, which is made when it is not there."""

    key: Key
    sets: Mapping[str, Any]
    removes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Count:
    """A change to a record beside other writes, which it never holds up; nothing is brought back.

    Whatever kept it from being made, the answer is that it was not; with the record if its tests failed.
    """

    key: Key
    change: Change


@dataclass(frozen=True, slots=True)
class Check:
    """Hold a record to tests as the other writes of its transaction are made; it stays as it is."""

    key: Key
    tests: tuple[Test, ...]


Statement = Insert | Delete | Update | Count
Write = Insert | Put | Delete | Update | Merge | Check


@dataclass(frozen=True, slots=True)
class Made:
    """Whether a write was made; for updates the record as it then is, else the one in the way."""

    done: bool
    record: Record | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records of one partition in sort order; `more` says that the limit cut them off."""

    records: tuple[Record, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Glance:
    """What a partition holds, seen in passing: its first record's sort key and some of its attributes.

    `more` says that there are more records than were counted.
    """

    first: Record | None
    count: int
    more: bool


@dataclass(frozen=True, slots=True)
class Span:
    """Which sort keys of a partition, both ends included, and whether the last come first."""

    low: str = " "
    high: str = "~"
    backwards: bool = False


class Tables(Protocol):
    """A table service. Every read but a glance and an index is strongly consistent.

    Failures are raised as `Unavailable`.
    """

    def get(self, keys: Sequence[Key]) -> dict[Key, Record]:
        """Read records by key, in one call per hundred; missing ones are left out."""
        ...

    def query(self, table: str, pk: str, span: Span, limit: int) -> Stretch:
        """Read at most `limit` records of one partition."""
        ...

    def glance(self, table: str, pk: str, names: Sequence[str], most: int) -> Glance:
        """Count at most so many records of one partition, and read some attributes of its first."""
        ...

    def each(self, writes: Sequence[Statement]) -> list[Made]:
        """Make writes that have nothing to do with one another, in one call per 25."""
        ...

    def together(self, writes: Sequence[Write]) -> list[int]:
        """Make at most 100 writes, all or none; the places of those that stood in the way."""
        ...

    def walk(self, table: str) -> Iterator[Record]:
        """Read a whole table, page by page, in no order."""
        ...

    def browse(self, table: str, after: Key | None, limit: int) -> Stretch:
        """Read at most `limit` records of a whole table after a key, in an order that is the store's own.

        The last record's key continues it; that record may be gone by then.
        """
        ...

    def indexed(self, table: str, index: str, value: str) -> Iterator[Record]:
        """Read the keys an index holds under a value, page by page; eventually consistent."""
        ...
