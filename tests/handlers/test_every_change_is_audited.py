"""Every operation that changes something leaves exactly one record; one that is refused leaves none.

The operations are enumerated from the contract, so that a new one has to say here how it is carried out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyotp
import pytest

from chalicelib import bootstrap
from chalicelib.domain.api_key import names_in
from chalicelib.domain.audit import Action
from chalicelib.wire.operations import OPERATIONS, Operation
from tests.handlers.relay import JSON, Answer, Relay, forget
from tests.handlers.test_tenants import admin_of, opened
from tests.receiver import Receiver

NOT_CHANGES = {
    "post_event": "what is posted is the record of itself",
    "post_events": "likewise",
    "test_endpoint": "a sample event, likewise",
}
SHOWN_ONCE = ("secret", "key", "assertion", "token")
CHANGES = [each for each in OPERATIONS if each.method != "GET" and each.roles and each.id not in NOT_CHANGES]
SINCE = "2020-01-01T00:00:00Z"


@dataclass(slots=True)
class Case:
    """A tenant with its admin, the operator beside it, and every secret that was given out."""

    operator: Relay
    admin: Relay
    tenant: dict[str, Any]
    receiver: Receiver
    secrets: list[str] = field(default_factory=list)

    def endpoint(self, **fields: object) -> Any:  # noqa: ANN401 - the answer's JSON
        url = self.receiver.url("/status/404")
        made = self.admin.endpoint(url=url, headers={"X-Token": "a-custom-value"}, **fields)
        self.secrets.append(made["secret"])
        return made

    def path(self, **fields: object) -> str:
        return f"/v1/endpoints/{self.endpoint(**fields)['id']}"

    def dead(self) -> tuple[str, str]:
        """Let a delivery die; its endpoint's path and its id."""
        made = self.endpoint()
        said = self.admin.event()
        self.admin.deliver_all()
        (delivery_id,) = said["delivery_ids"]
        return f"/v1/endpoints/{made['id']}", delivery_id

    def replay(self, *turns: str) -> str:
        """Begin a bulk replay and turn it; its path."""
        path, _ = self.dead()
        begun = self.admin.post(f"{path}/replay", {"since": SINCE}).json
        for turn in turns:
            assert self.admin.call("POST", f"/v1/replays/{begun['id']}/{turn}").status == 200
        return f"/v1/replays/{begun['id']}"

    def code(self) -> str:
        totp = pyotp.parse_uri(self.tenant["second_factor"]["otpauth_uri"])
        assert isinstance(totp, pyotp.TOTP)
        return totp.at(bootstrap.clock().now_ms() // 1000)

    def version(self, path: str) -> dict[str, str]:
        return {"If-Match": self.admin.get(path).headers["etag"]}

    def kept(self, answer: Answer) -> Answer:
        """Keep what an answer shows once."""
        shown = answer.json
        for holder in (shown, shown.get("admin_key", {}), shown.get("second_factor", {})):
            self.secrets += [
                str(holder[each]) for each in ("secret", "key", "assertion", "token") if each in holder
            ]
        return answer


Request = Callable[[], Answer]


def _create(case: Case) -> Request:
    body = {"url": case.receiver.url("/sink"), "event_types": ["*"], "headers": {"X-Token": "a-custom-value"}}
    return lambda: case.kept(case.admin.post("/v1/endpoints", body))


def _patch(case: Case) -> Request:
    made = case.endpoint()
    return lambda: case.admin.patch(made, {"description": "new"})


def _delete(case: Case) -> Request:
    made = case.endpoint()
    return lambda: case.admin.delete(made)


def _disable(case: Case) -> Request:
    path = case.path()
    return lambda: case.admin.call("POST", f"{path}/disable")


def _enable(case: Case) -> Request:
    path = case.path()
    case.admin.call("POST", f"{path}/disable")
    return lambda: case.admin.post(f"{path}/enable", {"backlog": "skip"})


def _rotate(case: Case) -> Request:
    path = case.path()
    headers = {**case.version(path), **case.admin.elevated()}
    return lambda: case.kept(case.admin.post(f"{path}/rotate-secret", {}, headers))


def _end_overlap(case: Case) -> Request:
    path = case.path()
    case.kept(case.admin.post(f"{path}/rotate-secret", {}, {**case.version(path), **case.admin.elevated()}))
    version = case.version(path)
    return lambda: case.admin.post(f"{path}/end-overlap", {}, version)


def _replay_one(case: Case) -> Request:
    _, delivery_id = case.dead()
    return lambda: case.admin.call("POST", f"/v1/deliveries/{delivery_id}/replay")


def _replay_many(case: Case) -> Request:
    path, _ = case.dead()
    return lambda: case.admin.post(f"{path}/replay", {"since": SINCE})


def _turn(turn: str, *before: str) -> Callable[[Case], Request]:
    def turned(case: Case) -> Request:
        path = case.replay(*before)
        return lambda: case.admin.call("POST", f"{path}/{turn}")

    return turned


def _purge_letters(case: Case) -> Request:
    path, _ = case.dead()
    return lambda: case.admin.call("DELETE", f"{path}/dead-letters", b"", case.admin.elevated())


def _make_token(case: Case) -> Request:
    made = case.admin.endpoint(url="tunnel:", transport="tunnel")
    return lambda: case.kept(case.admin.call("POST", f"/v1/endpoints/{made['id']}/tunnel-token"))


def _create_key(case: Case) -> Request:
    return lambda: case.kept(case.admin.post("/v1/keys", {"role": "viewer"}, case.admin.elevated()))


def _revoke(case: Case) -> Request:
    made = _create_key(case)().json
    return lambda: case.admin.call("DELETE", f"/v1/keys/{made['id']}")


def _create_tenant(case: Case) -> Request:
    return lambda: case.kept(case.operator.post("/v1/tenants", {"name": "Another"}))


def _recover(case: Case) -> Request:
    path = f"/v1/tenants/{case.tenant['id']}/recover"
    return lambda: case.kept(case.operator.call("POST", path))


def _patch_tenant(case: Case) -> Request:
    path = f"/v1/tenants/{case.tenant['id']}"
    headers = {**JSON, **case.version(path)}
    return lambda: case.admin.call("PATCH", path, b'{"contacts": ["oncall@acme.example"]}', headers)


def _purge(case: Case) -> Request:
    path = f"/v1/tenants/{case.tenant['id']}"
    headers = {**case.version(path), **case.admin.elevated()}
    return lambda: case.admin.call("DELETE", path, b"", headers)


def _step_up(case: Case) -> Request:
    body = {"code": case.code(), "actions": ["purge"]}
    return lambda: case.kept(case.admin.post("/v1/step-up", body))


MADE: Mapping[str, tuple[Action, Callable[[Case], Request]]] = {
    "create_endpoint": (Action.ENDPOINT_CREATED, _create),
    "patch_endpoint": (Action.ENDPOINT_CHANGED, _patch),
    "delete_endpoint": (Action.ENDPOINT_DELETED, _delete),
    "disable_endpoint": (Action.ENDPOINT_DISABLED, _disable),
    "enable_endpoint": (Action.ENDPOINT_ENABLED, _enable),
    "rotate_secret": (Action.SECRET_ROTATED, _rotate),
    "end_overlap": (Action.OVERLAP_ENDED, _end_overlap),
    "purge_dead_letters": (Action.DEAD_LETTERS_PURGED, _purge_letters),
    "replay_delivery": (Action.DELIVERY_REPLAYED, _replay_one),
    "replay_endpoint": (Action.REPLAY_BEGUN, _replay_many),
    "pause_replay": (Action.REPLAY_PAUSED, _turn("pause")),
    "resume_replay": (Action.REPLAY_RESUMED, _turn("resume", "pause")),
    "cancel_replay": (Action.REPLAY_CANCELLED, _turn("cancel")),
    "create_tenant": (Action.TENANT_CREATED, _create_tenant),
    "patch_tenant": (Action.TENANT_CHANGED, _patch_tenant),
    "recover_tenant": (Action.TENANT_RECOVERED, _recover),
    "purge_tenant": (Action.TENANT_PURGED, _purge),
    "create_key": (Action.KEY_CREATED, _create_key),
    "revoke_key": (Action.KEY_REVOKED, _revoke),
    "step_up": (Action.STEPPED_UP, _step_up),
    "make_tunnel_token": (Action.TUNNEL_TOKEN_MADE, _make_token),
}
"""What each operation is recorded as, and all but the last request of carrying it out."""
NAMES = {
    "endpoint_id": "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "delivery_id": "01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "replay_id": "rp_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "tenant_id": "tn_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "key_id": "key_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
}


@pytest.fixture
def case(operator: Relay, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setenv("RELAY_ALLOW_PRIVATE_ENDPOINTS", "true")
    monkeypatch.setenv("RELAY_SHARD_COUNT", "1")
    monkeypatch.setenv("RELAY_NODE_URL", "https://relay.example.com")
    forget()
    tenant = opened(operator)
    made = Case(operator, admin_of(operator, tenant), tenant, receiver)
    made.secrets += [tenant["second_factor"]["secret"], tenant["admin_key"]["key"]]
    return made


def told(case: Case) -> dict[str, dict[str, Any]]:
    return {row["sk"]["S"]: row for row in case.operator.rows("audit")}


def test_every_operation_that_changes_something_is_carried_out_here() -> None:
    assert set(MADE) == {each.id for each in CHANGES}
    assert {action for action, _ in MADE.values()} == set(Action)


@pytest.mark.parametrize("operation", CHANGES, ids=lambda each: each.id)
def test_a_change_leaves_one_record_of_who_what_when_and_from_where(case: Case, operation: Operation) -> None:
    action, change = MADE[operation.id]
    request = change(case)
    before, began_ms = told(case), bootstrap.clock().now_ms()
    answer = request()
    assert answer.status in operation.answers, answer.body
    (row,) = [row for name, row in told(case).items() if name not in before]
    assert row["action"]["S"] == action
    by_operator = operation.id in {"create_tenant", "recover_tenant"}
    _, admin_key = names_in(case.admin.key or "") or ("", "")
    assert row["actor_kind"]["S"] == ("operator" if by_operator else "key")
    assert row["actor_id"]["S"] == ("operator" if by_operator else admin_key)
    assert row["address"]["S"] == "192.0.2.7"
    assert began_ms <= int(row["at_ms"]["N"]) <= bootstrap.clock().now_ms()
    assert row["subject"]["S"]
    assert (row["before"]["S"], row["after"]["S"]) != ("{}", "{}")
    kept = repr(case.operator.rows("audit"))
    assert not [secret for secret in [*case.secrets, "a-custom-value"] if secret in kept]


@pytest.mark.parametrize("operation", CHANGES, ids=lambda each: each.id)
def test_what_is_refused_leaves_none(case: Case, operation: Operation) -> None:
    """For its role, for its body, for what it names, for want of a second factor."""
    viewer = case.admin.post("/v1/keys", {"role": "viewer"}, case.admin.elevated()).json["key"]
    before = told(case)
    for caller in (case.admin, replace(case.admin, key=viewer)):
        path = operation.path.format(**NAMES)
        for body in (b'{"unknown": 1}', b"{}"):
            answer = caller.call(operation.method, path, body, {**JSON, "If-Match": '"7"'})
            assert answer.status >= 400, (operation.id, answer.body)
    assert told(case) == before


def test_telemetry_has_no_say_in_it(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of it, and not its failing: the record is part of the change's own transaction."""
    monkeypatch.setenv("RELAY_LOG_LEVEL", "ERROR")
    forget()

    def broken(*_: object, **__: object) -> None:
        raise AssertionError("nothing of a change needs the log")

    monkeypatch.setattr(bootstrap, "log", broken)
    case.endpoint()
    (row,) = [each for each in told(case).values() if each["action"]["S"] == Action.ENDPOINT_CREATED]
    assert row["actor_kind"]["S"] == "key"


def test_what_relay_does_by_itself_is_told_as_its_own(case: Case) -> None:
    made = case.admin.endpoint(url=case.receiver.url("/gone"))
    case.admin.event()
    case.admin.deliver_all()
    (row,) = [each for each in told(case).values() if each["action"]["S"] == Action.ENDPOINT_DISABLED]
    assert (row["actor_kind"]["S"], row["actor_id"]["S"], row["subject"]["S"]) == ("relay", "", made["id"])
    assert "410" in row["after"]["S"]
