"""Time zones: the core must not notice in which one it runs."""

import os
import time
from collections.abc import Iterator

import pytest


@pytest.fixture(params=["America/New_York", "Europe/Berlin", "Asia/Kolkata"])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[None]:
    """Put this process into another time zone for a while."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()
