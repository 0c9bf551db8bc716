"""The world that each test starts from."""

import pytest

from tests.unit.application.world import World


@pytest.fixture
def world() -> World:
    """Give a Relay to which nothing has happened yet."""
    return World()
