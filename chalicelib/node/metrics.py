"""The node's metrics, under the names its users know; what cannot be known is left out."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

PREFIX = "paseo_relay_"
CONTENT_TYPE = "text/plain; version=0.0.4"

COUNTERS = {
    "reroute_responses_total": "Requests sent to the node that owns their session.",
    "connection_rejections_total": "Requests that got no WebSocket.",
    "frames_forwarded_total": "Messages sent on, counted once for each destination.",
    "bytes_forwarded_total": "Bytes of those messages.",
    "slow_consumer_disconnects_total": "Sockets closed because they took too little.",
    "delivery_timeouts_total": "Messages whose deadline came first.",
    "memory_pressure_disconnects_total": "Sockets closed to get memory back.",
}
GAUGES = {
    "ready": "Whether the node takes new sessions.",
    "draining": "Whether the node lets its sessions end.",
    "active_websockets": "Open WebSockets.",
    "active_sessions": "Sessions with at least one socket.",
    "ingress_reserved_bytes": "Weighted bytes on their way through the node.",
    "inflight_delivery_bytes": "Bytes of messages whose delivery is under way.",
    "backpressured_sources": "Sockets that are not read because a message of theirs is under way.",
    "max_frame_bytes": "The largest message that is accepted.",
    "process_memory_bytes": "Resident memory of the process.",
}
WAIT_BOUNDS_S = (0.001, 0.01, 0.1, 1.0, 5.0, 15.0, 30.0)
SIZE_BOUNDS = (128, 1_024, 8_192, 65_536, 1_048_576, 8_388_608, 33_554_418)


class Metrics:
    """Counters and histograms of one process."""

    def __init__(self) -> None:
        """Begin at nought."""
        self.backpressured = 0
        self._counts: Counter[str] = Counter()
        self._waits = [0] * (len(WAIT_BOUNDS_S) + 1)
        self._waited_s = 0.0
        self._sizes = [0] * (len(SIZE_BOUNDS) + 1)
        self._size_sum = 0

    def count(self, name: str) -> None:
        """Count one of COUNTERS."""
        self._counts[name] += 1

    def frame(self, size: int, copies: int) -> None:
        """Count a message that goes to so many."""
        counts = self._counts
        counts["frames_forwarded_total"] += copies
        counts["bytes_forwarded_total"] += copies * size
        self._sizes[bisect_left(SIZE_BOUNDS, size)] += 1
        self._size_sum += size

    def waited(self, seconds: float) -> None:
        """Note how long a message was under way that could not go at once."""
        self._waits[bisect_left(WAIT_BOUNDS_S, seconds)] += 1
        self._waited_s += seconds

    def text(self, gauges: Mapping[str, float]) -> str:
        """Write everything for Prometheus; only the gauges that are known."""
        lines = []
        for name, told in GAUGES.items():
            if name in gauges:
                lines += _head(name, told, "gauge")
                lines.append(f"{PREFIX}{name} {_number(gauges[name])}")
        for name, told in COUNTERS.items():
            lines += _head(name, told, "counter")
            lines.append(f"{PREFIX}{name} {self._counts[name]}")
        waits = ("delivery_wait_seconds", "How long messages were under way that could not go at once.")
        lines += _histogram(*waits, WAIT_BOUNDS_S, self._waits, self._waited_s)
        lines += _histogram(
            "frame_size_bytes", "Sizes of messages.", SIZE_BOUNDS, self._sizes, self._size_sum
        )
        return "\n".join(lines) + "\n"


def _head(name: str, told: str, kind: str) -> list[str]:
    return [f"# HELP {PREFIX}{name} {told}", f"# TYPE {PREFIX}{name} {kind}"]


def _histogram(name: str, told: str, bounds: tuple[float, ...], counts: list[int], total: float) -> list[str]:
    until = list(accumulate(counts))
    buckets = [
        f'{PREFIX}{name}_bucket{{le="{_number(bound)}"}} {count}'
        for bound, count in zip(bounds, until, strict=False)
    ]
    ends = [f'{PREFIX}{name}_bucket{{le="+Inf"}} {until[-1]}', f"{PREFIX}{name}_sum {_number(total)}"]
    return [*_head(name, told, "histogram"), *buckets, *ends, f"{PREFIX}{name}_count {until[-1]}"]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
