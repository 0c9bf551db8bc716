"""Retention: prolongs what is still needed, then removes what is not.

A round is a list of chores, each done page by page; how far it has come is written down after every page, and
each page can be done twice. Killed anywhere, or run twice at once, it keeps and removes the same.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from chalicelib.application.ports import Clock, Retaining, Round, Shelf
from chalicelib.domain import ids, retention
from chalicelib.domain.delivery import Owed
from chalicelib.domain.endpoint import Endpoint, EndpointState

PAGE = 100
LISTED = 1_000
HOUR_MS = 3_600_000
STOP_BEFORE_MS = 15_000
_NEXT_TENANT = "0"  # what comes right after the slash between a tenant and an event


class Chore(StrEnum):
    """The parts of a round, in their order: what is still needed is prolonged before anything is removed."""

    OWED = "owed"
    DEAD = "dead"
    PAYLOADS = "payloads"
    ROWS = "rows"
    TOMBSTONES = "tombstones"


_EVERY_MS = {
    Chore.OWED: HOUR_MS,
    Chore.DEAD: 24 * HOUR_MS,
    Chore.PAYLOADS: HOUR_MS,
    Chore.ROWS: HOUR_MS,
    Chore.TOMBSTONES: 24 * HOUR_MS,
}


@dataclass(frozen=True, slots=True)
class Retained:
    """What one run did. `overdue` counts what should have been gone for two days and is still there."""

    payloads: int = 0
    rows: int = 0
    tombstones: int = 0
    prolonged: int = 0
    overdue: int = 0
    finished: bool = False

    @property
    def removed(self) -> int:
        """Count all that was removed."""
        return self.payloads + self.rows + self.tombstones

    def plus(self, other: "Retained") -> "Retained":
        """Add what another step did."""
        return Retained(
            self.payloads + other.payloads,
            self.rows + other.rows,
            self.tombstones + other.tombstones,
            self.prolonged + other.prolonged,
            self.overdue + other.overdue,
            self.finished or other.finished,
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """One page done: what came of it, and where the chore goes on (empty: it is done)."""

    did: Retained
    after: str = ""


@dataclass(frozen=True, slots=True)
class Retention:
    """Keeps what is needed and removes what is not.

    `sweeps_rows`: rows past their time are removed here, as the store does not do it by itself.
    """

    store: Retaining
    shelf: Shelf
    clock: Clock
    sweeps_rows: bool = False

    def run(self, left_ms: Callable[[], int]) -> Retained:
        """Go on with the round, or begin one, until it is done or there is no time left for another page."""
        now = self._begun(self.store.round())
        did = Retained()
        while now.left and left_ms() > STOP_BEFORE_MS:
            step = self._step(Chore(now.left[0]), now)
            did = did.plus(step.did)
            now = replace(now, cursor=step.after) if step.after else _done(now)
            self.store.note(now)
        return replace(did, finished=not now.left)

    def _begun(self, last: Round) -> Round:
        """Begin a round of the chores that are due, unless one is under way."""
        if last.left:
            return last
        now_ms = self.clock.now_ms()
        chores = [each for each in Chore if each is not Chore.ROWS or self.sweeps_rows]
        # A schedule that comes a moment early still finds what is due hourly.
        soon_ms = now_ms + HOUR_MS // 4
        due = [each.value for each in chores if soon_ms >= last.before.get(each.value, 0) + _EVERY_MS[each]]
        return replace(last, began_ms=now_ms, left=tuple(due), cursor="")

    def _step(self, chore: Chore, now: Round) -> _Step:
        match chore:
            case Chore.OWED:
                return self._keep_owed(now)
            case Chore.DEAD:
                return self._keep_dead(now)
            case Chore.PAYLOADS:
                return self._forget_payloads(now)
            case Chore.ROWS:
                swept = self.store.expire(now.cursor, PAGE, self.clock.now_ms() // 1000)
                return _Step(Retained(rows=swept.removed), swept.after)
            case Chore.TOMBSTONES:
                return self._forget_endpoints(now)
            case _:
                assert_never(chore)

    def _keep_owed(self, now: Round) -> _Step:
        """Prolong the events and the history of what is owed for long."""
        page = self.store.owed(now.cursor, PAGE)
        now_ms = self.clock.now_ms()
        before_ms = now.before.get(Chore.OWED.value, 0)
        aged = [each for each in page.items if retention.looks_again(_born_ms(each), before_ms, now_ms)]
        events = {(each.lane.tenant, each.event_id) for each in aged}
        until_s = retention.owed_payload_until_s(now_ms)
        old = {each: until_s for each in events if _ends_by(each[1], until_s)}
        prolonged = self.store.keep_events(old) if old else 0
        if aged:
            prolonged += self.store.keep_history(aged, retention.history_until_s(now_ms))
        return _Step(Retained(prolonged=prolonged), page.after)

    def _keep_dead(self, now: Round) -> _Step:
        """Prolong the events of dead letters, once each, and count those that should be gone."""
        page = self.store.dead(now.cursor, PAGE)
        new = [each for each in page.items if not each.kept]
        until_s: dict[tuple[str, str], int] = {}
        for each in new:
            event = (each.tenant, each.event_id)
            until_s[event] = max(until_s.get(event, 0), retention.dead_until_s(each.at_ms))
        prolonged = self.store.keep_events(until_s) if new else 0
        if new:
            self.store.mark_kept(new)
        overdue = self._overdue(each.until_s for each in page.items)
        return _Step(Retained(prolonged=prolonged, overdue=overdue), page.after)

    def _forget_payloads(self, now: Round) -> _Step:
        """Forget payloads past their time, and those whose event was never written.

        Keys begin with the tenant and sort by time after it: of each tenant only those are listed that are
        old enough to have expired, and those that have grown out of the first hour since the last round.
        """
        young_ms = now.began_ms - retention.ORPHAN_AFTER_MS
        seen_ms = now.before.get(Chore.PAYLOADS.value, 0) - retention.ORPHAN_AFTER_MS
        keys = self.shelf.listed(now.cursor, LISTED)
        looked_at: list[tuple[str, str]] = []
        for key in keys:
            tenant, _, event_id = key.partition("/")
            if not ids.is_id(event_id, "evt"):
                continue
            born_ms = ids.created_ms(event_id)
            if born_ms > young_ms:
                return self._forgotten(looked_at, tenant + _NEXT_TENANT)
            if born_ms < seen_ms and retention.payload_until_s(born_ms) > now.began_ms // 1000:
                return self._forgotten(looked_at, f"{tenant}/{ids.new_id('evt', seen_ms, 0)}")
            looked_at.append((tenant, event_id))
        return self._forgotten(looked_at, keys[-1] if len(keys) == LISTED else "")

    def _forgotten(self, events: Sequence[tuple[str, str]], after: str) -> _Step:
        """Forget the payloads of these events, but of those that live."""
        living = self.store.living(events, self.clock.now_ms() // 1000) if events else set()
        gone = [f"{tenant}/{event_id}" for tenant, event_id in events if (tenant, event_id) not in living]
        if gone:
            self.shelf.remove(gone)
        return _Step(Retained(payloads=len(gone)), after)

    def _forget_endpoints(self, now: Round) -> _Step:
        """Remove deleted endpoints to which nothing leads any more, and count what should be gone by now."""
        page = self.store.endpoints(now.cursor, PAGE)
        before_ms = self.clock.now_ms() - retention.TOMBSTONE_DAYS * retention.DAY_MS
        oldest = [(each, self.store.oldest_until_s(each)) for each in page.items]
        gone = [each for each, until_s in oldest if until_s is None and _long_deleted(each, before_ms)]
        removed = sum(self.store.forget(each) for each in gone)
        listed = [self.store.listed_until_s(tenant) for tenant in {each.tenant for each in page.items}]
        overdue = self._overdue([until_s for _, until_s in oldest] + listed)
        return _Step(Retained(tombstones=removed, overdue=overdue), page.after)

    def _overdue(self, untils_s: Iterable[int | None]) -> int:
        late_s = self.clock.now_ms() // 1000 - retention.OVERDUE_AFTER_S
        return sum(until_s is not None and until_s <= late_s for until_s in untils_s)


def _done(now: Round) -> Round:
    """Take the first chore off a round."""
    before = {**now.before, now.left[0]: now.began_ms}
    return replace(now, left=now.left[1:], cursor="", before=before)


def _born_ms(owed: Owed) -> int:
    return ids.created_ms(owed.event_id)


def _ends_by(event_id: str, until_s: int) -> bool:
    """Say whether an event may be over before a moment: it is, unless it was prolonged."""
    return retention.payload_until_s(ids.created_ms(event_id)) < until_s


def _long_deleted(endpoint: Endpoint, before_ms: int) -> bool:
    return endpoint.state is EndpointState.DELETED and endpoint.state_ms <= before_ms
