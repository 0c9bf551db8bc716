"""Every key of every table, built and read here alone; the tenant stands first in each."""

from chalicelib.adapters.dynamodb.records import Key, Span
from chalicelib.application.ports import Extent
from chalicelib.domain import ids
from chalicelib.domain.delivery import Lane, Owed, attempt_key
from chalicelib.domain.ending import Cause

EVENTS, OWED, HISTORY = "events", "owed", "history"
ENDPOINTS, SUBS, GATES = "endpoints", "subs", "gates"
DEAD_LETTERS, IDEMPOTENCY, TENANTS, FANOUTS = "dead-letters", "idempotency", "tenants", "fanouts"
ENDINGS = "endings"
STATS = "stats"
AUDIT = "audit"
REPLAYS = "replays"
PURGES = "purges"
ALLOWANCES = "allowances"
NOTICES = "notices"
METRICS = "metrics"
REGISTRY = "registry"
NODES = "nodes"
ARMED_INDEX = "armed"
RUNNING_INDEX = "running"
ALERT_INDEX = "alert"
EXPORT_INDEX = "export"
NOTICE = "ntc_"
KEY = "key#"
WHOLE = "tenant"
ARMED_SHARDS = 2
COUNTER_SHARDS = 32
"""Records of each part of the counters: a process writes to one, so that none is written too often."""
INSTALLATION = "#installation"
EXPIRING = (AUDIT, EVENTS, HISTORY, DEAD_LETTERS, IDEMPOTENCY, NOTICES, PURGES, REPLAYS, STATS)
"""Tables with rows that expire."""
CREATED_NUMBER = 0
END = "end"
HOLDS = "hold#"
_HOUR_MS = 3_600_000
NIBBLES = "0123456789abcdef"


def hour_of(at_ms: int) -> int:
    """Give the hour (since the epoch) a moment falls into."""
    return at_ms // _HOUR_MS


def events_partition(tenant: str, hour: int, nibble: str) -> str:
    """Name the partition of a tenant's events of an hour; sixteen of them share the writes."""
    return f"{tenant}#{hour:07d}#{nibble}"


def event(tenant: str, event_id: str) -> Key:
    """Name an event's row."""
    hour = hour_of(ids.created_ms(event_id))
    return Key(EVENTS, events_partition(tenant, hour, event_id[-1]), event_id)


def hours_partition(tenant: str) -> str:
    """Name the partition that lists the hours in which a tenant has events."""
    return f"{tenant}#hours"


def listed_hour(tenant: str, hour: int) -> Key:
    """Name the row that says that a tenant has events of an hour."""
    return Key(EVENTS, hours_partition(tenant), f"{hour:07d}")


def hour_end_ms(hour: int) -> int:
    """Give the moment an hour is over."""
    return (hour + 1) * _HOUR_MS


def lane(of: Lane) -> str:
    """Name the partition of a lane's owed rows."""
    return of.name


def owed(row: Owed) -> Key:
    """Name an owed row; rows sort by ready time, those of an ordered lane by sequence."""
    return Key(OWED, lane(row.lane), row.place)


def endpoint_partition(tenant: str, endpoint_id: str) -> str:
    """Name the partition of an endpoint's history, gate and dead letters."""
    return f"{tenant}#{endpoint_id}"


def attempt(tenant: str, endpoint_id: str, row: tuple[str, int, int]) -> Key:
    """Name the history row of a delivery's attempt: delivery, generation, number (0: created)."""
    return Key(HISTORY, endpoint_partition(tenant, endpoint_id), attempt_key(*row))


def ended(tenant: str, endpoint_id: str, delivery_id: str, generation: int) -> Key:
    """Name the last history row of a delivery that was given up on."""
    sort = f"{delivery_id}#{generation:04d}#{END}"
    return Key(HISTORY, endpoint_partition(tenant, endpoint_id), sort)


def after_attempts(delivery_id: str) -> str:
    """Give the place in a list of attempts, newest first, below all of a delivery."""
    return attempt_key(delivery_id, 0, CREATED_NUMBER)


