"""What a run assumes: the load, how endpoints answer, AWS's latencies and limits, what the functions cost.

Where each number is from: docs/decisions/0031. Durations are microseconds unless their name says otherwise.
"""

from dataclasses import dataclass, field

from infra.functions import FUNCTIONS

MS = 1_000
SECOND = 1_000_000
SHARDS = 4
MOST = {each.name: each.most for each in FUNCTIONS}


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long a call of AWS takes from inside its region, and how much longer for each item in it."""

    get: int = 4 * MS
    query: int = 5 * MS
    statements: int = 6 * MS
    transaction: int = 12 * MS
    per_item: int = 300
    send: int = 9 * MS
    queue_change: int = 8 * MS


@dataclass(frozen=True, slots=True)
class Cost:
    """What a share of a core takes for an invocation, a lane's visit and an attempt; an event at the API."""

    invocation: int = 3 * MS
    visit: int = 2 * MS
    attempt: int = 3 * MS
    event: int = 3 * MS


@dataclass(frozen=True, slots=True)
class Platform:
    """What Lambda and SQS take and allow: starting a copy, receiving, handing over; how pollers grow.

    `local`: the event source of the one-machine runtime plays Lambda's part, one process all copies of a
    function, and two cores do all the work.
    """

    cold_start: int = 900 * MS
    starts_per_10_s: int = 1_000
    receive: int = 10 * MS
    handover: int = 8 * MS
    pollers_at_first: int = 5
    pollers_a_minute: int = 300
    looked_among: int = 120_000
    local: bool = False


@dataclass(frozen=True, slots=True)
class Receivers:
    """How endpoints answer. Latencies are log-normal, over endpoints and over requests.

    `fails` is the share of requests that are answered 503; `slow` endpoints take `slower` times as long,
    `down` ones always answer 500 and `hanging` ones never.
    """

    median_ms: float = 110.0
    spread_over_endpoints: float = 0.8
    spread_over_requests: float = 0.5
    fails: float = 0.12
    slow: float = 0.005
    slower: float = 15.0
    down: float = 0.003
    hanging: float = 0.001


@dataclass(frozen=True, slots=True)
class Load:
    """What producers post: to whom, how much of it to a second endpoint too, and how many events at a time.

    The endpoint of rank n gets a share of n to the power of minus `skew`. Tenants with less than `tens_from`
    events a second post them one by one. `own_limits` is the share of endpoints whose owners raised their
    limits to what they need. Of endpoints that are offered less than `idle_below` a second, the share
    `aggregated` is simulated as a crowd. Writing an event takes `event_units`: with 2 KB that hardly pack, 4.
    Without `skew` endpoints get events in turn and at even intervals. With `under_way` one producer posts
    so that never more than so many deliveries are under way, whatever the rate.
    """

    endpoints: int = 40_000
    tenants: int = 2_000
    events_per_s: float = 25_000.0
    second_taker: float = 0.584
    skew: float = 0.8
    tens_from: float = 5.0
    own_limits: float = 0.95
    idle_below: float = 2.0
    aggregated: float = 0.95
    event_units: int = 4
    under_way: int = 0


@dataclass(frozen=True, slots=True)
class Numbers:
    """One run: its load, length (s) and seed, how far each function may grow, and all of the above.

    `parts` is among how many processes the shards are divided: each has its own share of what they share.
    """

    load: Load = field(default_factory=Load)
    seconds: int = 60
    seed: int = 1
    parts: int = 1
    most_shard: int = MOST["deliver_shard_0"]
    most_slow: int = MOST["deliver_slow"]
    most_hot: int = MOST["deliver_hot_0"]
    most_api: int = MOST["api_handler"]
    receivers: Receivers = field(default_factory=Receivers)
    latencies: Latencies = field(default_factory=Latencies)
    cost: Cost = field(default_factory=Cost)
    platform: Platform = field(default_factory=Platform)
