"""What an owner was told holds from that moment on, however many post, change or rotate meanwhile."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event as Flag

import pytest

from chalicelib.adapters.ed25519 import NaclEd25519
from chalicelib.application.endpoints import ManageEndpoints
from chalicelib.application.ingest import Ingest, IngestLimits, Post
from chalicelib.application.rotate import RotateKeys, Rotation
from chalicelib.application.signing_keys import SigningKeys
from chalicelib.domain.audit import RELAY
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.target import Policy
from tests.contract.given import NOW_MS, TENANT, Stores, endpoint, stores_over, without_moto
from tests.contract.test_under_threads import AT_ONCE, at_once
from tests.fakes.fixed_clock import FixedClock, SeededDice
from tests.fakes.memory_bells import MemoryBells
from tests.fakes.memory_payloads import MemoryPayloads
from tests.fakes.plain_sealer import PlainSealer

pytestmark = without_moto
POSTS = 6
LIMITS = IngestLimits(262_144, 4_096, 40)
ENDS = pytest.mark.parametrize(
    "end",
    [partial(replace, event_types=("invoice.*",)), partial(replace, state=EndpointState.DELETED)],
    ids=["unsubscribed", "deleted"],
)


def ingest(stores: Stores, seed: int) -> Ingest:
    clock = FixedClock(NOW_MS)
    return Ingest(stores.capturing, MemoryPayloads(), MemoryBells(), clock, SeededDice(seed), LIMITS)


def manage(stores: Stores, seed: int) -> ManageEndpoints:
    keys = SigningKeys(PlainSealer(), NaclEd25519())
    clock = FixedClock(NOW_MS)
    return ManageEndpoints(stores.endpoints, keys, clock, SeededDice(seed), Policy(), MemoryBells())


def produce(stores: Stores, seed: int, ended: Flag) -> list[list[str]]:
    """Post some events; the deliveries of those whose post began after the end was acknowledged."""
    use = ingest(stores, seed)
    after = []
    for number in range(POSTS):
        is_over = ended.is_set()
        body = json.dumps({"type": "order.paid", "n": [seed, number]}).encode()
        answer = json.loads(use.one(Post(TENANT, body, "application/json", None, None)).answer)
        after += [answer["delivery_ids"]] if is_over else []
    return after


@ENDS
def test_nothing_posted_after_an_end_was_acknowledged_is_fanned_out(
    stores: Stores, end: Callable[[Endpoint], Endpoint]
) -> None:
    many = [stores_over(stores.tables) for _ in range(AT_ONCE)]
    old, ended = endpoint(0, ("order.*",)), Flag()
    stores.endpoints.create(old)

    def ending() -> list[list[str]]:
        assert produce(many[0], AT_ONCE, ended) == []
        assert many[0].endpoints.replace(old, end(old).next_to(old, NOW_MS))
        ended.set()
        return produce(many[0], 2 * AT_ONCE, ended)

    producers = (partial(produce, each, seed, ended) for seed, each in enumerate(many[1:]))
    acts: list[Callable[[], list[list[str]]]] = [ending, *producers]
    answers = at_once(acts)
    assert len(answers[0]) == POSTS
    assert [deliveries for each in answers for deliveries in each if deliveries] == []


def test_one_of_many_patches_of_a_version_is_made_and_the_others_are_told_that_it_is_stale(
    stores: Stores,
) -> None:
    old = endpoint()
    stores.endpoints.create(old)

    def change(number: int) -> Endpoint | ErrorCode:
        use = manage(stores_over(stores.tables), number)
        try:
            return use.change(old, replace(old, description=f"by {number}"), RELAY)
        except RelayError as error:
            return error.code

    told = at_once([partial(change, number) for number in range(AT_ONCE)])
    (winner,) = (each for each in told if isinstance(each, Endpoint))
    assert told.count(ErrorCode.VERSION_STALE) == AT_ONCE - 1
    assert stores.endpoints.get(TENANT, old.id) == winner


def test_rotations_at_once_are_made_one_after_another_and_two_keys_stay(stores: Stores) -> None:
    at_work = 4
    old = endpoint()
    stores.endpoints.create(old)

    def rotate(number: int) -> Endpoint:
        use = RotateKeys(manage(stores_over(stores.tables), number))
        return use.rotate((TENANT, old.id), Rotation(60), RELAY).endpoint

    told = at_once([partial(rotate, number) for number in range(at_work)], threads=at_work)
    assert sorted(each.version for each in told) == [old.version + number + 1 for number in range(at_work)]
    last, before = sorted(told, key=lambda each: -each.version)[:2]
    assert stores.endpoints.get(TENANT, old.id) == last
    kept = [each.ciphertext for each in last.secrets]
    assert kept == [last.secrets[0].ciphertext, before.secrets[0].ciphertext]
