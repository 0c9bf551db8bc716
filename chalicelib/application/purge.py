"""Purging: a tenant with all that is its own, or an endpoint's dead letters, for good.

Begun in one transaction with its record, worked off in small steps that can each be done twice, and noted
after each: killed anywhere it goes on, and of two at once one stops.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from chalicelib.application.auditing import Recorder
from chalicelib.application.endpoints import not_found, stale
from chalicelib.application.ports import Clock, Dice, Endpoints, Purging, Shelf, Unavailable
from chalicelib.domain import audited, ids
from chalicelib.domain.audit import RELAY, Action, Actor, Difference
from chalicelib.domain.endpoint import EndpointState
from chalicelib.domain.purge import LetterPurge, Purge, Stage, Swept
from chalicelib.domain.tenant import Tenant, TenantState

PAGE = 100
LISTED = 1_000
COUNTED_MOST = 20_000
STOP_BEFORE_MS = 10_000
_TRIES = 10


@dataclass(frozen=True, slots=True)
class Ordered:
    """Which dead letters of an endpoint go, by when they were given up on (Unix ms), and how many that is."""

    endpoint_id: str
    before_ms: int
    count: int
    exact: bool


@dataclass(frozen=True, slots=True)
class OrderPurges:
    """What owners and the operator order to be purged."""

    store: Purging
    endpoints: Endpoints
    clock: Clock
    dice: Dice

    def tenant(self, old: Tenant, by: Actor) -> Tenant:
        """Begin to remove all that is a tenant's: from now on it is refused whatever would change something.

        One that is being purged stays as it is; raises RelayError for one that has changed since it was read.
        """
        if old.state is TenantState.PURGING:
            return old
        now_ms = self.clock.now_ms()
        new = replace(old, state=TenantState.PURGING).next_to(old)
        change = Difference({"state": old.state.value}, {"state": new.state.value})
        record = self._recorder.record(by, Action.TENANT_PURGED, (old.id, old.id), change)
        if not self.store.begin(old, new, Purge(old.id, now_ms, now_ms), record):
            raise stale("tenant")
        return new

    def found(self, of: tuple[str, str]) -> tuple[str, str]:
        """Give an endpoint's (tenant, id) again if there is one, even deleted, or raise RelayError."""
        tenant, endpoint_id = of
        if not ids.is_id(endpoint_id, "ep") or self.endpoints.get(tenant, endpoint_id) is None:
            raise not_found("endpoint", endpoint_id)
        return of

    def dead_letters(self, of: tuple[str, str], before_ms: int | None, by: Actor) -> Ordered:
        """Begin to remove an endpoint's dead letters, those given up on before a moment if it is said.

        Those of a deleted endpoint go as well.
        """
        tenant, endpoint_id = self.found(of)
        for _ in range(_TRIES):
            now_ms = self.clock.now_ms()
            until_ms = now_ms if before_ms is None else min(before_ms, now_ms)
            count, exact = self.store.count_letters(tenant, endpoint_id, until_ms, COUNTED_MOST)
            old = self.store.letters(tenant, endpoint_id)
            new = old.again(until_ms, now_ms) if old else LetterPurge(*of, until_ms, now_ms)
            change = audited.letters_purged(until_ms, count, exact=exact)
            record = self._recorder.record(by, Action.DEAD_LETTERS_PURGED, of, change)
            if self.store.begin_letters(old, new, record):
                return Ordered(endpoint_id, until_ms, count, exact)
        raise Unavailable("the endpoint's purge changed too often")

    @property
    def _recorder(self) -> Recorder:
        return Recorder(self.clock, self.dice)


@dataclass(frozen=True, slots=True)
class Purged:
    """What one run did."""

    rows: int = 0
    payloads: int = 0
    tenants: int = 0
    dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class PurgeAll:
    """Works purges off.

    `quiet_ms` is how long a request, a function and what a process remembers of a key can last together.
    """

    store: Purging
    endpoints: Endpoints
    shelf: Shelf
    clock: Clock
    dice: Dice
    quiet_ms: int

    def run(self, left_ms: Callable[[], int]) -> Purged:
        """Go on with every purge that is due, as far as there is time."""
        did = Purged()
        for letters in self.store.letters_waiting():
            did = self._letters(letters, did, left_ms)
        for purge in self.store.waiting():
            did = self._tenant(purge, did, left_ms)
        return did

    def _letters(self, purge: LetterPurge, did: Purged, left_ms: Callable[[], int]) -> Purged:
        while not purge.done and left_ms() > STOP_BEFORE_MS:
            step = self.store.sweep_letters(purge, PAGE)
            did = replace(did, dead_letters=did.dead_letters + step.removed)
            new = purge.after(step)
            if not self.store.note_letters(purge, new):
                break
            purge = new
        return did

    def _tenant(self, purge: Purge, did: Purged, left_ms: Callable[[], int]) -> Purged:
        while purge.due_ms <= self.clock.now_ms() and left_ms() > STOP_BEFORE_MS:
            step = self._step(purge)
            new = purge.after(step, self.clock.now_ms(), self.quiet_ms)
            if new is None:
                return replace(did, tenants=did.tenants + self._finish(purge, step))
            if not self.store.note(purge, new):
                break
            rows, payloads = new.rows - purge.rows, new.payloads - purge.payloads
            did = replace(did, rows=did.rows + rows, payloads=did.payloads + payloads)
            purge = new
        return did

    def _step(self, purge: Purge) -> Swept:
        if purge.stage is Stage.CLOSING:
            return self._close(purge)
        if purge.stage is Stage.PAYLOADS:
            return self._forget(purge)
        return self.store.sweep(purge, PAGE)

    def _close(self, purge: Purge) -> Swept:
        """Delete some endpoints: nothing is fanned out to them any more, and nothing owed is sent."""
        page = self.endpoints.page(purge.tenant, "", PAGE)
        closed = 0
        recorder = Recorder(self.clock, self.dice)
        for each in page.items:
            gone = replace(each, state=EndpointState.DELETED).next_to(each, self.clock.now_ms())
            change = audited.endpoint_change(each, gone)
            record = recorder.record(RELAY, Action.ENDPOINT_DELETED, (each.tenant, each.id), change)
            closed += self.endpoints.replace(each, gone, record)
        return Swept(closed, "more" if page.items else "")

    def _forget(self, purge: Purge) -> Swept:
        """Remove some payloads; their keys begin with the tenant."""
        begin = f"{purge.tenant}/"
        keys = [each for each in self.shelf.listed(begin, LISTED) if each.startswith(begin)]
        if keys:
            self.shelf.remove(keys)
        return Swept(len(keys), "more" if len(keys) == LISTED else "")

    def _finish(self, purge: Purge, step: Swept) -> bool:
        removed = {"rows": purge.rows + step.removed, "payloads": purge.payloads}
        change = Difference({"state": TenantState.PURGING.value}, {"state": "purged", **removed})
        recorder = Recorder(self.clock, self.dice)
        of = (purge.tenant, purge.tenant)
        return self.store.finish(purge, recorder.record(RELAY, Action.TENANT_PURGED, of, change))
