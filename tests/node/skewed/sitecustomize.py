"""Python imports this at its start where it is on the path: the clock is then so many seconds off."""

import os
import time

_OFF_S = int(os.environ["CLOCK_OFF_S"])
_wall_s, _wall_ns = time.time, time.time_ns
time.time = lambda: _wall_s() + _OFF_S
time.time_ns = lambda: _wall_ns() + _OFF_S * 1_000_000_000
