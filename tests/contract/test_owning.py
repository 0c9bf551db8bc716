"""The registry of relay nodes: a session has one owner, whatever dies, pauses or races."""

from functools import partial

import pytest

from chalicelib.adapters.dynamodb.owning import DynamoOwners, Node
from chalicelib.adapters.dynamodb.records import Tables
from chalicelib.application.ports import Elsewhere, Unavailable
from tests.contract.given import without_moto
from tests.contract.test_under_threads import at_once
from tests.fakes.fixed_clock import FixedClock

LEASE_MS = 10_000


def _node(tables: Tables, clock: FixedClock, name: str) -> DynamoOwners:
    owners = DynamoOwners(tables, clock, Node(name, f"{name}.test:4000"), LEASE_MS)
    owners.begin()
    return owners


def test_who_claims_first_owns_and_others_are_told_where(tables: Tables) -> None:
    clock = FixedClock()
    one, two = (_node(tables, clock, name) for name in ("one", "two"))
    assert one.find("s") is None
    assert one.claim("s") == 1
    assert two.claim("s") == Elsewhere("one.test:4000")
    assert two.find("s") == Elsewhere("one.test:4000")
    assert one.find("s") is None


def test_nodes_count_as_long_as_their_leases_run(tables: Tables) -> None:
    clock = FixedClock()
    one, two = (_node(tables, clock, name) for name in ("one", "two"))
    assert one.renew() == 2
    clock.advance(ms=LEASE_MS - 1)
    two.renew()
    clock.advance(ms=1)
    assert two.renew() == 1
    assert one.renew() is None
    assert one.begin() == 2
    one.retire()
    assert two.renew() == 1


def test_a_session_is_taken_over_when_its_owners_lease_is_over_and_not_before(tables: Tables) -> None:
    clock = FixedClock()
    one, two = (_node(tables, clock, name) for name in ("one", "two"))
    one.claim("s")
    clock.advance(ms=LEASE_MS - 1)
    two.renew()
    assert two.claim("s") == Elsewhere("one.test:4000")
    clock.advance(ms=1)
    assert two.claim("s") == 2
    assert one.renew() is None
    one.begin()
    assert one.claim("s") == Elsewhere("two.test:4000")


def test_a_lease_that_ran_out_is_not_prolonged_what_it_owned_is_free(tables: Tables) -> None:
    clock = FixedClock()
    one, two = (_node(tables, clock, name) for name in ("one", "two"))
    one.claim("s")
    clock.advance(ms=LEASE_MS)
    assert one.renew() is None
    one.begin()
    two.begin()
    assert two.claim("s") == 2


def test_a_node_without_a_lease_owns_nothing(tables: Tables) -> None:
    clock = FixedClock()
    one = _node(tables, clock, "one")
    clock.advance(ms=LEASE_MS)
    with pytest.raises(Unavailable):
        one.claim("s")


def test_a_release_that_comes_late_leaves_a_session_that_was_claimed_again(tables: Tables) -> None:
    clock = FixedClock()
    one, two = (_node(tables, clock, name) for name in ("one", "two"))
    first = one.claim("s")
    again = one.claim("s")
    assert isinstance(first, int)
    assert again == first + 1
    one.release("s", first)
    assert two.claim("s") == Elsewhere("one.test:4000")
    one.release("s", first + 1)
    assert two.claim("s") == 1


def test_a_clock_that_goes_back_begins_a_later_epoch_all_the_same(tables: Tables) -> None:
    one = _node(tables, FixedClock(1_700_000_020_000), "one")
    one.claim("s")
    behind = FixedClock(1_700_000_000_000)
    assert _node(tables, behind, "two").claim("s") == Elsewhere("one.test:4000")


def test_a_renewal_that_is_written_late_makes_no_lease_shorter(tables: Tables) -> None:
    clock = FixedClock()
    one, two = (_node(tables, clock, name) for name in ("one", "two"))
    one.claim("s")
    clock.advance(ms=5_000)
    assert one.renew() == two.renew() == 2
    clock.advance(ms=-4_000)
    assert one.renew() == 2
    clock.advance(ms=4_000 + LEASE_MS - 1)
    assert two.begin() == 2
    assert two.claim("s") == Elsewhere("one.test:4000")


def test_a_lease_is_renewed_as_it_is_when_the_answer_was_lost(tables: Tables) -> None:
    one = _node(tables, FixedClock(), "one")
    assert one.claim("s") == 1
    assert one.renew() == one.renew() == 1
    assert one.claim("s") == 2


@without_moto
def test_of_a_thousand_claims_at_once_each_session_has_one_owner(tables: Tables) -> None:
    clock = FixedClock()
    nodes = [_node(tables, clock, f"node-{number}") for number in range(3)]
    asked = [(number % 3, f"session-{number // 10}") for number in range(1_000)]
    answers = at_once([partial(nodes[node].claim, session) for node, session in asked], threads=24)
    owners: dict[str, set[str]] = {}
    for (node, session), answer in zip(asked, answers, strict=True):
        owner = answer.target if isinstance(answer, Elsewhere) else f"node-{node}.test:4000"
        owners.setdefault(session, set()).add(owner)
    assert len(owners) == 100
    assert all(len(each) == 1 for each in owners.values())


@without_moto
def test_of_nodes_that_race_for_a_dead_ones_sessions_one_gets_each(tables: Tables) -> None:
    clock = FixedClock()
    dead = _node(tables, clock, "dead")
    sessions = [f"session-{number}" for number in range(20)]
    for each in sessions:
        dead.claim(each)
    clock.advance(ms=LEASE_MS)
    nodes = [_node(tables, clock, f"node-{number}") for number in range(4)]
    asked = [(node, session) for session in sessions for node in range(4)]
    answers = at_once([partial(nodes[node].claim, session) for node, session in asked], threads=16)
    won = [session for (_, session), answer in zip(asked, answers, strict=True) if isinstance(answer, int)]
    assert sorted(won) == sorted(sessions)
