"""Retention: how long what Relay keeps is kept, and when a long wait makes it keep something longer.

Whatever may expire carries the moment as its `ttl` (Unix seconds), and reads as absent from then on, whenever
it is really removed. Source: DESIGN §5.
"""

from collections.abc import Sequence

from chalicelib.domain.delivery import Attempt, Ended, HistoryRow
from chalicelib.domain.outcome import Outcome

DAY_S = 86_400
DAY_MS = DAY_S * 1000
PAYLOAD_DAYS = 35
HISTORY_DAYS = DEAD_DAYS = 90
AUDIT_DAYS = 400
STATS_DAYS = 397
"""Thirteen months."""
LOOK_AGAIN_DAYS = 6
"""How often the rows of what is still owed are prolonged."""
SLACK_DAYS = 7
"""How much longer than its window a row is stored: a delivery's first rows must not go before its last."""
OWED_PAYLOAD_DAYS = LOOK_AGAIN_DAYS + SLACK_DAYS
ORPHAN_AFTER_MS = 3_600_000
"""How old a payload without an event is when nobody can still be about to write that event."""
TOMBSTONE_DAYS = 1
"""How long a deleted endpoint is kept at least: whoever read its subscription before has written by then."""
OVERDUE_AFTER_S = 2 * DAY_S
"""How long after its time a row should be gone, as DynamoDB removes it when it comes to it."""


def payload_until_s(received_ms: int) -> int:
    """Say until when an event is kept of which nothing is owed and nothing died."""
    return received_ms // 1000 + PAYLOAD_DAYS * DAY_S


def owed_payload_until_s(now_ms: int) -> int:
    """Say until when an event is kept at least of which something is owed now."""
    return now_ms // 1000 + OWED_PAYLOAD_DAYS * DAY_S


def dead_until_s(died_ms: int) -> int:
    """Say until when a dead letter is kept, and with it its event: it can be replayed that long."""
    return died_ms // 1000 + DEAD_DAYS * DAY_S


def stats_until_s(hour: int) -> int:
    """Say until when the statistics of an hour (counted from the epoch) are kept."""
    return (hour + 1) * 3_600 + STATS_DAYS * DAY_S


def audit_until_s(at_ms: int) -> int:
    """Say until when a record of the audit is kept."""
    return at_ms // 1000 + AUDIT_DAYS * DAY_S


def hold_until_s(ended_ms: int) -> int:
    """Say until when a hold is kept that has ended."""
    return ended_ms // 1000 + HISTORY_DAYS * DAY_S


def history_until_s(at_ms: int) -> int:
    """Say until when a row of history is stored that was written, or still needed, at a moment."""
    return at_ms // 1000 + (HISTORY_DAYS + SLACK_DAYS) * DAY_S


def looks_again(created_ms: int, before_ms: int, now_ms: int) -> bool:
    """Say whether what is still owed has come to a sixth day of its life between two moments.

    What a run missed the next one finds.
    """
    step = LOOK_AGAIN_DAYS * DAY_MS
    return (now_ms - created_ms) // step > max(0, (before_ms - created_ms) // step)


def told_still(rows: Sequence[HistoryRow], now_ms: int) -> bool:
    """Say whether the history of one generation, in order, is still told: 90 days from its end, or owed."""
    last = rows[-1]
    ends = isinstance(last, Ended) or (isinstance(last, Attempt) and last.outcome is Outcome.SUCCESS)
    return not ends or last.at_ms + HISTORY_DAYS * DAY_MS > now_ms
