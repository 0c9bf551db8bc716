"""The limiter: holds callers to their allowances, asking the store a few times a second and not every time.

When the store fails, each process holds them to the whole allowance by itself for a while: a limiter that
cannot count must turn nobody away, and what it lets through too much is bounded by the number of processes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from chalicelib.application.ports import Allowance, Allowances, Clock, Taken, Unavailable, Wish
from chalicelib.domain import allowance
from chalicelib.domain.allowance import Pocket
from chalicelib.domain.bucket import SECOND, Bucket

ON_ITS_OWN = 5 * SECOND
_KNOWN_MAX = 10_000
_EMPTY = Pocket()

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Need:
    """So many tokens of an allowance at once, of which there are so many a second."""

    of: Allowance
    per_second: int
    count: int = 1

    @property
    def counted(self) -> bool:
        """Say whether there is any use in counting."""
        return self.per_second < allowance.UNCOUNTED

    @property
    def bucket(self) -> Bucket:
        """Give the bucket of the allowance."""
        return allowance.bucket_of(self.per_second)


@dataclass(frozen=True, slots=True)
class Granted:
    """How many tokens there were, and after how many seconds there can be the rest (0: none is missing)."""

    count: int
    retry_after_s: int = 0


class Limiter:
    """Gives out tokens of one process; threads may share it."""

    def __init__(self, store: Allowances, clock: Clock) -> None:
        """Have nothing yet."""
        self._store = store
        self._clock = clock
        self._own = _OwnAllowances()
        self._alone_until = 0
        self._pockets: dict[tuple[Allowance, int], Pocket] = {}
        self._lock = Lock()

    def take(self, need: Need, ahead: Sequence[Need] = ()) -> Granted:
        """Take what there is of a need.

        What is `ahead` will be needed in a moment: when the store is asked anyway, it is asked for that too.
        """
        if not need.counted:
            return Granted(need.count)
        now = self._clock.now_us()
        with self._lock:
            had = self._spend(need, need.count, now)
            missing = need.count - had
            wishes = self._wishes([need, *ahead], missing, now) if missing else {}
        if wishes and need in wishes:
            self._fill(wishes, now)
            with self._lock:
                had += self._spend(need, missing, now)
        return self._granted(need, had, now)

    def reserve(self, need: Need) -> int:
        """Take all of a need whether it is there or not; the bucket's tat (Unix µs) as it is then."""
        if not need.counted:
            return 0
        now = self._clock.now_us()
        with self._lock:
            seen = self._pocket(need).tat
        wish = Wish(need.of, need.bucket, need.count, seen)
        tat = self._asked(now, lambda store: store.reserve(wish, now))
        self._fill_one(need, Taken(0, tat), now)
        return tat

    def _wishes(self, needs: Sequence[Need], missing: int, now: int) -> dict[Need, Wish]:
        """Say what to ask the store for; nothing that it has just refused."""
        wishes = {}
        for place, need in enumerate(needs):
            pocket = self._pocket(need)
            lacking = missing if place == 0 else need.count - pocket.left(now)
            if lacking > 0 and need.counted and now >= pocket.closed_until:
                size = max(lacking, pocket.next_chunk(need.bucket, now))
                wishes[need] = Wish(need.of, need.bucket, size, pocket.tat)
        return wishes

    def _fill(self, wishes: Mapping[Need, Wish], now: int) -> None:
        asked = list(wishes.values())
        answers = self._asked(now, lambda store: store.take(asked, now))
        for need, taken in zip(wishes, answers, strict=True):
            self._fill_one(need, taken, now)

    def _fill_one(self, need: Need, taken: Taken, now: int) -> None:
        with self._lock:
            pocket = self._pocket(need).seen(need.bucket, taken.tat, now)
            self._keep(need, pocket.filled(taken.count, now) if taken.count else pocket)

    def _asked(self, now: int, ask: Callable[[Allowances], Answer]) -> Answer:
        if now >= self._alone_until:
            try:
                return ask(self._store)
            except Unavailable:
                self._alone_until = now + ON_ITS_OWN
        with self._lock:
            return ask(self._own)

    def _granted(self, need: Need, had: int, now: int) -> Granted:
        if had == need.count:
            return Granted(had)
        with self._lock:
            tat = self._pocket(need).tat
        return Granted(had, allowance.retry_after_s(need.bucket, tat, now, need.count - had))

    def _spend(self, need: Need, count: int, now: int) -> int:
        pocket = self._pocket(need)
        spent = min(count, pocket.left(now))
        if spent:
            self._keep(need, pocket.spent(spent))
        return spent

    def _pocket(self, need: Need) -> Pocket:
        return self._pockets.get((need.of, need.per_second), _EMPTY)

    def _keep(self, need: Need, pocket: Pocket) -> None:
        if len(self._pockets) >= _KNOWN_MAX:
            self._pockets.clear()
        self._pockets[need.of, need.per_second] = pocket


class _OwnAllowances:
    """Implements `Allowances` for one process alone."""

    def __init__(self) -> None:
        """Begin with every bucket full."""
        self._tats: dict[Allowance, int] = {}

    def take(self, wishes: Sequence[Wish], now: int) -> list[Taken]:
        """Take of each what is there and wished for."""
        return [self._take(each, min(each.count, self._there(each, now)), now) for each in wishes]

    def reserve(self, wish: Wish, now: int) -> int:
        """Take all that is wished for, there or not."""
        return self._take(wish, wish.count, now).tat

    def _there(self, wish: Wish, now: int) -> int:
        return wish.bucket.tokens(self._tats.get(wish.of, 0), now)

    def _take(self, wish: Wish, count: int, now: int) -> Taken:
        if len(self._tats) >= _KNOWN_MAX:
            self._tats.clear()
        tat = max(now, self._tats.get(wish.of, 0)) + count * wish.bucket.cost
        self._tats[wish.of] = tat
        return Taken(count, tat)
