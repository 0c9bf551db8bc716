"""Retention: prolongs what is still needed, then removes what is not.

It has a few chores, each done page by page; how far one has come is written down after every page, and each
page can be done twice. Killed anywhere, or run twice at once, it keeps and removes the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from chalicelib.application.ports import Clock, Retaining, Shelf, Stand, Unavailable
from chalicelib.domain import ids, retention
from chalicelib.domain.delivery import Owed
from chalicelib.domain.endpoint import Endpoint, EndpointState

PAGE = 100
LISTED = 1_000
HOUR_MS = 3_600_000
STOP_BEFORE_MS = 15_000
_NEXT_TENANT = "0"  # what comes right after the slash between a tenant and an event


class Chore(StrEnum):
    """What is to be done, in this order: what is still needed is prolonged before anything is removed."""

    OWED = "owed"
    DEAD = "dead"
    PAYLOADS = "payloads"
    ROWS = "rows"
    TOMBSTONES = "tombstones"


BEHIND_AFTER_MS = 48 * HOUR_MS
_PROLONGING = (Chore.OWED, Chore.DEAD)
_EVERY_MS = {
    Chore.OWED: 6 * HOUR_MS,
    Chore.DEAD: 24 * HOUR_MS,
    Chore.PAYLOADS: HOUR_MS,
    Chore.ROWS: HOUR_MS,
    Chore.TOMBSTONES: 24 * HOUR_MS,
}


@dataclass(frozen=True, slots=True)
class Retained:
    """What one run did. `overdue` counts what should have been gone for two days and is still there.

    `failed` counts chores that could not go on, `finished` says that none is left under way.
    """

    payloads: int = 0
    rows: int = 0
    tombstones: int = 0
    prolonged: int = 0
    overdue: int = 0
    failed: int = 0
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
            self.failed + other.failed,
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
        """Do the chores that are due or under way until there is no time left for another page.

        One that the store fails is left where it is for the next run; the others go on. Nothing is removed
        while it is long ago that everything needed was prolonged.
        """
        stands = {**dict.fromkeys(map(str, Chore), Stand()), **self.store.stands()}
        now_ms = self.clock.now_ms()
        did, left = Retained(), 0
        for chore in Chore:
            stand = _begun(chore, stands[chore], now_ms)
            if stand is None or (chore is Chore.ROWS and not self.sweeps_rows):
                continue
            if chore not in _PROLONGING and _behind(stands, now_ms):
                left += 1
                continue
            done, stands[chore] = self._go_on(chore, stand, left_ms)
            did = did.plus(done)
            left += not done.finished
        return replace(did, finished=not left)

    def _go_on(self, chore: Chore, stand: Stand, left_ms: Callable[[], int]) -> tuple[Retained, Stand]:
        """Do a chore page by page, and note after each how far it has come."""
        did = Retained()
        while left_ms() > STOP_BEFORE_MS:
            try:
                step = self._step(chore, stand)
                goes_on = replace(stand, cursor=step.after)
                stand = goes_on if step.after else Stand(before_ms=stand.began_ms)
                self.store.note(chore.value, stand)
            except Unavailable:
                return did.plus(Retained(failed=1)), stand
            did = did.plus(step.did)
            if not step.after:
                return replace(did, finished=True), stand
        return did, stand

    def _step(self, chore: Chore, now: Stand) -> _Step:
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

    def _keep_owed(self, now: Stand) -> _Step:
        """Prolong the events and the history of what is owed for long."""
        page = self.store.owed(now.cursor, PAGE)
        now_ms = self.clock.now_ms()
        aged = [each for each in page.items if retention.looks_again(_born_ms(each), now.before_ms, now_ms)]
        events = {(each.lane.tenant, each.event_id) for each in aged}
        until_s = retention.owed_payload_until_s(now_ms)
        old = {each: until_s for each in events if _ends_by(each[1], until_s)}
        prolonged = self.store.keep_events(old) if old else 0
        if aged:
            prolonged += self.store.keep_history(aged, retention.history_until_s(now_ms))
        return _Step(Retained(prolonged=prolonged), page.after)

    def _keep_dead(self, now: Stand) -> _Step:
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

    def _forget_payloads(self, now: Stand) -> _Step:
        """Forget payloads past their time, and those whose event was never written.

        Keys begin with the tenant and sort by time after it: of each tenant only those are listed that are
        old enough to have expired, and those that have grown out of the first hour since the last round.
        """
        young_ms = now.began_ms - retention.ORPHAN_AFTER_MS
        seen_ms = now.before_ms - retention.ORPHAN_AFTER_MS
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

    def _forget_endpoints(self, now: Stand) -> _Step:
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


def _begun(chore: Chore, stand: Stand, now_ms: int) -> Stand | None:
    """Go on with a chore that is under way, or begin one that is due; None: it is neither."""
    if stand.cursor:
        return stand
    # A schedule that comes a moment early still finds what is due hourly.
    due = now_ms + HOUR_MS // 4 >= stand.before_ms + _EVERY_MS[chore]
    return replace(stand, began_ms=now_ms) if due else None


def _behind(stands: Mapping[str, Stand], now_ms: int) -> bool:
    """Say whether it is long ago that a chore came to its end which prolongs what is needed."""
    return any(stands[each].before_ms < now_ms - BEHIND_AFTER_MS for each in _PROLONGING)


def _born_ms(owed: Owed) -> int:
    return ids.created_ms(owed.event_id)


def _ends_by(event_id: str, until_s: int) -> bool:
    """Say whether an event may be over before a moment: it is, unless it was prolonged."""
    return retention.payload_until_s(ids.created_ms(event_id)) < until_s


def _long_deleted(endpoint: Endpoint, before_ms: int) -> bool:
    return endpoint.state is EndpointState.DELETED and endpoint.state_ms <= before_ms
