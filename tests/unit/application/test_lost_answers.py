"""Answers that are lost when the write has happened: the client asks again, and is refused by its own write.

A transaction is asked again under its token and is told of its first success; statements have no token.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from chalicelib.adapters.dynamodb.records import Made, Statement
from chalicelib.domain.delivery import Attempt
from chalicelib.domain.endpoint import Limits, Ordering
from chalicelib.domain.outcome import Outcome
from tests.fakes.memory_tables import MemoryTables, Records
from tests.fakes.scripted_sender import Answer, in_turn, status
from tests.unit.application.invariants import check
from tests.unit.application.process import Process
from tests.unit.application.world import AMPLE, FAILS, OK, TAKE_OVER_MS, World

PERMANENT, LATER = status(404), status(429, headers=(("Retry-After", "5"),))
CASES: dict[str, tuple[Sequence[Answer], dict[str, Any]]] = {
    "all arrive": ([OK] * 4, {}),
    "in order": ([OK] * 4, {"ordering": Ordering.ENDPOINT}),
    "one fails": ([OK, FAILS, OK, OK, OK], {}),
    "the first in order fails": ([FAILS, OK, OK, OK, OK], {"ordering": Ordering.ENDPOINT}),
    "one is dead": ([OK, PERMANENT, OK, OK], {}),
    "the endpoint says when": ([LATER, OK, OK, OK, OK], {}),
    "one at a time": ([OK] * 4, {"limits": Limits(100_000, 100_000, 1)}),
    "at its pace": ([OK] * 4, {"limits": Limits(1, 1, 8)}),
}


class DeafTables(MemoryTables):
    """Loses the answer to one call of statements, from 1, and gives that to the same call made again."""

    def __init__(self, records: Records, deaf_at: int) -> None:
        """Share these records."""
        super().__init__(records)
        self._calls = itertools.count(1)
        self._deaf_at = deaf_at
        self.deaf = False

    def each(self, writes: Sequence[Statement]) -> list[Made]:
        """Write, and once do so twice."""
        made = super().each(writes)
        if next(self._calls) != self._deaf_at:
            return made
        self.deaf = True
        return super().each(writes)


def each_lost_answer(prepare: Callable[[], World]) -> Iterator[tuple[int, World, Process]]:
    """Give worlds with a process that loses the answer to one call of statements: the first, the next …."""
    for number in itertools.count(1):
        world = prepare()
        tables = DeafTables(world.records, number)
        yield number, world, Process(world, tables)
        if not tables.deaf:
            return


@pytest.mark.parametrize("case", CASES)
def test_a_visit_that_loses_an_answer_sends_nothing_twice_and_nobody_has_to_take_over(case: str) -> None:
    answers, fields = CASES[case]

    def prepare() -> World:
        world = World()
        world.endpoint(**{"limits": AMPLE, **fields})
        world.sender.script = in_turn(answers)
        world.deliveries(4)
        return world

    for number, world, process in each_lost_answer(prepare):
        for _ in range(3):
            world.deliver(process)
        world.work_off(for_ms=TAKE_OVER_MS // 2)
        assert world.owed() == [], f"call {number}"
        assert len(world.sender.sent) == len(answers), f"call {number}"
        told = [row.outcome for row in world.all_history() if isinstance(row, Attempt)]
        assert Outcome.UNKNOWN not in told, f"call {number}"
        check(world)
    assert number > 2
