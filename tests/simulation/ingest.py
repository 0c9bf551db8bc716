"""The API's side: producers post, events are captured and lanes rung; matching and capture are modelled.

What a lane is, what an event owes and which lanes are rung is decided by the real code.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chalicelib.application import fan_out
from chalicelib.application.ports import Bell, Owing
from chalicelib.domain import ids
from tests.simulation.loop import ACCEPTING
from tests.simulation.numbers import MS, SECOND
from tests.simulation.receivers import Chosen, Receiver

if TYPE_CHECKING:
    from chalicelib.domain.gate import Gate
    from tests.simulation.relay import Relay

LOOK_AGAIN_MS, TRUSTED_MS, LOOKED_AT = 1_000, 2_000, 99
ARM_AHEAD_MS, ARM_ENOUGH_MS = 3_600_000 + 600_000, 600_000
CONNECTIONS, LOOKS_EVERY = 12, 5 * MS
TYPE = "load"


class Api:
    """A copy of the API's function: when it last saw which endpoint's gate, and what of it mattered."""

    def __init__(self, _: "Relay") -> None:
        """Have seen nothing."""
        self.seen: dict[int, tuple[int, Gate | None]] = {}
        self.armed: set[int] = set()


class Producers:
    """Posts for every tenant at its rate, whenever it comes to that."""

    def __init__(self, relay: "Relay") -> None:
        """Share a run's endpoints out among tenants."""
        load = relay.numbers.load
        self._relay = relay
        self._dice = relay.producers_dice
        by_tenant: dict[str, list[Receiver]] = {}
        for each in relay.receivers:
            by_tenant.setdefault(each.endpoint.tenant, []).append(each)
        self._tenants = [by_tenant[name] for name in sorted(by_tenant)]
        self._chosen = [Chosen([each.per_s for each in some]) for some in self._tenants]
        events = [each.total / (1 + load.second_taker) for each in self._chosen]
        self._posts = [10 if each >= load.tens_from else 1 for each in events]
        self._requests = Chosen([each / post for each, post in zip(events, self._posts, strict=True)])
        self.watched = {
            some[0].endpoint.tenant for some, each in zip(self._tenants, events, strict=True) if each > 500
        }
        self._turn = -1
        self._under_way = self._posting = 0
        relay.loop.at(relay.loop.now, self._fill if load.under_way else self._next)

    def answered(self) -> None:
        """Note that a request of a producer who waits for its answer has been answered."""
        self._posting -= 1

    def arrived(self) -> None:
        """Note that a delivery has arrived."""
        self._under_way -= 1

    def _fill(self) -> None:
        """Post as much as may be under way, over as many connections as there are."""
        while (
            self._posting < CONNECTIONS
            and self._under_way + self._posts[0] <= self._relay.numbers.load.under_way
        ):
            self._posting += 1
            self._under_way += self._posts[0]
            self._relay.request([self._event(0) for _ in range(self._posts[0])])
        self._relay.loop.at(self._relay.loop.now + LOOKS_EVERY, self._fill)

    def _next(self) -> None:
        tenant = self._requests.draw(self._dice)
        self._relay.request([self._event(tenant) for _ in range(self._posts[tenant])])
        even = not self._relay.numbers.load.skew
        total = self._requests.total
        wait = 1 / total if even else self._dice.expovariate(total)
        self._relay.loop.at(self._relay.loop.now + int(wait * SECOND), self._next)

    def _event(self, tenant: int) -> tuple[int, list[Receiver]]:
        """Give an event's entropy and whom it goes to."""
        some, chosen = self._tenants[tenant], self._chosen[tenant]
        if not self._relay.numbers.load.skew:
            self._turn = (self._turn + 1) % len(some)
            return self._dice.getrandbits(ids.ENTROPY_BITS), [some[self._turn]]
        takers = [some[chosen.draw(self._dice)]]
        if self._dice.random() < self._relay.numbers.load.second_taker:
            other = some[chosen.draw(self._dice)]
            takers += [other] if other is not takers[0] else []
        return self._dice.getrandbits(ids.ENTROPY_BITS), takers


class Ingest:
    """Accepts what was posted, on a copy of the API's function."""

    def __init__(self, relay: "Relay") -> None:
        """Accept for a run."""
        self._relay = relay

    def accept(self, api: Api, posted: Sequence[tuple[int, list[Receiver]]], starts: int) -> int:
        """Accept a request that a copy begins with after so long; how long it takes in all."""
        relay, costs = self._relay, self._relay.numbers.latencies
        relay.figures.counts["ingest get"] += 1
        relay.figures.counts["ingest transaction"] += 1
        began = (
            relay.loop.now + starts + relay.loop.done_after(relay.numbers.cost.event * len(posted), ACCEPTING)
        )
        rows = 2 * sum(len(takers) for _, takers in posted) + len(posted)
        writing = costs.get + costs.transaction + rows * costs.per_item
        committed = began + relay.loop.done_after(writing, ACCEPTING)
        relay.loop.at(committed, self._commit, api, posted, began // MS)
        return committed + costs.send - relay.loop.now

    def _commit(self, api: Api, posted: Sequence[tuple[int, list[Receiver]]], received_ms: int) -> None:
        relay = self._relay
        owing: list[Owing] = []
        crowd: list[Receiver] = []
        takers: dict[int, Receiver] = {}
        for entropy, some in posted:
            relay.posted(some[0].endpoint.tenant)
            for each in some:
                if not relay.mine(each):
                    continue
                if each.in_crowd:
                    relay.crowd.owe(each, received_ms)
                    crowd.append(each)
                    continue
                event = ids.new_id("evt", received_ms, entropy)
                owing += fan_out.plan(each.endpoint.tenant, event, TYPE, [each.subscriber])
                takers[each.number] = each
        if owing or crowd:
            self._look(api, takers)
            relay.store.owe(each.owed for each in owing)
            for one in owing:
                relay.store.written(one.owed)
            relay.loop.at(
                relay.loop.now + relay.numbers.latencies.send, self._ring, api, (owing, crowd), takers
            )

    def _look(self, api: Api, takers: dict[int, Receiver]) -> None:
        """Look at the gates of those that this copy knew before, and arm those that it did not."""
        relay, now_ms = self._relay, self._relay.loop.now_ms()
        for number, each in takers.items():
            if number in api.seen and now_ms - api.seen[number][0] >= LOOK_AGAIN_MS:
                api.seen[number] = (now_ms, relay.gate_seen(each))
            if number not in api.armed:
                api.armed.add(number)
                relay.store.arm(each.owner, now_ms + ARM_AHEAD_MS)

    def _ring(
        self, api: Api, due: tuple[Sequence[Owing], Sequence[Receiver]], takers: dict[int, Receiver]
    ) -> None:
        relay, now_ms = self._relay, self._relay.loop.now_ms()
        seen: dict[tuple[str, str], Gate] = {}
        for number, each in takers.items():
            at_ms, gate = api.seen.setdefault(number, (now_ms - LOOK_AGAIN_MS, None))
            if gate is not None and now_ms - at_ms < TRUSTED_MS:
                seen[each.owner] = gate
        owing, crowd = due
        bells = fan_out.bells_for(owing, now_ms, seen)
        bells += [Bell(lane, now_ms) for lane in dict.fromkeys(each.lane for each in crowd)]
        for queue, some in relay.by_queue(bells).items():
            relay.figures.counts["ingest send"] += -(-len(some) // 10)
            relay.ring(queue, some, "fresh bells")