def deliveries_between(extent: Extent) -> Span:
    """Say where the deliveries, or dead letters, of events of a time lie that are below a place."""
    high = f"{ids.last_before(extent.until_ms)}#~"
    return Span(ids.first_of(extent.since_ms), min(extent.after or high, high))


def events_between(extent: Extent) -> Span:
    """Say where the events of a time lie in their partitions that are below a place."""
    high = f"evt_{ids.last_before(extent.until_ms)}"
    return Span(f"evt_{ids.first_of(extent.since_ms)}", min(extent.after or high, high))


def hours_between(events: Span) -> Span:
    """Say where the hours are listed in which events of a stretch lie."""
    low, high = (hour_of(ids.created_ms(each)) for each in (events.low, events.high))
    return Span(f"{low:07d}", f"{high:07d}~")


def hold(tenant: str, endpoint_id: str, since_us: int) -> Key:
    """Name the history row of a hold; holds sort by when they began, after all deliveries."""
    return Key(HISTORY, endpoint_partition(tenant, endpoint_id), f"{HOLDS}{since_us:019d}")


def dead_letter(tenant: str, endpoint_id: str, delivery_id: str, generation: int) -> Key:
    """Name a dead letter."""
    return Key(DEAD_LETTERS, endpoint_partition(tenant, endpoint_id), f"{delivery_id}#{generation:04d}")


def gate(tenant: str, endpoint_id: str) -> Key:
    """Name a gate."""
    return Key(GATES, endpoint_partition(tenant, endpoint_id))


def gate_owner(pk: str) -> tuple[str, str]:
    """Read back whose gate a partition key is: tenant and endpoint id."""
    tenant, _, endpoint_id = pk.partition("#")
    return tenant, endpoint_id


def armed_shard(endpoint_id: str) -> str:
    """Say under which value of the `armed` index an endpoint is listed."""
    return str(int(ids.endpoint_tag(endpoint_id), 16) % ARMED_SHARDS)


def endpoint(tenant: str, endpoint_id: str) -> Key:
    """Name an endpoint's configuration."""
    return Key(ENDPOINTS, tenant, endpoint_id)


def tag_prefix(tag: str) -> str:
    """Name the start of the rows that lead from a delivery's tag to its endpoints."""
    return f"tag#{tag}#"


def tagged(tenant: str, endpoint_id: str) -> Key:
    """Name the row that leads from a tag to one endpoint."""
    return Key(ENDPOINTS, tenant, tag_prefix(ids.endpoint_tag(endpoint_id)) + endpoint_id)


def subscription(tenant: str, pattern: str) -> Key:
    """Name the packed row of a tenant's subscribers of a pattern."""
    return Key(SUBS, f"{tenant}#{pattern}")


def sequence(tenant: str, endpoint_id: str) -> Key:
    """Name the counter that numbers an ordered endpoint's events.

    A row of its own in the table of configuration, which nothing rebuilds, clears or lets expire: owed
    rows and gates are derived and may be made anew, and a counter lost with them would count backwards.
    A partition of its own, as each event of the endpoint writes it.
    """
    return Key(ENDPOINTS, f"{tenant}#{endpoint_id}", "sequence")


def endpoint_count(tenant: str) -> Key:
    """Name the row that counts a tenant's endpoints; absent while it never had one."""
    return Key(TENANTS, tenant, "endpoints")


def ordered_count(tenant: str) -> Key:
    """Name the row that counts a tenant's ordered endpoints; absent while it never had one.

    Away from the subscriptions, as it is what ingest reads when those cannot be read.
    """
    return Key(TENANTS, tenant, "ordered")


def allowance(tenant: str, what: str) -> Key:
    """Name the bucket of what a tenant, or one of its keys, may use a second."""
    return Key(ALLOWANCES, f"{tenant}#{what}")


def idempotency(tenant: str, key: str) -> Key:
    """Name the row of an idempotency key."""
    return Key(IDEMPOTENCY, f"{tenant}#{key}")


def api_key(tenant: str, key_id: str) -> Key:
    """Name an API key's row."""
    return Key(TENANTS, tenant, KEY + key_id)


def lasting_keys(tenant: str) -> Key:
    """Name the row that counts a tenant's admin keys that do not expire."""
    return Key(TENANTS, tenant, "lasting-keys")


