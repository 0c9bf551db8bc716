"""Idle connections: the newest is used, and what nobody will use is closed."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.adapters.http.idle import IdleConnections, Where

LIMIT = 3


@dataclass(eq=False)
class Connection:
    """A connection whose peer may close it."""

    usable: bool = True
    closed: int = 0

    def close(self) -> None:
        self.closed += 1


@dataclass
class Used:
    """A pool under use; `taken` are out of it."""

    pool: IdleConnections[Connection] = field(default_factory=lambda: IdleConnections(LIMIT))
    every: list[Connection] = field(default_factory=list)
    taken: list[Connection] = field(default_factory=list)

    def keep(self, target: Where) -> Connection:
        connection = self.taken.pop() if self.taken else Connection()
        self.every += [connection] if connection not in self.every else []
        self.pool.keep(target, connection)
        return connection


A, B = ("https", "a", 443), ("https", "b", 443)


def test_the_one_kept_last_is_taken_first() -> None:
    used = Used()
    first, last = used.keep(A), used.keep(A)
    assert [used.pool.take(A), used.pool.take(A), used.pool.take(A)] == [last, first, None]


def test_one_that_cannot_be_used_is_closed_and_never_given() -> None:
    used = Used()
    good, gone = used.keep(A), used.keep(A)
    gone.usable = False
    assert used.pool.take(A) is good
    assert gone.closed == 1


def test_keeping_one_closes_the_old_of_other_targets() -> None:
    used = Used()
    old = [used.keep(A), used.keep(A)]
    for each in old:
        each.usable = False
    used.keep(B)
    assert [each.closed for each in old] == [1, 1]


@pytest.mark.parametrize("runs", [0, 1])
def test_one_that_rested_too_long_is_not_given_whichever_clock_stood_still_meanwhile(runs: int) -> None:
    times = [1_000.0, 2_000.0]
    pool = IdleConnections[Connection](LIMIT, 30.0, (lambda: times[0], lambda: times[1]))
    late, rested = Connection(), Connection()
    pool.keep(A, late)
    times[runs] += 29
    pool.keep(A, rested)
    times[runs] += 1
    assert (pool.take(A), pool.take(A)) == (rested, None)
    assert (rested.closed, late.closed) == (0, 1)


def test_a_clock_that_is_set_back_makes_nothing_old() -> None:
    times = [1_000.0, 2_000.0]
    pool = IdleConnections[Connection](LIMIT, 30.0, (lambda: times[0], lambda: times[1]))
    kept = Connection()
    pool.keep(A, kept)
    times[1] -= 3_600
    assert pool.take(A) is kept


@given(st.lists(st.sampled_from(["keep a", "keep b", "take a", "take b", "peer closes"]), max_size=40))
def test_no_more_than_the_limit_are_open_and_none_is_closed_twice_or_while_it_is_used(
    does: list[str],
) -> None:
    used = Used()
    for what in does:
        match what.split():
            case ["keep", name]:
                used.keep(A if name == "a" else B)
            case ["take", name]:
                found = used.pool.take(A if name == "a" else B)
                used.taken += [found] if found else []
            case _:
                for each in used.every[-1:]:
                    each.usable = each in used.taken
        idle = [each for each in used.every if not each.closed and each not in used.taken]
        assert len(idle) <= LIMIT
        assert all(each.closed <= 1 for each in used.every)
        assert not any(each.closed for each in used.taken)
    used.pool.close()
    assert all(each.closed == 1 for each in used.every if each not in used.taken)
