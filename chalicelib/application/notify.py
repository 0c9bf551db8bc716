"""Notify: owners are told what will not arrive. Looks only at endpoints whose gates are marked.

What is to be told is written down before it is published, and marked after: killed between the two, the next
run publishes the same notice once more, and no notice is lost. Two at once publish nothing twice: the
one that writes down is the one that publishes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chalicelib.application.ports import Clock, Dice, Unavailable
from chalicelib.application.ports.noticing import Alert, Announcer, Noticing
from chalicelib.domain import ids
from chalicelib.domain.notice import (
    Decision,
    Letters,
    Notice,
    NoticeKind,
    NoticeRules,
    Sight,
    Told,
    decide,
    wants_letters,
)

LETTERS_MAX = 50_000
LIFE_MS = 40_000
"""A run begins nothing after that long; its function has a minute."""
CLAIM_MS = 120_000
"""So long one run alone publishes an endpoint's notices: it is dead by then, and its clock may be behind."""
AT_ONCE = 20
"""So many notices of one endpoint are published in a run."""
SILENT_AFTER = 3
"""So many refusals of the channel in a row, and a run publishes nothing more."""


@dataclass(slots=True)
class Notified:
    """What one run did: endpoints looked at, notices written down and published, and what failed.

    `kinds` counts by their kind those that were published.
    """

    looked: int = 0
    raised: int = 0
    published: int = 0
    delayed: int = 0
    failures: list[Unavailable] = field(default_factory=list)
    refused: int = 0
    kinds: Counter[NoticeKind] = field(default_factory=Counter)

    @property
    def silent(self) -> bool:
        """Say whether the channel takes nothing."""
        return self.refused >= SILENT_AFTER


@dataclass(frozen=True, slots=True)
class Notify:
    """Tells owners; killed anywhere it goes on, and two at once do no harm."""

    noticing: Noticing
    announcer: Announcer
    clock: Clock
    dice: Dice
    rules: NoticeRules

    def run(self) -> Notified:
        """Look once at every endpoint that is marked, for as long as a function may."""
        done = Notified()
        ends_ms = self.clock.now_ms() + LIFE_MS
        for alert in self.noticing.alerts(self.clock.now_us()):
            if self.clock.now_ms() > ends_ms:
                break
            try:
                self._endpoint(alert, done)
            except Unavailable as error:
                done.failures.append(error)
        return done

    def _endpoint(self, alert: Alert, done: Notified) -> None:
        done.looked += 1
        now_ms = self.clock.now_ms()
        sight = self.noticing.look(alert)
        if sight is None:
            self.noticing.looked(alert, self.clock.now_us(), None)
            return
        if sight.told.unsent and sight.told.claimed_ms > now_ms:
            return
        decision = decide(sight, self._letters(alert, sight, now_ms), now_ms, self.rules)
        told = self._told(alert, sight.told, decision, now_ms, done)
        if told is None:
            return
        waits = self._publish(alert, told, done) if told.claimed_ms else bool(told.unsent)
        again_ms = now_ms if waits else decision.again_ms
        self.noticing.looked(alert, now_ms * 1000, None if again_ms is None else again_ms * 1000)

    def _letters(self, alert: Alert, sight: Sight, now_ms: int) -> Letters:
        if not wants_letters(sight, now_ms):
            return Letters()
        return self.noticing.letters(alert.tenant, alert.endpoint_id, LETTERS_MAX)

    def _told(
        self, alert: Alert, before: Told, decision: Decision, now_ms: int, done: Notified
    ) -> Told | None:
        """Write down what was decided, and claim what has to be published; None: another run was first."""
        notices = [
            Notice(alert.tenant, self._new_id(now_ms, place), alert.endpoint_id, now_ms, finding)
            for place, finding in enumerate(decision.findings)
        ]
        unsent = (*before.unsent, *(each.id for each in notices))
        claimed_ms = now_ms + CLAIM_MS if unsent and not done.silent else 0
        told = replace(decision.told, unsent=unsent, claimed_ms=claimed_ms)
        if told == before:
            return before
        written = self.noticing.tell(alert, before, told, notices, ())
        done.raised += len(notices) if written else 0
        return written

    def _publish(self, alert: Alert, told: Told, done: Notified) -> bool:
        """Publish what is claimed, oldest first, and mark what was taken; say whether some is left."""
        turn = told.unsent[:AT_ONCE]
        waiting = self.noticing.notices(alert.tenant, turn)
        taken = [replace(each, published_ms=self.clock.now_ms()) for each in self._taken(waiting, done)]
        done.delayed += len(waiting) - len(taken)
        refused = {each.id for each in waiting} - {each.id for each in taken}
        left = tuple(each for each in told.unsent if each in refused or each not in turn)
        written = self.noticing.tell(alert, told, replace(told, unsent=left, claimed_ms=0), (), taken)
        return written is None or bool(left)

    def _taken(self, waiting: Sequence[Notice], done: Notified) -> list[Notice]:
        taken = []
        for notice in waiting:
            try:
                self.announcer.publish(notice)
            except Unavailable as error:
                done.failures.append(error)
                done.refused += 1
                break
            done.refused = 0
            taken.append(notice)
            done.kinds[notice.finding.kind] += 1
        done.published += len(taken)
        return taken

    def _new_id(self, now_ms: int, place: int) -> str:
        """Name a notice so that it sorts as it was found."""
        return ids.new_id("ntc", now_ms + place, self.dice.bits(ids.ENTROPY_BITS))
