"""The world that each test starts from."""

from collections.abc import Iterator

import pytest

from tests.leaks.watch import WATCH
from tests.unit.application.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """Give a Relay to which nothing has happened yet; what it has stored at the end holds no secret."""
    world = World()
    yield world
    for key, record in world.records.by_key.items():
        WATCH.rows(key.table, [record])
