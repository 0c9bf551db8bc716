"""Rotation: two keys at most, each attempt signed by those that are live at its moment."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.encoding import Base64Encoder
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from chalicelib.application.endpoints import not_found
from chalicelib.application.rotate import Rotated, Rotation
from chalicelib.domain import signing
from chalicelib.domain.audit import RELAY
from chalicelib.domain.endpoint import OVERLAP_S, Endpoint, WrappedSecret
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import IDENTITY, SignatureForm, SignatureKey
from tests.fakes.scripted_sender import Sent
from tests.unit.application.interruptions import meanwhile
from tests.unit.application.process import Process
from tests.unit.application.world import FAILS, OK, TENANT, World
from tests.unit.domain.examples import endpoint as example

MINUTE_S = 60
NEVER = 10**12
FORMS = pytest.mark.parametrize("form", list(IDENTITY))


def rotate(
    world: World, endpoint: Endpoint, overlap_s: int = OVERLAP_S, kind: SignatureKey | None = None
) -> Rotated:
    return world.usual.rotate.rotate((TENANT, endpoint.id), Rotation(overlap_s, kind), RELAY)


def first_secret(world: World, endpoint: Endpoint) -> Secret:
    (wrapped,) = world.now(endpoint).secrets
    return world.usual.sealer.unseal(TENANT, wrapped)


def secret_of(rotated: Rotated) -> Secret:
    assert rotated.key.secret is not None
    return rotated.key.secret


def send(world: World) -> Sent:
    """Post an event and give the request that leaves for it."""
    (delivery,) = world.deliveries(1)
    world.work_off()
    (sent,) = world.sends(delivery)
    return sent


def verifies(sent: Sent, secret: Secret) -> bool:
    at = datetime.fromtimestamp(sent.at_ms / 1000, UTC)
    return signing.verify(sent.request.body, dict(sent.request.headers), secret, at)


def verified_by(sent: Sent, *secrets: Secret) -> list[bool]:
    return [verifies(sent, each) for each in secrets]


@FORMS
def test_f010_a_receiver_verifies_with_the_old_then_both_then_the_new_across_the_window(
    world: World, form: SignatureForm
) -> None:
    endpoint = world.endpoint(signature=form)
    old = first_secret(world, endpoint)
    assert verified_by(send(world), old) == [True]
    rotated = rotate(world, endpoint)
    new, ends_s = secret_of(rotated), rotated.endpoint.previous_expires_at
    assert ends_s == world.clock.now_ms() // 1000 + OVERLAP_S
    assert verified_by(send(world), old, new) == [True, True]
    world.clock.advance_to(ends_s * 1000 - 100)
    assert verified_by(send(world), old, new) == [True, True]
    world.clock.advance_to(ends_s * 1000)
    assert verified_by(send(world), old, new) == [False, True]


def test_a_second_rotation_in_the_window_drops_the_oldest_and_gives_the_previous_a_whole_one(
    world: World,
) -> None:
    endpoint = world.endpoint()
    oldest = first_secret(world, endpoint)
    middle = secret_of(rotate(world, endpoint))
    world.clock.advance(ms=(OVERLAP_S - MINUTE_S) * 1000)
    rotated = rotate(world, endpoint)
    newest = secret_of(rotated)
    assert rotated.endpoint.previous_expires_at == world.clock.now_ms() // 1000 + OVERLAP_S
    assert verified_by(send(world), oldest, middle, newest) == [False, True, True]
    world.clock.advance(ms=(OVERLAP_S - MINUTE_S) * 1000)
    assert verified_by(send(world), oldest, middle, newest) == [False, True, True]
    world.clock.advance(ms=MINUTE_S * 1000)
    assert verified_by(send(world), oldest, middle, newest) == [False, False, True]


def test_a_rotation_without_an_overlap_leaves_one_key(world: World) -> None:
    endpoint = world.endpoint()
    old = first_secret(world, endpoint)
    rotated = rotate(world, endpoint, overlap_s=0)
    assert rotated.endpoint.previous_expires_at is None
    assert verified_by(send(world), old, secret_of(rotated)) == [False, True]


def test_an_overlap_is_shortened_and_ended_and_never_prolonged(world: World) -> None:
    endpoint = world.endpoint()
    old = first_secret(world, endpoint)
    new = secret_of(rotate(world, endpoint, overlap_s=10 * MINUTE_S))
    of = (TENANT, endpoint.id)
    now_s = world.clock.now_ms() // 1000
    assert world.usual.rotate.end_overlap(of, OVERLAP_S, None, RELAY).previous_expires_at == now_s + 600
    assert world.usual.rotate.end_overlap(of, MINUTE_S, None, RELAY).previous_expires_at == now_s + MINUTE_S
    assert verified_by(send(world), old, new) == [True, True]
    assert world.usual.rotate.end_overlap(of, 0, None, RELAY).previous_expires_at is None
    assert verified_by(send(world), old, new) == [False, True]
    before = world.now(endpoint)
    assert world.usual.rotate.end_overlap(of, 0, None, RELAY) == before == world.now(endpoint)


@pytest.mark.parametrize("warm", [True, False])
def test_a_rotation_is_used_by_the_very_next_attempt_also_of_a_warm_function(
    world: World, *, warm: bool
) -> None:
    endpoint = world.endpoint()
    world.sender.script = lambda _: FAILS
    (delivery,) = world.deliveries(1)
    function = Process(world)
    world.deliver(function)
    new = secret_of(rotate(world, endpoint, overlap_s=0))
    world.sender.script = lambda _: OK
    world.clock.advance(ms=MINUTE_S * 1000)
    world.ring_due()
    world.deliver(function if warm else Process(world))
    first, second = world.sends(delivery)
    assert verified_by(first, new) == [False]
    assert verified_by(second, new) == [True]


def test_a_rotation_acknowledged_after_the_admission_signs_what_was_admitted(world: World) -> None:
    endpoint = world.endpoint()
    (delivery,) = world.deliveries(1)
    made: list[Rotated] = []
    process = Process(world)
    meanwhile(
        process,
        lambda: made.append(rotate(world, endpoint, overlap_s=0)),
        lambda _: bool(process.faults.steps[2:]),
    )
    world.deliver(process)
    (sent,) = world.sends(delivery)
    assert verifies(sent, secret_of(made[0]))


def test_a_rotation_of_a_version_that_is_gone_makes_nothing(world: World) -> None:
    endpoint = world.endpoint()
    version = rotate(world, endpoint).endpoint.version
    with pytest.raises(RelayError, match=f"^{ErrorCode.VERSION_STALE}"):
        world.usual.rotate.rotate((TENANT, endpoint.id), Rotation(60, version=version - 1), RELAY)
    assert world.now(endpoint).version == version


def test_a_deleted_endpoint_and_one_that_is_none_are_not_rotated(world: World) -> None:
    endpoint = world.endpoint()
    world.usual.manage.delete(world.now(endpoint), RELAY)
    with pytest.raises(RelayError, match=f"^{ErrorCode.ENDPOINT_DELETED}"):
        rotate(world, endpoint)
    with pytest.raises(RelayError, match=str(not_found("endpoint", "ep_x"))):
        rotate(world, replace(endpoint, id="ep_x"))


def verify_key(public: str) -> VerifyKey:
    return VerifyKey(public.removeprefix("whpk_").encode(), encoder=Base64Encoder)


def is_signed_by(sent: Sent, public: str) -> bool:
    """Verify as a receiver does that has PyNaCl and nothing of ours."""
    headers = dict(sent.request.headers)
    message = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + sent.request.body
    for each in headers["webhook-signature"].split(" "):
        version, _, signature = each.partition(",")
        if version == "v1a":
            try:
                verify_key(public).verify(message, Base64Encoder.decode(signature.encode()))
            except BadSignatureError:
                continue
            return True
    return False


def test_an_endpoint_that_asks_is_signed_for_with_a_key_pair_whose_private_part_nobody_sees(
    world: World,
) -> None:
    draft = replace(example(signature=SignatureForm.STANDARD), tenant=TENANT, secrets=())
    made = world.usual.manage.register(draft, RELAY, SignatureKey.ED25519)
    assert made.key is not None
    assert made.key.secret is None
    sent = send(world)
    assert is_signed_by(sent, made.key.wrapped.public_key)
    private = world.usual.sealer.unseal(TENANT, world.now(made.endpoint).secrets[0]).reveal()
    assert private.startswith("whsk_")
    kept = str(list(world.records.by_key.values()))
    assert private.removeprefix("whsk_") not in kept
    assert made.key.wrapped.public_key in kept


def test_while_a_key_pair_is_rotated_both_sign_and_also_across_the_kinds(world: World) -> None:
    endpoint = world.endpoint(signature=SignatureForm.STANDARD)
    shared = first_secret(world, endpoint)
    first = rotate(world, endpoint, kind=SignatureKey.ED25519).key.wrapped.public_key
    sent = send(world)
    assert is_signed_by(sent, first)
    assert verifies(sent, shared)
    second = rotate(world, endpoint).key.wrapped.public_key
    sent = send(world)
    assert [is_signed_by(sent, each) for each in (first, second)] == [True, True]
    assert not verifies(sent, shared)
    world.clock.advance(ms=OVERLAP_S * 1000)
    assert [is_signed_by(send(world), each) for each in (first, second)] == [False, True]


def test_a_key_pair_and_relays_own_form_do_not_go_together(world: World) -> None:
    endpoint = world.endpoint()
    with pytest.raises(RelayError, match=f"^{ErrorCode.FIELD_INVALID}"):
        rotate(world, endpoint, kind=SignatureKey.ED25519)
    world.change(endpoint, signature=SignatureForm.STANDARD)
    rotate(world, endpoint, kind=SignatureKey.ED25519)
    rotate(world, endpoint, overlap_s=MINUTE_S, kind=SignatureKey.HMAC)
    with pytest.raises(RelayError, match=f"^{ErrorCode.FIELD_INVALID}"):
        world.change(endpoint, signature=SignatureForm.RELAY)
    world.clock.advance(ms=MINUTE_S * 1000)
    world.change(endpoint, signature=SignatureForm.RELAY)
    assert world.now(endpoint).signature is SignatureForm.RELAY


steps = st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 100_000)), min_size=1, max_size=12)


@given(steps)
def test_never_more_than_two_keys_are_live_and_always_one(rotations: Sequence[tuple[int, int]]) -> None:
    rotated = example(secrets=(WrappedSecret(b"0"),))
    now_s = 1_000_000
    told = [(now_s, rotated)]
    for number, (later_s, overlap_s) in enumerate(rotations):
        now_s += later_s
        rotated = rotated.rotated(WrappedSecret(b"%d" % (number + 1)), now_s * 1000, overlap_s)
        told.append((now_s, rotated))
    for (at_s, was), (until_s, _) in pairwise([*told, (NEVER, rotated)]):
        for moment in {at_s, max(at_s, until_s - 1)}:
            live = was.live_secrets(moment)
            assert 1 <= len(live) <= 2
            assert live[0] == was.secrets[0]
