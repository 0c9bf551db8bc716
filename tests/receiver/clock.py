"""The one place where the receiver reads the time."""

import time

from tests.receiver.entry import Moment

NS_PER_S = 1_000_000_000


def now() -> Moment:
    """Give this instant on both clocks; the monotonic one is shared by all processes of a machine."""
    return Moment(time.time_ns(), time.monotonic_ns())
