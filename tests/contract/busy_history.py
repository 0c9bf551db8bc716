"""An endpoint whose history is written while somebody reads it: what can happen, and what lists show."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TypeVar

from chalicelib.adapters.dynamodb import keys, rows
from chalicelib.adapters.dynamodb.notice_rows import notice_row
from chalicelib.adapters.dynamodb.records import Insert
from chalicelib.application.ports import Extent, Owing, Page
from chalicelib.application.questions import Questions
from chalicelib.application.replay import ancestor
from chalicelib.domain import ids
from chalicelib.domain.delivery import Again, Created, Owed, Status, given_up
from chalicelib.domain.gate import HoldReason, Spell
from chalicelib.domain.notice import Finding, Notice, NoticeKind
from chalicelib.domain.outcome import DeathReason
from chalicelib.domain.replay import next_generation
from tests.contract.given import (
    HOUR_MS,
    NOW_MS,
    NOW_US,
    TENANT,
    Stores,
    capture,
    endpoint,
    event,
    failure,
    later,
    success,
    uncounted,
)
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_payloads import MemoryPayloads

T = TypeVar("T")
Walk = Callable[[Extent], Page[str]]
LATER_MS = NOW_MS + HOUR_MS
TAKERS = 12
WIDELY_FANNED_OUT = 900_000


class BusyHistory:
    """One endpoint, and an event of many endpoints; each act takes a number that says to what it is done."""

    def __init__(self, stores: Stores) -> None:
        """Begin with an endpoint that has nothing, and an event that nobody has got yet."""
        self.stores = stores
        self.questions = Questions(stores.reading, stores.endpoints, MemoryPayloads(), FixedClock(LATER_MS))
        self.to = endpoint(TAKERS + 1)
        self.made = TAKERS + 1
        self.owed: list[Owed] = []
        self.ended: list[Owed] = []
        self.left = [endpoint(number) for number in range(TAKERS)]
        self.wide = event(WIDELY_FANNED_OUT)
        for each in (self.to, *self.left):
            stores.endpoints.create(each)
        stores.capturing.commit([later(self.wide)], NOW_MS // 1000)

    def beside(self, stores: Stores) -> "BusyHistory":
        """Give the same endpoint as another process sees it, that touches only what it has posted itself."""
        other = copy(self)
        other.stores, other.owed, other.ended, other.left = stores, [], [], []
        other.questions = replace(self.questions, reading=stores.reading, endpoints=stores.endpoints)
        return other

    def post(self, number: int) -> None:
        """Accept an event; as clocks and late fan-outs go, it may sort before what is there already."""
        self.made += 1
        one = capture(event(self.made, at_ms=NOW_MS + number * 997 % 4_000_000 - 2_000_000), [self.to])
        self.stores.capturing.commit([one], NOW_MS // 1000)
        self.owed.append(one.owing[0].owed)

    def fail(self, number: int) -> None:
        """Try one in vain, which is then due again."""
        if self.owed:
            place = number % len(self.owed)
            row = self.owed[place]
            ready_ms = row.ready_ms + 5_000
            moved = replace(row, made=row.made + 1, counted=row.counted + 1, ready_ms=ready_ms)
            self.stores.work.move([(row, Again(failure(row, NOW_MS + number), moved))])
            self.owed[place] = moved

    def arrive(self, number: int) -> None:
        """Let one arrive."""
        if self.owed:
            row = self.owed.pop(number % len(self.owed))
            self.stores.work.insert([(row, success(row, NOW_MS + number))])
            self.stores.work.close(uncounted(row), [])
            self.ended.append(row)

    def die(self, number: int) -> None:
        """Give one up."""
        if self.owed:
            row = self.owed.pop(number % len(self.owed))
            self.stores.work.move([(row, given_up(row, DeathReason.SKIPPED, NOW_MS + number))])
            self.ended.append(row)

    def replay(self, number: int) -> None:
        """Begin the next generation of one that has ended."""
        if self.ended:
            row = self.ended.pop(number % len(self.ended))
            found = self.stores.reading.delivery(TENANT, self.to.id, row.delivery_id, NOW_US)
            assert found is not None
            following = Owing(*next_generation(ancestor(TENANT, found, "order.paid"), LATER_MS))
            self.stores.replaying.begin(following, LATER_MS)
            self.owed.append(following.owed)

    def hold(self, number: int) -> None:
        """Note a hold in history, and tell the owner of something."""
        spell = Spell(HoldReason.RATE_LIMIT, NOW_US + number, NOW_US + number + 1)
        self.stores.work.insert([], [((TENANT, self.to.id), spell)])
        self.made += 1
        finding = Finding(NoticeKind.DEAD_LETTERS, NOW_MS, NOW_MS, {}, complete=True)
        notice_id = ids.new_id("ntc", NOW_MS + number, self.made)
        notice = Notice(TENANT, notice_id, self.to.id, NOW_MS, finding)
        self.stores.tables.each([Insert(keys.notice(TENANT, notice_id), notice_row(notice))])

    def spread(self, number: int) -> None:
        """Fan the event of many endpoints out to one more, in whichever order."""
        if self.left:
            to = self.left.pop(number % len(self.left))
            delivery = ids.delivery_id(self.wide.id, to.id)
            created = Created(delivery, 0, self.wide.id, self.wide.type, "0", NOW_MS)
            at = keys.attempt(TENANT, to.id, (delivery, 0, keys.CREATED_NUMBER))
            self.stores.tables.each([Insert(at, rows.created_row(created))])

    def register(self, _: int) -> None:
        """Register another endpoint."""
        self.made += 1
        self.stores.endpoints.create(endpoint(self.made, event_types=("other",)))

    def lists(self) -> dict[str, Walk]:
        """Give every list, as pages of names."""
        asked, reading = self.questions, self.stores.reading

        def of_status(status: Status | None) -> Walk:
            return lambda extent: _names(
                asked.deliveries(TENANT, self.to.id, extent, status), lambda each: each.delivery_id
            )

        def of_event(extent: Extent) -> Page[str]:
            page = asked.deliveries_of_event(TENANT, self.wide.id, extent.after, extent.limit)
            return _names(page, lambda each: each.endpoint_id)

        def endpoints(extent: Extent) -> Page[str]:
            page = self.stores.endpoints.page(TENANT, extent.after, extent.limit)
            return _names(page, lambda each: each.id)

        def notices(extent: Extent) -> Page[str]:
            page = self.stores.noticing.page(TENANT, extent.after, extent.limit, NOW_MS)
            return _names(page, lambda each: each.id)

        return {
            "deliveries": of_status(None),
            **{f"{status.value} deliveries": of_status(status) for status in Status},
            "attempts": lambda extent: _names(
                asked.attempts(TENANT, self.to.id, extent), lambda each: each.key
            ),
            "dead letters": lambda extent: _names(
                asked.dead_letters(TENANT, self.to.id, extent),
                lambda each: f"{each.ended.delivery_id} {each.ended.generation}",
            ),
            "events": lambda extent: _names(
                reading.events(TENANT, extent, NOW_MS), lambda each: each.event.id
            ),
            "deliveries of an event": of_event,
            "endpoints": endpoints,
            "notices": notices,
        }


ACTS: Sequence[Callable[[BusyHistory, int], None]] = (
    BusyHistory.post,
    BusyHistory.post,
    BusyHistory.fail,
    BusyHistory.arrive,
    BusyHistory.die,
    BusyHistory.replay,
    BusyHistory.hold,
    BusyHistory.spread,
    BusyHistory.register,
)


def pages(walk: Walk, limit: int) -> Iterator[tuple[str, ...]]:
    """Walk a list to its end, page by page."""
    after = ""
    while True:
        page = walk(Extent(after, limit))
        yield page.items
        after = page.after
        if not after:
            return


def whole(walk: Walk) -> list[str]:
    """Read a whole list."""
    return [each for page in pages(walk, 200) for each in page]


def _names(page: Page[T], name: Callable[[T], str]) -> Page[str]:
    return Page(tuple(name(each) for each in page.items), page.after)
