"""Queues by behaviour: an endpoint that times out rings on `slow`, one with very many sends on a `hot` one.

What lies in AWS accounts of others is on `cloud` for good, whose function alone may assume their roles.
Moving is one write. It needs no drain, since any bell in any queue picks the lane's next row.
"""

from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.gate.record import SECOND, Gate, Queue

TIMEOUTS_TO_SLOW = 3
ANSWERS_TO_RETURN = 10
QUICK_MS = 1_000
HOT_PER_S = 200
COOL_PER_S = 100
_MINUTE = 60 * SECOND


def queue_for(gate: Gate) -> Queue:
    """Say where an endpoint should ring from now on."""
    match gate.queue:
        case Queue.CLOUD:
            return Queue.CLOUD
        case Queue.SLOW:
            return Queue.SHARD if gate.answers >= ANSWERS_TO_RETURN else Queue.SLOW
        case _ if gate.streak >= TIMEOUTS_TO_SLOW:
            return Queue.SLOW
        case Queue.HOT:
            return Queue.SHARD if gate.per_s < COOL_PER_S else Queue.HOT
        case Queue.SHARD:
            return Queue.HOT if gate.per_s > HOT_PER_S else Queue.SHARD


def moved(gate: Gate) -> Change | None:
    """Move an endpoint to the queue it should ring on; None when it is there."""
    queue = queue_for(gate)
    if queue is gate.queue:
        return None
    return Change((Test("queue", Op.EQ, gate.queue.value),), {"queue": queue.value}, {})


def minute_over(gate: Gate) -> dict[str, int]:
    """Give what is set when a minute of an endpoint that may become hot, or was, is over: its sends a second.

    The minute ends when the gate was as it was read: later sends, of which its reader may not know, belong
    to the next.
    """
    passed = gate.seen - gate.minute_from
    may_be_hot = gate.rate > HOT_PER_S or gate.per_s >= COOL_PER_S
    if not may_be_hot or passed < _MINUTE:
        return {}
    per_s = (gate.sent - gate.sent_before) * SECOND // passed
    return {"minute_from": gate.seen, "sent_before": gate.sent, "per_s": per_s}
