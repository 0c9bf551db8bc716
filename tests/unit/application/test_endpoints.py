"""Endpoints: registered, changed by one at a time, deleted, and found by their owner alone."""

from contextlib import AbstractContextManager
from dataclasses import replace

import pytest

from chalicelib.application.endpoints import LOOKED_AT_MAX, ManageEndpoints, not_found
from chalicelib.application.signing_keys import KEY_BYTES
from chalicelib.domain import ids, signing
from chalicelib.domain.endpoint import Endpoint, EndpointState, Limits
from chalicelib.domain.errors import ErrorCode, RelayError
from tests.unit.application.invariants import check
from tests.unit.application.world import AMPLE, BY, TENANT, World

DRAFT = Endpoint(TENANT, "", "https://Receiver.example:443/in?a=1", ("order.*",), 0)


@pytest.fixture
def manage(world: World) -> ManageEndpoints:
    return world.usual.manage


def refusal(code: ErrorCode) -> AbstractContextManager[object]:
    return pytest.raises(RelayError, match=f"^{code}")


def test_a_secret_is_shown_once_and_stored_wrapped(world: World, manage: ManageEndpoints) -> None:
    registered = manage.register(DRAFT, BY)
    assert registered.key is not None
    secret = registered.key.secret
    assert secret is not None
    stored = world.now(registered.endpoint)
    assert len(signing.standard_key(secret)) == KEY_BYTES
    (wrapped,) = stored.secrets
    assert secret.reveal() not in repr(stored)
    assert world.usual.sealer.unseal(TENANT, wrapped) == secret


def test_an_endpoint_is_named_after_its_moment_and_its_url_is_in_normal_form(
    world: World, manage: ManageEndpoints
) -> None:
    made = manage.register(DRAFT, BY).endpoint
    assert ids.is_id(made.id, "ep")
    assert ids.created_ms(made.id) == made.created_ms == world.clock.now_ms()
    assert made.url == "https://receiver.example/in?a=1"
    assert manage.get(TENANT, made.id) == made


@pytest.mark.parametrize("url", ["http://receiver.example/", "https://127.0.0.1/", "nonsense"])
def test_nothing_is_stored_of_an_endpoint_that_may_not_be(
    world: World, manage: ManageEndpoints, url: str
) -> None:
    with pytest.raises(RelayError):
        manage.register(replace(DRAFT, url=url), BY)
    made = manage.register(DRAFT, BY).endpoint
    with pytest.raises(RelayError):
        manage.change(made, replace(made, url=url), BY)
    assert manage.page(TENANT, "", 10).items == (made,)


def test_f094_a_new_endpoint_is_compared_with_the_tenant_s_newest(
    world: World, manage: ManageEndpoints
) -> None:
    first = manage.register(DRAFT, BY)
    world.clock.advance(ms=1)
    again = manage.register(DRAFT, BY)
    assert (first.beside, again.beside) == ((), (first.endpoint.id,))
    for _ in range(LOOKED_AT_MAX):
        world.endpoint()
    world.clock.advance(ms=1)
    assert manage.register(DRAFT, BY).beside == ()


@pytest.mark.parametrize("name", ["", "ep_1", "x" * 500, "é", ids.new_id("ep", 1, 1)])
def test_what_is_no_endpoint_is_not_found(manage: ManageEndpoints, name: str) -> None:
    with refusal(ErrorCode.NOT_FOUND):
        manage.get(TENANT, name)


def test_a_name_that_cannot_be_shown_is_not(manage: ManageEndpoints) -> None:
    assert "\n" not in not_found("endpoint", "a\nb").detail
    assert len(not_found("endpoint", "x" * 500).detail) < 130


def test_another_tenant_s_endpoint_is_not_found(manage: ManageEndpoints) -> None:
    made = manage.register(DRAFT, BY).endpoint
    with refusal(ErrorCode.NOT_FOUND):
        manage.get("other", made.id)
    assert manage.page("other", "", 10).items == ()


def test_of_two_changes_of_the_same_version_one_is_refused(manage: ManageEndpoints) -> None:
    made = manage.register(DRAFT, BY).endpoint
    first = manage.change(made, replace(made, description="first"), BY)
    assert first.version == made.version + 1
    with refusal(ErrorCode.VERSION_STALE):
        manage.change(made, replace(made, description="second"), BY)
    with refusal(ErrorCode.VERSION_STALE):
        manage.delete(made, BY)
    assert manage.get(TENANT, made.id).description == "first"


def test_a_deleted_endpoint_is_found_no_more_and_gets_nothing_more(
    world: World, manage: ManageEndpoints
) -> None:
    made = manage.register(DRAFT, BY).endpoint
    manage.delete(made, BY)
    with refusal(ErrorCode.NOT_FOUND):
        manage.get(TENANT, made.id)
    assert manage.page(TENANT, "", 10).items == ()
    assert world.now(made).state is EndpointState.DELETED
    assert world.post()["fan_out"] == "none"


def test_a_changed_subscription_is_that_of_the_next_event(world: World, manage: ManageEndpoints) -> None:
    made = manage.register(DRAFT, BY).endpoint
    assert len(world.post("order.paid")["delivery_ids"]) == 1
    manage.change(made, replace(made, event_types=("invoice.*", "invoice.sent")), BY)
    assert world.post("order.paid")["delivery_ids"] == []
    assert len(world.post("invoice.sent")["delivery_ids"]) == 1


@pytest.mark.parametrize("cap", [1, 5, 10, 25, 40])
def test_a_changed_cap_is_a_changed_number_of_slots_and_lanes(world: World, cap: int) -> None:
    endpoint = world.endpoint(limits=replace(AMPLE, max_concurrency=20))
    world.change(endpoint, limits=Limits(100_000, 100_000, max_concurrency=cap))
    gate = world.gate(endpoint)
    assert (gate.cap, gate.slots) == (cap, cap)
    for _ in range(30):
        world.post()
    lanes = {each.lane.number for each in world.owed()}
    assert lanes <= {str(number) for number in range(-(-cap // 10))}
    world.work_off(for_ms=60_000)
    assert world.owed() == []
    check(world)
