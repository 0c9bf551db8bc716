"""Notices in DynamoDB: the marks on gates, what each endpoint's owner was told, and the notices."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.notice_rows import letter_of, notice_of, notice_row, told_of, told_row
from chalicelib.adapters.dynamodb.records import Insert, Put, Span, Tables, Update, Write
from chalicelib.application.ports import Page
from chalicelib.application.ports.noticing import Alert
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Change, Op, Test
from chalicelib.domain.notice import Letters, Notice, Sight, Told

if TYPE_CHECKING:
    from chalicelib.domain.delivery import Ended

_LETTERS = 1_000


class DynamoNoticing:
    """What owners have to be told: marked gates, and a row of what was told beside the notices."""

    def __init__(self, tables: Tables) -> None:
        """Read and write these tables."""
        self._tables = tables

    def alerts(self, now_us: int) -> Iterator[Alert]:
        """Walk the endpoints that have to be looked at by now."""
        for shard in range(gates.ALERT_SHARDS):
            for record in self._tables.indexed(keys.GATES, keys.ALERT_INDEX, str(shard)):
                if record["alert_until"] <= now_us:
                    yield Alert(*keys.gate_owner(record["pk"]), record["alert_until"])

    def look(self, alert: Alert) -> Sight | None:
        """Read an endpoint, its gate and what was told of it, strongly consistent; None: there is none."""
        gate_at, endpoint_at, told_at = (
            keys.gate(alert.tenant, alert.endpoint_id),
            keys.endpoint(alert.tenant, alert.endpoint_id),
            keys.told(alert.tenant, alert.endpoint_id),
        )
        found = self._tables.get([gate_at, endpoint_at, told_at])
        if gate_at not in found or endpoint_at not in found:
            return None
        told = told_of(found[told_at]) if told_at in found else Told()
        return Sight(rows.endpoint_of(found[endpoint_at]), gates.read(found[gate_at]), told)

    def letters(self, tenant: str, endpoint_id: str, limit: int) -> Letters:
        """Read an endpoint's dead letters, those of the newest events first."""
        partition = keys.endpoint_partition(tenant, endpoint_id)
        ended: list[Ended] = []
        high = "~"
        while len(ended) < limit:
            span = Span("0", high, backwards=True)
            stretch = self._tables.query(keys.DEAD_LETTERS, partition, span, min(_LETTERS, limit) + 1)
            ended += [letter_of(each) for each in stretch.records if each["sk"] != high]
            if not stretch.more:
                return Letters(tuple(ended[:limit]), complete=len(ended) <= limit)
            high = stretch.records[-1]["sk"]
        return Letters(tuple(ended[:limit]), complete=False)

    def tell(
        self, alert: Alert, before: Told, told: Told, raised: Sequence[Notice], taken: Sequence[Notice]
    ) -> Told | None:
        """Write what is told, new notices and marks on those taken, in one; None: another was first."""
        written = replace(told, version=before.version + 1)
        new = [Insert(keys.notice(each.tenant, each.id), notice_row(each)) for each in raised]
        marked = [
            Update(keys.notice(each.tenant, each.id), Change((), {"published_ms": each.published_ms}, {}))
            for each in taken
        ]
        refused = self._tables.together([_kept(alert, before, written), *new, *marked])
        return None if refused else written

    def notices(self, tenant: str, notice_ids: Sequence[str]) -> list[Notice]:
        """Read notices by id, in the order asked; what is gone is left out."""
        at = [keys.notice(tenant, each) for each in notice_ids]
        found = self._tables.get(at)
        return [notice_of(found[each]) for each in at if each in found]

    def looked(self, alert: Alert, now_us: int, again_us: int | None) -> bool:
        """Take a mark away, or move it to when there is more to see; False when it was set anew."""
        at = keys.gate(alert.tenant, alert.endpoint_id)
        (made,) = self._tables.each([Update(at, gates.looked(alert.at_us, now_us, again_us))])
        return made.done

    def page(self, tenant: str, after: str, limit: int, now_ms: int) -> Page[Notice]:
        """List a tenant's notices, newest first."""
        found: list[Notice] = []
        high = after or f"{keys.NOTICE}~"
        while True:
            span = Span(keys.NOTICE, high, backwards=True)
            stretch = self._tables.query(keys.NOTICES, tenant, span, limit + 2)
            for record in stretch.records:
                if record["sk"] == high or record["ttl"] * 1000 <= now_ms:
                    continue
                if len(found) == limit:
                    return Page(tuple(found), found[-1].id)
                found.append(notice_of(record))
            if not stretch.more:
                return Page(tuple(found))
            high = stretch.records[-1]["sk"]


def _kept(alert: Alert, before: Told, told: Told) -> Write:
    """Write the row of what was told over the very one that was read."""
    at = keys.told(alert.tenant, alert.endpoint_id)
    if not before.version:
        return Insert(at, told_row(told))
    return Put(at, told_row(told), (Test("version", Op.EQ, before.version),))
