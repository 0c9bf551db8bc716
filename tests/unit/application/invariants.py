"""The invariants of DESIGN §9, as far as one look at what is stored and was sent can tell."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from chalicelib.adapters.dynamodb import keys
from chalicelib.domain import gate as gates
from chalicelib.domain import ids
from chalicelib.domain.delivery import Attempt, Created, Ended, HistoryRow
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.event import is_test
from chalicelib.domain.outcome import Outcome
from tests.unit.application.world import World, generation_of, number_of

Generation = tuple[str, int]


def check(world: World) -> None:
    """Hold the world to conservation, exclusion and slots."""
    history: dict[Generation, list[HistoryRow]] = defaultdict(list)
    for row in world.all_history():
        history[row.delivery_id, row.generation].append(row)
    check_conservation(world, history)
    check_attempts(world, history)
    for record in world.records_of(keys.GATES):
        gate = gates.read(record)
        assert gate.slots + gate.held_slots == gate.cap, "slots leak"


def check_conservation(world: World, history: Mapping[Generation, Sequence[HistoryRow]]) -> None:
    """Hold to invariant 1: what was created, each generation, is owed or has ended, never neither."""
    owed = [(each.delivery_id, each.generation) for each in world.owed()]
    assert len(owed) == len(set(owed)), "a delivery is owed twice"
    assert all(isinstance(told[0], Created) for told in history.values()), "a delivery was never created"
    ended = {delivery for delivery, told in history.items() if _has_ended(told[-1])}
    assert history.keys() == ended | set(owed), "a delivery is neither owed nor ended"
    assert all(not _has_ended(row) for told in history.values() for row in told[:-1]), "it ended twice"


def check_attempts(world: World, history: Mapping[Generation, Sequence[HistoryRow]]) -> None:
    """Hold to invariant 2: no delivery is sent by two at once, no number is used twice or left out."""
    attempts = {
        delivery: [each for each in told if isinstance(each, Attempt)] for delivery, told in history.items()
    }
    sent: dict[Generation, list[int]] = defaultdict(list)
    for each in world.sender.sent:
        sent[each.delivery_id, generation_of(each)].append(number_of(each))
    for delivery, told in attempts.items():
        assert [each.number for each in told] == list(range(1, len(told) + 1)), "a number is missing"
        numbers = sent[delivery]
        assert len(numbers) == len(set(numbers)), "an attempt number was used twice"
        assert max(numbers, default=0) <= len(told) + 1, "an attempt was left out"
    for owed in world.owed():
        told = attempts[owed.delivery_id, owed.generation]
        arrived = bool(told) and told[-1].outcome is Outcome.SUCCESS
        assert owed.made == len(told) - arrived, "an owed row and history differ"
    assert not world.sender.doubled, "a delivery was sent by two at once"


def check_pace(world: World, endpoint: Endpoint) -> None:
    """Hold to invariant 4: in any stretch no more is admitted than the burst and the rate allow."""
    limits = endpoint.limits
    admitted = [each for each in world.admitted if each.endpoint_id == endpoint.id]
    admitted.sort(key=lambda each: each.at_us)
    for first, begin in enumerate(admitted):
        count = 0
        for each in admitted[first:]:
            count += each.count
            most = limits.burst + limits.rate_per_second * (each.at_us - begin.at_us) / 1_000_000
            assert count <= most, "faster than its rate"


def check_turn(world: World, endpoint: Endpoint) -> None:
    """Hold to invariant 5 as a request leaves: of its ordered lane nothing earlier is owed.

    A replay stands in no line.
    """
    owed = [each for each in world.owed() if each.lane.endpoint_id == endpoint.id and each.lane.ordered]
    line = {each.delivery_id: each.sequence for each in owed}
    sent = world.sender.in_flight[-1]
    if sent in line and not generation_of(world.sender.sent[-1]):
        assert line[sent] == min(line.values()), "sent while an earlier one is owed"


def check_first_receipts(world: World, endpoint: Endpoint) -> None:
    """Hold an ordered endpoint's first receipts to the order of its events; a test stands in no line."""
    created = [row for row in world.all_history() if isinstance(row, Created)]
    place = {row.delivery_id: row.sequence for row in created if not is_test(row.event_type)}
    tag = ids.endpoint_tag(endpoint.id)
    seen = dict.fromkeys(
        each.delivery_id for each in world.sender.sent if ids.tag_of(each.delivery_id) == tag
    )
    places = [place[each] for each in seen if each in place]
    assert places == sorted(places), "one was first received after a later one"


def unknowns(world: World, endpoint: Endpoint) -> int:
    """Count the attempts at an endpoint whose outcome nobody knows."""
    tag = ids.endpoint_tag(endpoint.id)
    told = [row for row in world.all_history() if isinstance(row, Attempt)]
    return sum(row.outcome is Outcome.UNKNOWN and ids.tag_of(row.delivery_id) == tag for row in told)


def _has_ended(row: HistoryRow) -> bool:
    arrived = isinstance(row, Attempt) and row.outcome is Outcome.SUCCESS
    return arrived or isinstance(row, Ended)
