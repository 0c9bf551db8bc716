"""The gate: may this lane send now, and how many.

Rate (`bucket`), breaker, recovery ramp, cap and leases of one endpoint, decided together from one
record by pure functions. Each answer is a `Change` that a store makes only if its tests hold, so
it is exact over any number of functions. All times are integer microseconds of the Unix epoch.

`record` is what a gate is, `ask` who is let in, `settle` how leases come back and the breaker turns,
`holds` how long an endpoint was held and why, `queues` which queue its lanes ring on, `owner` what the
owner's changes do. Source: DESIGN §3 and §5; the expressions: docs/decisions/0002.
"""

from chalicelib.domain.gate.alerts import ALERT_SHARDS, alerted, and_alert, looked, perhaps_died
from chalicelib.domain.gate.ask import (
    GRANT_MAX,
    LANE_BUSY_WAIT,
    Ask,
    Grant,
    Hold,
    Turn,
    ask,
    moments,
)
from chalicelib.domain.gate.holds import (
    bell_due,
    current_hold,
    expects_bell,
    held_between,
    held_sum,
    hold_asked,
    hold_begun,
    not_noted,
)
from chalicelib.domain.gate.owner import Occasion, hold_until, reconfigured
from chalicelib.domain.gate.queues import QUICK_MS, moved, queue_for
from chalicelib.domain.gate.record import (
    SECOND,
    TAKE_OVER_GRACE,
    Breaker,
    Claim,
    Gate,
    HoldReason,
    Lease,
    Queue,
    Rules,
    Spell,
    Tally,
    new_record,
    of_replays,
    read,
)
from chalicelib.domain.gate.settle import (
    Leaving,
    Told,
    drained,
    ends_hold,
    opening,
    overfull,
    release,
    settle,
)
from chalicelib.domain.gate.tally import (
    FAILING_IN_A_ROW,
    HEALTHY_PERCENT,
    HOUR,
    LATELY,
    LATELY_FOR,
    Health,
    health_of,
    hopeless,
    lately,
    this_hour,
)

__all__ = [
    "ALERT_SHARDS",
    "FAILING_IN_A_ROW",
    "GRANT_MAX",
    "HEALTHY_PERCENT",
    "HOUR",
    "LANE_BUSY_WAIT",
    "LATELY",
    "LATELY_FOR",
    "QUICK_MS",
    "SECOND",
    "TAKE_OVER_GRACE",
    "Ask",
    "Breaker",
    "Claim",
    "Gate",
    "Grant",
    "Health",
    "Hold",
    "HoldReason",
    "Lease",
    "Leaving",
    "Occasion",
    "Queue",
    "Rules",
    "Spell",
    "Tally",
    "Told",
    "Turn",
    "alerted",
    "and_alert",
    "ask",
    "bell_due",
    "current_hold",
    "drained",
    "ends_hold",
    "expects_bell",
    "health_of",
    "held_between",
    "held_sum",
    "hold_asked",
    "hold_begun",
    "hold_until",
    "hopeless",
    "lately",
    "looked",
    "moments",
    "moved",
    "new_record",
    "not_noted",
    "of_replays",
    "opening",
    "overfull",
    "perhaps_died",
    "queue_for",
    "read",
    "reconfigured",
    "release",
    "settle",
    "this_hour",
]
