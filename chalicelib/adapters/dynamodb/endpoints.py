"""Endpoints in DynamoDB: configuration, subscriptions and gate change in one transaction."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.auditing import recorded
from chalicelib.adapters.dynamodb.records import Insert, Key, Merge, Put, Span, Tables, Update, Write
from chalicelib.application.ports import Page, Unavailable
from chalicelib.domain import audit
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.cloud.address import queue_of
from chalicelib.domain.ending import begun_by
from chalicelib.domain.endpoint import ORDERED_MAX, Endpoint, EndpointState
from chalicelib.domain.gate import HoldReason, Occasion, Rules, Spell
from chalicelib.domain.tenant import QUOTAS_MAX

_WALK = 100
_ROUNDS = 5
_TAKEN = "a new endpoint's id was already taken"


class DynamoEndpoints:
    """Keeps endpoints with their subscriptions and gates, changed together."""

    def __init__(self, tables: Tables, rules: Rules) -> None:
        """Write to these tables; new gates start by these rules."""
        self._tables = tables
        self._rules = rules

    def create(self, endpoint: Endpoint, record: audit.Record, at_most: int = QUOTAS_MAX.endpoints) -> bool:
        """Write a new endpoint, its subscriptions, its gate and the audit's record in one transaction.

        False when its tenant has so many already, or it is ordered and there are `ORDERED_MAX` such.
        """
        limits = endpoint.limits
        fresh = gates.new_record(
            limits.rate_per_second, limits.burst, limits.max_concurrency, rules=self._rules
        )
        look = gates.alerted(endpoint.created_ms * 1000) if _expires(endpoint) else {}
        queue = queue_of(endpoint.transport).value
        ordered = {"ordered": 1} if endpoint.ordered else {}
        gate = {**fresh, "lanes": limits.lanes, "queue": queue, **ordered, **look}
        owner = (endpoint.tenant, endpoint.id)
        writes: list[Write] = [
            Insert(keys.endpoint(*owner), rows.endpoint_row(endpoint)),
            Insert(keys.tagged(*owner), {"endpoint": endpoint.id}),
            Insert(keys.gate(*owner), gate),
            *_subscribed(endpoint, endpoint.event_types),
            recorded(record),
        ]
        limited = {keys.endpoint_count(endpoint.tenant): at_most}
        if endpoint.ordered:
            limited[keys.ordered_count(endpoint.tenant)] = ORDERED_MAX
            writes.append(Insert(keys.sequence(*owner), {"taken": 0}))
        return self._create_counted(limited, writes)

    def _create_counted(self, most: Mapping[Key, int], writes: Sequence[Write]) -> bool:
        for _ in range(_ROUNDS):
            there = self._tables.get(list(most))
            if any(at in there and there[at]["endpoints"] >= most[at] for at in most):
                return False
            counted = [_one_more(at, most[at], first=at not in there) for at in most]
            refused = self._tables.together([*counted, *writes])
            if not refused:
                return True
            if max(refused) >= len(counted):
                raise Unavailable(_TAKEN)
        raise Unavailable("the number of the tenant's endpoints changed too often")

    def count(self, tenant: str) -> int:
        """Count a tenant's endpoints, disabled ones too, deleted ones not."""
        at = keys.endpoint_count(tenant)
        there = self._tables.get([at])
        return int(there[at]["endpoints"]) if there else 0

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


def _one_more(at: Key, most: int, *, first: bool) -> Write:
    if first:
        return Insert(at, {"endpoints": 1})
    return Update(at, Change((Test("endpoints", Op.LT, most),), {}, {"endpoints": 1}))


def _uncounted(old: Endpoint, new: Endpoint) -> Iterator[Write]:
    """Give back a deleted endpoint's place, among the ordered ones too, once: the version guards it."""
    if new.state is EndpointState.DELETED and old.state is not EndpointState.DELETED:
        one_less = Change((), {}, {"endpoints": -1})
        yield Update(keys.endpoint_count(new.tenant), one_less)
        if new.ordered:
            yield Update(keys.ordered_count(new.tenant), one_less)


def _ending(old: Endpoint, new: Endpoint) -> Iterator[Write]:
    """Begin what a change ends, over whatever an earlier one had left: it ends no less."""
    begun = begun_by(old, new)
    if begun is not None:
        yield Put(keys.ending(new.tenant, new.id, begun.cause), rows.ending_row(begun))


def _expires(endpoint: Endpoint) -> bool:
    """Say whether something of it expires, of which its owner is to be told."""
    return endpoint.auth is not None and endpoint.auth.by_tls


def _regated(old: Endpoint, new: Endpoint) -> Iterator[Write]:
    """Change the gate, if what it goes by has changed; a deleted endpoint's lets its work be ended.

    New certificates have it looked at, so that it is known when to tell of their expiry.

    An endpoint that is enabled again has been held: history gets that with the change.
    """
    on = {each: each is not EndpointState.DISABLED for each in EndpointState}
    moved = new.url != old.url
    now_us = new.changed_ms * 1000
    look = gates.alerted(now_us) if new.auth != old.auth and _expires(new) else {}
    if new.limits == old.limits and on[new.state] == on[old.state] and not moved:
        if look:
            yield Update(keys.gate(new.tenant, new.id), Change((), look, {}))
        return
    off = [each for each in (new, old) if not on[each.state]]
    since_us = off[0].state_ms * 1000 if off else None
    occasion = Occasion(now_us, since_us, moved)
    change = gates.reconfigured(new.limits, old.limits, enabled=on[new.state], occasion=occasion)
    more = {"lanes": new.limits.lanes} if new.limits.lanes > old.limits.lanes else {}
    change = replace(change, sets={**change.sets, **more, **look})
    yield Update(keys.gate(new.tenant, new.id), change)
    if since_us is not None and on[new.state]:
        spell = Spell(HoldReason.DISABLED, since_us, now_us)
        yield Put(keys.hold(new.tenant, new.id, spell.since), rows.hold_row(spell))
