"""Endpoints in DynamoDB: configuration, subscriptions and gate change in one transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.auditing import recorded
from chalicelib.adapters.dynamodb.records import Insert, Merge, Put, Span, Tables, Update, Write
from chalicelib.application.ports import Page, Unavailable
from chalicelib.domain import audit
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.ending import begun_by
from chalicelib.domain.endpoint import ORDERED_MAX, Endpoint, EndpointState
from chalicelib.domain.gate import HoldReason, Occasion, Rules, Spell

_WALK = 100
_ROUNDS = 5
_TAKEN = "a new endpoint's id was already taken"


class DynamoEndpoints:
    """Keeps endpoints with their subscriptions and gates, changed together."""

    def __init__(self, tables: Tables, rules: Rules) -> None:
        """Write to these tables; new gates start by these rules."""
        self._tables = tables
        self._rules = rules

    def create(self, endpoint: Endpoint, record: audit.Record) -> bool:
        """Write a new endpoint, its subscriptions, its gate and the audit's record in one transaction.

        False when it is ordered and its tenant has `ORDERED_MAX` such endpoints already.
        """
        limits = endpoint.limits
        fresh = gates.new_record(
            limits.rate_per_second, limits.burst, limits.max_concurrency, rules=self._rules
        )
        gate = {**fresh, "lanes": limits.lanes, **({"ordered": 1} if endpoint.ordered else {})}
        owner = (endpoint.tenant, endpoint.id)
        writes: list[Write] = [
            Insert(keys.endpoint(*owner), rows.endpoint_row(endpoint)),
            Insert(keys.tagged(*owner), {"endpoint": endpoint.id}),
            Insert(keys.gate(*owner), gate),
            *_subscribed(endpoint, endpoint.event_types),
            recorded(record),
        ]
        if endpoint.ordered:
            return self._create_ordered(endpoint, writes)
        if self._tables.together(writes):
            raise Unavailable(_TAKEN)
        return True

    def _create_ordered(self, endpoint: Endpoint, writes: Sequence[Write]) -> bool:
        at = keys.ordered_count(endpoint.tenant)
        numbered = Insert(keys.sequence(endpoint.tenant, endpoint.id), {"taken": 0})
        below = Test("endpoints", Op.LT, ORDERED_MAX)
        for _ in range(_ROUNDS):
            count = self._tables.get([at]).get(at)
            if count is not None and count["endpoints"] >= ORDERED_MAX:
                return False
            one_more = Update(at, Change((below,), {}, {"endpoints": 1}))
            counted = one_more if count else Insert(at, {"endpoints": 1})
            refused = self._tables.together([counted, numbered, *writes])
            if not refused:
                return True
            if refused != [0]:
                raise Unavailable(_TAKEN)
        raise Unavailable("the tenant's ordered endpoints changed too often")

    def get(self, tenant: str, endpoint_id: str) -> Endpoint | None:
        """Read an endpoint strongly consistent, a deleted one too."""
        at = keys.endpoint(tenant, endpoint_id)
        record = self._tables.get([at]).get(at)
        return rows.endpoint_of(record) if record else None

    def replace(self, old: Endpoint, new: Endpoint, record: audit.Record) -> bool:
        """Write a changed endpoint if nobody changed it since it was read; False when somebody did.

        The audit's record of it is written with it, or not at all.
        """
        same = (Test("version", Op.EQ, old.version),)
        writes: list[Write] = [
            Put(keys.endpoint(new.tenant, new.id), rows.endpoint_row(new), same),
            *_regated(old, new),
            *_resubscribed(old, new),
            *_uncounted(old, new),
            *_ending(old, new),
            recorded(record),
        ]
        return not self._tables.together(writes)

    def page(self, tenant: str, after: str, limit: int) -> Page[Endpoint]:
        """List a tenant's endpoints that are not deleted, newest first."""
        found: list[Endpoint] = []
        high = after or "ep_~"
        while True:
            span = Span("ep_", high, backwards=True)
            stretch = self._tables.query(keys.ENDPOINTS, tenant, span, min(_WALK, limit + 2))
            for record in stretch.records:
                if record["sk"] == after or record["state"] == EndpointState.DELETED.value:
                    continue
                if len(found) == limit:
                    return Page(tuple(found), found[-1].id)
                found.append(rows.endpoint_of(record))
            if not stretch.more or stretch.records[-1]["sk"] == high:
                return Page(tuple(found))
            high = stretch.records[-1]["sk"]
            after = high

    def tagged(self, tenant: str, tag: str) -> list[str]:
        """List the endpoint ids whose deliveries carry a tag."""
        prefix = keys.tag_prefix(tag)
        stretch = self._tables.query(keys.ENDPOINTS, tenant, Span(prefix, prefix + "~"), _WALK)
        return [record["endpoint"] for record in stretch.records]


def _subscribed(endpoint: Endpoint, patterns: tuple[str, ...]) -> Iterator[Write]:
    value = rows.subscriber_value(endpoint)
    for pattern in patterns:
        yield Merge(keys.subscription(endpoint.tenant, pattern), {endpoint.id: value})


def _resubscribed(old: Endpoint, new: Endpoint) -> Iterator[Write]:
    kept = () if new.state is EndpointState.DELETED else new.event_types
    if rows.subscriber_value(new) != rows.subscriber_value(old):
        yield from _subscribed(new, kept)
    else:
        yield from _subscribed(new, tuple(each for each in kept if each not in old.event_types))
    for pattern in old.event_types:
        if pattern not in kept:
            yield Merge(keys.subscription(new.tenant, pattern), {}, (new.id,))


def _uncounted(old: Endpoint, new: Endpoint) -> Iterator[Write]:
    """Give back a deleted endpoint's place among the ordered ones, once: the version guards it."""
    if new.ordered and new.state is EndpointState.DELETED and old.state is not EndpointState.DELETED:
        yield Update(keys.ordered_count(new.tenant), Change((), {}, {"endpoints": -1}))


def _ending(old: Endpoint, new: Endpoint) -> Iterator[Write]:
    """Begin what a change ends, over whatever an earlier one had left: it ends no less."""
    begun = begun_by(old, new)
    if begun is not None:
        yield Put(keys.ending(new.tenant, new.id, begun.cause), rows.ending_row(begun))


def _regated(old: Endpoint, new: Endpoint) -> Iterator[Write]:
    """Change the gate, if what it goes by has changed; a deleted endpoint's lets its work be ended.

    An endpoint that is enabled again has been held: history gets that with the change.
    """
    on = {each: each is not EndpointState.DISABLED for each in EndpointState}
    moved = new.url != old.url
    if new.limits == old.limits and on[new.state] == on[old.state] and not moved:
        return
    now_us = new.changed_ms * 1000
    off = [each for each in (new, old) if not on[each.state]]
    since_us = off[0].state_ms * 1000 if off else None
    occasion = Occasion(now_us, since_us, moved)
    change = gates.reconfigured(new.limits, old.limits, enabled=on[new.state], occasion=occasion)
    if new.limits.lanes > old.limits.lanes:
        change = replace(change, sets={**change.sets, "lanes": new.limits.lanes})
    yield Update(keys.gate(new.tenant, new.id), change)
    if since_us is not None and on[new.state]:
        spell = Spell(HoldReason.DISABLED, since_us, now_us)
        yield Put(keys.hold(new.tenant, new.id, spell.since), rows.hold_row(spell))