def tenant(tenant_id: str) -> Key:
    """Name a tenant's own row."""
    return Key(TENANTS, tenant_id, "tenant")


def listed_tenant(tenant_id: str) -> Key:
    """Name the row that lists a tenant for the operator, in a partition of no tenant's name."""
    return Key(TENANTS, INSTALLATION, tenant_id)


def second_factor(tenant: str) -> Key:
    """Name a tenant's second factor and the key that signs its assertions, both sealed."""
    return Key(TENANTS, tenant, "second-factor")


def stats(tenant: str, endpoint_id: str, hour: int) -> Key:
    """Name what an endpoint's requests of an hour (since the epoch) came to."""
    return Key(STATS, endpoint_partition(tenant, endpoint_id), f"{hour:07d}")


def ending(tenant: str, endpoint_id: str, cause: Cause) -> Key:
    """Name what is being ended of an endpoint, one row a cause."""
    return Key(ENDINGS, tenant, f"{endpoint_id}#{cause.value}")


def audit(tenant: str, record_id: str) -> Key:
    """Name a record of the audit; a tenant's sort by when they were made."""
    return Key(AUDIT, tenant, record_id)


def notice(tenant: str, notice_id: str) -> Key:
    """Name a notice; a tenant's sort by when they were found."""
    return Key(NOTICES, tenant, notice_id)


def told(tenant: str, endpoint_id: str) -> Key:
    """Name the row of what an endpoint's owner was told; away from its gate, which may be made anew."""
    return Key(NOTICES, tenant, f"told#{endpoint_id}")


def purge(tenant: str) -> Key:
    """Name the purge of all that is a tenant's."""
    return Key(PURGES, tenant, WHOLE)


def letter_purge(tenant: str, endpoint_id: str) -> Key:
    """Name the purge of an endpoint's dead letters."""
    return Key(PURGES, tenant, endpoint_id)


def retention() -> Key:
    """Name the row that says how far retention has come; the installation's own, so of no tenant's name."""
    return Key(FANOUTS, INSTALLATION, "retention")


def audit_export() -> Key:
    """Name the row that says how far the export of the audit has come; the installation's own, too."""
    return Key(FANOUTS, INSTALLATION, "audit-export")


def gauges() -> Key:
    """Name the row of what the reporter last read; the installation's own, so of no tenant's name."""
    return Key(METRICS, "gauges")


def canary(queue: str) -> Key:
    """Name the row that says when a canary last came through a queue, by its name without the prefix."""
    return Key(METRICS, f"canary#{queue}")


def run(schedule: str) -> Key:
    """Name the row that says when a scheduled function last did all it had to do."""
    return Key(METRICS, f"run#{schedule}")


def reported() -> Key:
    """Name the row of what CloudWatch has been told of the counters."""
    return Key(METRICS, "reported")


def hour_shard(hour: int) -> str:
    """Say under which value of the `export` index the records of an hour are listed."""
    return f"{hour:07d}"


def replay(tenant: str, replay_id: str) -> Key:
    """Name a bulk replay."""
    return Key(REPLAYS, tenant, replay_id)


def fanout(tenant: str, event_id: str) -> Key:
    """Name a later fan-out."""
    return Key(FANOUTS, tenant, event_id)


def counters(part: str, shard: int) -> Key:
    """Name one of the records in which a part of the catalogue is counted; of no tenant."""
    return Key(METRICS, f"counters#{part}#{shard:02d}")


def counted_part(pk: str) -> str:
    """Say which part of the catalogue a record of the metrics counts; empty for what counts none."""
    kind, _, rest = pk.partition("#")
    return rest.partition("#")[0] if kind == "counters" else ""


def relay_node(node_id: str) -> Key:
    """Name the row of a relay node's lease."""
    return Key(REGISTRY, NODES, node_id)


def owner(server_id: str) -> Key:
    """Name the row that says which node owns a relayed session."""
    return Key(REGISTRY, f"owner#{server_id}", "owner")


def ticket(digest: str) -> Key:
    """Name the row of a ticket of a tunnel."""
    return Key(REGISTRY, f"ticket#{digest}", "ticket")
