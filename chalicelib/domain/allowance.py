"""Allowances: what a tenant or a key may use a second, however many processes serve it.

The bucket of an allowance is one record, and exact. A process takes tokens from it in chunks and spends them
for a moment without asking again; `Pocket` says what it has left and how large the next chunk is. Times are
Unix epoch microseconds. Source: docs/decisions/0013.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chalicelib.domain import bucket as buckets
from chalicelib.domain.bucket import SECOND, Bucket
from chalicelib.domain.change import Change, Op, Record, Test

LAPSE = SECOND
"""How long a process may spend what it took."""
SHARE = 8
"""What part of a second's worth a process takes at most without needing it at once."""
UNCOUNTED = 100_000
"""From so many a second on nothing is counted: it is the most that can be granted of events and requests."""
REST = SECOND // 4
"""How long a process that was refused asks no more."""


def bucket_of(per_second: int) -> Bucket:
    """Make the bucket of an allowance: it holds what a second brings.

    With what processes hold for a second more, at most rate * (T + 2) is used in any T seconds.
    """
    return buckets.bucket_of(per_second, per_second, buckets.FULL)


def capacity(bucket: Bucket) -> int:
    """Count what a bucket holds when it is full."""
    return bucket.ahead // bucket.cost


@dataclass(frozen=True, slots=True)
class Pocket:
    """What a process has of an allowance; `tat` is the bucket's as last seen.

    `taken` is how much the last chunk was, taken at `taken_at`; before `closed_until` asking is in vain.
    """

    tokens: int = 0
    taken: int = 1
    taken_at: int = 0
    tat: int = 0
    closed_until: int = 0

    def left(self, now: int) -> int:
        """Count the tokens that have not lapsed."""
        return self.tokens if now < self.taken_at + LAPSE else 0

    def spent(self, count: int) -> "Pocket":
        """Give what is left after spending tokens that were there."""
        return replace(self, tokens=self.tokens - count)

    def next_chunk(self, bucket: Bucket, now: int) -> int:
        """Say how much to take next: twice the last chunk if that did not last, else what was used of it."""
        most = max(1, SECOND // (bucket.cost * SHARE))
        wanted = 2 * self.taken if now < self.taken_at + LAPSE else self.taken - self.tokens
        return max(1, min(wanted, most))

    def seen(self, bucket: Bucket, tat: int, now: int) -> "Pocket":
        """Give it as it is once the bucket was seen.

        When nothing is left in that, it asks again when there can be some, after a rest; within a second in
        any case, as what is owed may become less.
        """
        if bucket.tokens(tat, now):
            return replace(self, tat=tat)
        again = min(max(bucket.refilled(tat), now + REST), now + SECOND)
        return replace(self, tat=tat, closed_until=again)

    def filled(self, count: int, now: int) -> "Pocket":
        """Give what there is after a chunk was taken; tokens that were there lapse when they would have."""
        left = self.left(now)
        since = self.taken_at if left else now
        return replace(self, tokens=left + count, taken=count, taken_at=since)


def retry_after_s(bucket: Bucket, tat: int, now: int, count: int = 1) -> int:
    """Say after how many whole seconds so many tokens are there if nobody else takes any; at least 1.

    Of more than the bucket holds, as many as it holds.
    """
    wait = bucket.refilled(tat, min(count, capacity(bucket))) - now
    return max(1, -(-wait // SECOND))


def new_record(bucket: Bucket, now: int, count: int) -> Record:
    """Write the bucket of an allowance that was full, with so many tokens taken out."""
    return {"tat": now + count * bucket.cost, "cost": bucket.cost}


def take(bucket: Bucket, tat: int, now: int, count: int) -> Change:
    """Take tokens out of a bucket as last seen, if they are there."""
    spend = bucket.spend(tat, now, count)
    return replace(spend, sets={**spend.sets, "cost": bucket.cost})


def reserve(bucket: Bucket, record: Record, now: int, count: int) -> Change:
    """Take tokens out of a bucket as last seen whether they are there or not: what is missing is owed.

    What is owed at another rate is owed at this one from now on.
    """
    same, price = Test("cost", Op.EQ, record["cost"]), count * bucket.cost
    tat = record["tat"]
    if record["cost"] != bucket.cost:
        moved = max(now, repriced(tat, record["cost"], bucket.cost, now)) + price
        return Change((same, Test("tat", Op.EQ, tat)), {"tat": moved, "cost": bucket.cost}, {})
    if tat <= now:
        return Change((same, Test("tat", Op.LE, now)), {"tat": now + price}, {})
    return Change((same, Test("tat", Op.GT, now)), {}, {"tat": price})


def repriced(moment: int, old_cost: int, cost: int, now: int) -> int:
    """Move a moment to come to where it is at another cost a token; one that has passed stays."""
    return moment if moment <= now else now + (moment - now) * cost // old_cost


@dataclass(frozen=True, slots=True)
class Pace:
    """So many deliveries, paid for in a tenant's fan-out budget, that may be made from a moment (Unix ms) on.

    `cost` is what the budget of then took for each (µs); under a larger one they may go earlier.
    """

    paid: int = 0
    due_ms: int = 0
    cost: int = 0

    def under(self, bucket: Bucket, now: int) -> "Pace":
        """Give it under the budget as it is now; what was promised under a larger one stays promised."""
        if bucket.cost >= self.cost:
            return self
        due = repriced(self.due_ms * 1000, self.cost, bucket.cost, now)
        return replace(self, due_ms=-(-due // 1000), cost=bucket.cost)

    def of(self, paid: int) -> "Pace":
        """Give the moment for so many."""
        return replace(self, paid=paid)

    def less(self, count: int) -> "Pace":
        """Give what is paid for and left after so many deliveries."""
        return replace(self, paid=self.paid - count)


UNPACED = Pace()


def paces(bucket: Bucket, tat: int, counts: Sequence[int]) -> Iterator[Pace]:
    """Say when each of what was reserved together, so many in turn, may be made; tat is as it is then."""
    behind = sum(counts)
    for count in counts:
        behind -= count
        moment = bucket.refilled(tat - behind * bucket.cost, 0) if count else 0
        yield Pace(count, max(0, -(-moment // 1000)), bucket.cost)
