"""Stepping up: what an admin's key alone may not do, what a code gives, and how codes are guarded."""

from collections.abc import Mapping
from typing import Any

import pyotp
import pytest

from chalicelib import bootstrap
from chalicelib.domain.api_key import Role
from chalicelib.domain.step_up import (
    ASSERTION_SECS,
    DEVELOPMENT_SECRET,
    LOCK_MS,
    STEP_SECS,
    WRONG_MAX,
    ElevatedAction,
)
from tests.fakes.fixed_clock import FixedClock
from tests.handlers.relay import JSON, URL, Answer, Relay

ALL = [each.value for each in ElevatedAction]
NEW_URL = URL + "/new"


@pytest.fixture
def clock(guarded: Relay, monkeypatch: pytest.MonkeyPatch) -> FixedClock:
    """Stop the clock of a Relay whose admin's key was made before."""
    stopped = FixedClock(bootstrap.clock().now_ms())
    bootstrap.step_up.cache_clear()
    monkeypatch.setattr(bootstrap, "clock", lambda: stopped)
    return stopped


def code_at(clock: FixedClock, steps: int = 0) -> str:
    """Give the code that an authenticator shows so many steps from now."""
    return pyotp.TOTP(DEVELOPMENT_SECRET).at(clock.now_ms() // 1000 + steps * STEP_SECS)


def wrong_code(clock: FixedClock) -> str:
    """Give a code that none of the steps around has."""
    near = {code_at(clock, steps) for steps in range(-3, 4)}
    return next(code for code in (f"{number:06d}" for number in range(10)) if code not in near)


def prove(relay: Relay, code: str, actions: list[str] | None = None) -> Answer:
    return relay.post("/v1/step-up", {"code": code, "actions": actions or ALL})


def proven(relay: Relay, code: str, actions: list[str] | None = None) -> dict[str, str]:
    """Give the header of an assertion for a right code."""
    answer = prove(relay, code, actions)
    assert answer.status == 200, answer.body
    return {"Relay-Step-Up": answer.json["assertion"]}


def move(relay: Relay, made: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
    """Change an endpoint's URL."""
    version = relay.get(f"/v1/endpoints/{made['id']}").headers["etag"]
    named = {**JSON, "If-Match": version, **headers}
    return relay.call("PATCH", f"/v1/endpoints/{made['id']}", b'{"url": "%s"}' % NEW_URL.encode(), named)


def is_required(answer: Answer, action: ElevatedAction) -> bool:
    named = answer.is_problem(403, "step_up_required", "Relay-Step-Up")
    return (
        named
        and f'POST /v1/step-up gives this key for {{"code": "<the six digits>", "actions": ["{action}"]}}'
        in str(answer.json["expected"])
    )


def test_what_is_elevated_says_what_it_needs_and_changes_nothing_without(guarded: Relay) -> None:
    made = guarded.endpoint()
    guarded.call("POST", f"/v1/endpoints/{made['id']}/disable")
    path = f"/v1/endpoints/{made['id']}/enable"
    past = "2026-01-01T00:00:00Z"
    assert is_required(move(guarded, made, {}), ElevatedAction.URL_CHANGE)
    assert is_required(guarded.post(path, {"backlog": "deliver"}), ElevatedAction.ENABLE_DELIVER)
    assert is_required(
        guarded.post(path, {"backlog": "resume_from", "resume_from": past}), ElevatedAction.ENABLE_DELIVER
    )
    assert is_required(guarded.post("/v1/keys", {"role": "viewer"}), ElevatedAction.KEY_CREATION)
    shown = guarded.get(f"/v1/endpoints/{made['id']}").json
    assert (shown["url"], shown["state"]) == (URL, "disabled")
    assert len(guarded.get("/v1/keys").json["items"]) == 1


def test_what_is_routine_needs_a_key_alone(guarded: Relay) -> None:
    made = guarded.endpoint()
    headers = {**JSON, "If-Match": '"1"'}
    path = f"/v1/endpoints/{made['id']}"
    same_url = b'{"burst": 5, "url": "%s"}' % URL.encode()
    assert guarded.call("PATCH", path, same_url, headers).status == 200
    assert guarded.call("POST", f"{path}/disable").status == 200
    assert guarded.post(f"{path}/enable", {"backlog": "skip"}).status == 200
    assert guarded.call("DELETE", path, b"", {"If-Match": '"4"'}).status == 204


def test_a_code_gives_an_assertion_for_the_actions_it_is_asked_for(guarded: Relay, clock: FixedClock) -> None:
    made = guarded.endpoint()
    answer = prove(guarded, code_at(clock), ["url_change", "url_change"])
    assert answer.json["actions"] == ["url_change"]
    headers = {"Relay-Step-Up": answer.json["assertion"]}
    assert is_required(guarded.post("/v1/keys", {"role": "viewer"}, headers), ElevatedAction.KEY_CREATION)
    assert move(guarded, made, headers).json["url"] == NEW_URL


def test_an_assertion_is_good_for_five_minutes_as_often_as_it_is_needed(
    guarded: Relay, clock: FixedClock
) -> None:
    headers = proven(guarded, code_at(clock))
    assert guarded.post("/v1/keys", {"role": "viewer"}, headers).status == 201
    clock.advance(ms=(ASSERTION_SECS - 1) * 1000)
    assert guarded.post("/v1/keys", {"role": "viewer"}, headers).status == 201
    clock.advance(ms=1000)
    assert is_required(guarded.post("/v1/keys", {"role": "viewer"}, headers), ElevatedAction.KEY_CREATION)


def test_an_assertion_is_one_key_s_and_one_tenant_s(guarded: Relay, clock: FixedClock) -> None:
    headers = proven(guarded, code_at(clock))
    for other in (guarded.another("acme"), guarded.another("stranger")):
        assert is_required(other.post("/v1/keys", {"role": "viewer"}, headers), ElevatedAction.KEY_CREATION)


@pytest.mark.parametrize("change", ["", "su1", "su1..", "{}x", "x{}", "{}.x", "su1.e30.e30", "é", "su1.é.é"])
def test_what_is_no_assertion_is_none(guarded: Relay, change: str) -> None:
    (given,) = guarded.elevated().values()
    headers = {"Relay-Step-Up": change.format(given)}
    assert is_required(guarded.post("/v1/keys", {"role": "viewer"}, headers), ElevatedAction.KEY_CREATION)


def test_a_code_is_good_once(guarded: Relay, clock: FixedClock) -> None:
    code = code_at(clock)
    assert prove(guarded, code).status == 200
    assert prove(guarded, code).is_problem(403, "step_up_code_wrong", "code")
    assert prove(guarded.another("acme"), code).is_problem(403, "step_up_code_wrong", "code")
    clock.advance(ms=STEP_SECS * 1000)
    assert prove(guarded, code).is_problem(403, "step_up_code_wrong", "code")
    assert prove(guarded, code_at(clock)).status == 200


@pytest.mark.parametrize("steps, status", [(-2, 403), (-1, 200), (0, 200), (1, 200), (2, 403)])
def test_an_authenticator_s_clock_may_be_half_a_minute_off(
    guarded: Relay, clock: FixedClock, steps: int, status: int
) -> None:
    assert prove(guarded, code_at(clock, steps)).status == status


def test_a_code_of_an_earlier_step_is_not_taken_after_one_of_a_later(
    guarded: Relay, clock: FixedClock
) -> None:
    assert prove(guarded, code_at(clock, 1)).status == 200
    assert prove(guarded, code_at(clock)).is_problem(403, "step_up_code_wrong", "code")


def test_a_code_may_be_written_as_it_is_shown(guarded: Relay, clock: FixedClock) -> None:
    code = code_at(clock)
    assert prove(guarded, f"{code[:3]} {code[3:]}").status == 200


@pytest.mark.parametrize(
    "code", ["", "12345", "1234567", "12a456", "\uff11\uff12\uff13\uff14\uff15\uff16", "12 3456", 123456]
)
def test_what_is_no_code_is_told_and_counts_as_no_try(guarded: Relay, clock: FixedClock, code: Any) -> None:  # noqa: ANN401 - any JSON
    for _ in range(WRONG_MAX + 1):
        assert prove(guarded, code).is_problem(400, "field_invalid", "code")
    assert prove(guarded, code_at(clock)).status == 200


@pytest.mark.parametrize("actions", [[], ["sing"], ["url_change", "sing"], "url_change", ALL * 2])
def test_an_assertion_is_for_actions_there_are(guarded: Relay, actions: object) -> None:
    answer = guarded.post("/v1/step-up", {"code": "123456", "actions": actions})
    assert answer.status == 400
    assert answer.json["code"] == "field_invalid"


def test_too_many_wrong_codes_close_the_door_to_right_ones_too(guarded: Relay, clock: FixedClock) -> None:
    wrong = wrong_code(clock)
    for _ in range(WRONG_MAX):
        assert prove(guarded, wrong).is_problem(403, "step_up_code_wrong", "code")
    locked = prove(guarded, code_at(clock))
    assert locked.is_problem(429, "step_up_locked", "code")
    assert locked.headers["retry-after"] == str(LOCK_MS // 1000)
    clock.advance(ms=LOCK_MS - 1)
    assert prove(guarded, code_at(clock)).headers["retry-after"] == "1"
    clock.advance(ms=1)
    assert prove(guarded, code_at(clock)).status == 200


def test_who_goes_on_guessing_waits_twice_as_long_each_time(guarded: Relay, clock: FixedClock) -> None:
    for _ in range(WRONG_MAX):
        prove(guarded, wrong_code(clock))
    for times in (1, 2, 4):
        told_s = int(prove(guarded, wrong_code(clock)).headers["retry-after"])
        assert told_s == times * LOCK_MS // 1000
        clock.advance(ms=told_s * 1000)
        assert prove(guarded, wrong_code(clock)).status == 403


def test_a_right_code_ends_the_counting(guarded: Relay, clock: FixedClock) -> None:
    for _ in range(3):
        for _ in range(WRONG_MAX - 1):
            assert prove(guarded, wrong_code(clock)).status == 403
        assert prove(guarded, code_at(clock)).status == 200
        clock.advance(ms=STEP_SECS * 1000)


def test_one_key_s_wrong_codes_lock_no_other_key(guarded: Relay, clock: FixedClock) -> None:
    for _ in range(WRONG_MAX):
        prove(guarded, wrong_code(clock))
    assert prove(guarded.another("acme"), code_at(clock)).status == 200


def test_another_tenant_s_second_factor_is_another(guarded: Relay, clock: FixedClock) -> None:
    code = code_at(clock)
    assert prove(guarded, code).status == 200
    assert prove(guarded.another("stranger"), code).status == 200


@pytest.mark.parametrize("role", [Role.PRODUCER, Role.VIEWER])
def test_only_admins_step_up(guarded: Relay, role: Role) -> None:
    assert prove(guarded.another("acme", role), "123456").is_problem(403, "forbidden")


def test_a_revoked_key_steps_up_nowhere_even_where_it_is_still_known(
    guarded: Relay, clock: FixedClock
) -> None:
    headers = proven(guarded, code_at(clock))
    (row,) = (each for each in guarded.rows("tenants") if each["sk"]["S"].startswith("key#"))
    guarded.aws("dynamodb").delete_item(
        TableName=guarded.made.tables["tenants"], Key={name: row[name] for name in ("pk", "sk")}
    )
    assert guarded.get("/v1/endpoints").status == 200
    assert guarded.post("/v1/keys", {"role": "admin"}, headers).is_problem(
        401, "unauthenticated", "Authorization"
    )
    assert prove(guarded, code_at(clock, 1)).is_problem(401, "unauthenticated", "Authorization")


def test_a_step_up_is_in_the_audit_with_its_actions_and_no_code(guarded: Relay, clock: FixedClock) -> None:
    code = code_at(clock)
    assertion = proven(guarded, code, ["purge"])["Relay-Step-Up"]
    (row,) = guarded.rows("audit")
    assert row["action"]["S"] == "key.stepped_up"
    assert row["after"]["S"] == '{"actions": ["purge"]}'
    assert row["actor_id"] == row["subject"]
    assert row["address"]["S"] == "192.0.2.7"
    for secret in (code, assertion, DEVELOPMENT_SECRET):
        assert secret not in repr(row)


def test_the_second_factor_is_stored_sealed(guarded: Relay) -> None:
    assert DEVELOPMENT_SECRET.encode() not in repr(guarded.rows("tenants")).encode()


def test_on_one_s_own_machine_the_second_factor_is_the_documented_one(relay: Relay) -> None:
    bootstrap.seed_development()
    code = pyotp.TOTP(DEVELOPMENT_SECRET).at(bootstrap.clock().now_ms() // 1000)
    assert relay.post("/v1/keys", {"role": "viewer"}, proven(relay, code)).status == 201
