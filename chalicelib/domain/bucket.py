"""The rate bucket: an integer theoretical arrival time (GCRA), in microseconds of the Unix epoch.

`tat` runs ahead of now by what has been spent and not yet refilled. Source: DESIGN §3.
"""

from dataclasses import dataclass

from chalicelib.domain.change import Change, Op, Test

SECOND = 1_000_000
FULL = 1_000


@dataclass(frozen=True, slots=True)
class Bucket:
    """What one request costs, and how far tat may run ahead of now; both in microseconds."""

    cost: int
    ahead: int

    def tokens(self, tat: int, now: int, within: int = 0) -> int:
        """Count the requests that may go now, or by the time that so many microseconds have passed."""
        return max(0, now + within + self.ahead - max(tat, now)) // self.cost

    def refilled(self, tat: int, count: int = 1) -> int:
        """Say when so many requests may go at once; more than the bucket holds never may."""
        return tat + count * self.cost - self.ahead

    def spend(self, tat: int, now: int, count: int, within: int = 0) -> Change:
        """Take tokens if they are still there, or will be by the time that so much has passed."""
        price = count * self.cost
        if tat <= now:
            return Change((Test("tat", Op.LE, now),), {"tat": now + price}, {})
        most = now + within + self.ahead - price
        return Change((Test("tat", Op.GT, now), Test("tat", Op.LE, most)), {}, {"tat": price})

    def moments(self, tat: int, count: int) -> tuple[int, ...]:
        """Say when each of the requests last taken may go, the tat after they were taken being known."""
        return tuple(tat - back * self.cost - self.ahead for back in reversed(range(count)))


def bucket_of(rate: int, burst: int, permille: int) -> Bucket:
    """Make the bucket of a rate (requests a second) and burst, at so many thousandths of the rate.

    A lower share makes a request dearer but lets tat run no further ahead: a recovering endpoint
    must not be sent a whole burst at once. One request always fits.
    """
    cost = -(-SECOND * FULL // (rate * permille))
    return Bucket(cost, max(cost, burst * -(-SECOND // rate)))
