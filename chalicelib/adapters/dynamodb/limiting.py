"""Allowances in DynamoDB: one record a bucket, changed by conditional updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Insert, Made, Tables, Update
from chalicelib.application.ports import Taken, Unavailable, Wish
from chalicelib.domain import allowance

_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class _Asking:
    """A wish on its way; until the store has told, the bucket as last seen may be wrong."""

    wish: Wish
    now: int
    told: bool = False
    missing: bool = False

    @property
    def count(self) -> int:
        """Count what there seems to be; one at least while the store has not told."""
        there = self.wish.bucket.tokens(self.wish.tat, self.now)
        return min(self.wish.count, there if self.told else max(1, there))

    @property
    def write(self) -> Insert | Update:
        """Take what there seems to be."""
        at = keys.allowance(*self.wish.of)
        if self.missing:
            return Insert(at, allowance.new_record(self.wish.bucket, self.now, self.count))
        return Update(at, allowance.take(self.wish.bucket, self.wish.tat, self.now, self.count))

    def heard(self, made: Made) -> "_Asking | Taken":
        """Go on from what the store says: what was taken, that nothing is there, or what to try next."""
        if made.done:
            tat = made.record["tat"] if made.record else self.now + self.count * self.wish.bucket.cost
            return Taken(self.count, tat)
        if made.record is None:
            fresh = replace(self.wish, tat=0)
            return replace(self, wish=fresh, told=False, missing=not self.missing)
        asking = replace(self, wish=replace(self.wish, tat=made.record["tat"]), told=True)
        return asking if asking.count else Taken(0, asking.wish.tat)


class DynamoAllowances:
    """The store of allowances."""

    def __init__(self, tables: Tables) -> None:
        """Write to this table."""
        self._tables = tables

    def take(self, wishes: Sequence[Wish], now: int) -> list[Taken]:
        """Take of each what is there and wished for, in one call as a rule; at a Unix microsecond.

        A bucket that moves faster than it can be asked gives nothing this time: it is being emptied.
        """
        found: list[_Asking | Taken] = [_Asking(wish, now) for wish in wishes]
        for _ in range(_ROUNDS):
            asking = {place: each for place, each in enumerate(found) if isinstance(each, _Asking)}
            if not asking:
                break
            answers = self._tables.each([each.write for each in asking.values()])
            for (place, each), made in zip(asking.items(), answers, strict=True):
                found[place] = each.heard(made)
        return [each if isinstance(each, Taken) else Taken(0, each.wish.tat) for each in found]

    def reserve(self, wish: Wish, now: int) -> int:
        """Take all that is wished for, there or not, and give the bucket's tat as it is then."""
        at = keys.allowance(*wish.of)
        seen: Mapping[str, int] = {"tat": wish.tat, "cost": wish.bucket.cost}
        for _ in range(_ROUNDS):
            (made,) = self._tables.each([Update(at, allowance.reserve(wish.bucket, seen, now, wish.count))])
            if made.done and made.record is not None:
                return int(made.record["tat"])
            if made.record is not None:
                seen = made.record
                continue
            new = allowance.new_record(wish.bucket, now, wish.count)
            (made,) = self._tables.each([Insert(at, new)])
            if made.done:
                return int(new["tat"])
        raise Unavailable("an allowance changed too often")
