"""Each code that an operation declares is one it can give: provoked here, or in the test that is named.

The other way round, that none gives a code it does not declare, is held by tests/handlers/contract.py at
every answer of this tier.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import app as lambdas
from chalicelib.domain.api_key import Role
from chalicelib.domain.errors import ErrorCode
from chalicelib.domain.event import NESTING_MAX
from chalicelib.wire.operations import OPERATIONS, Operation
from infra.local.sqs_event import event_of
from tests.handlers.relay import JSON, URL, Answer, Relay

HERE = Path(__file__).parent
GUARDED = [each for each in OPERATIONS if each.roles is not None]
RANGE = {"since": "2026-01-01T00:00:00Z"}
BODIES = {
    "create_key": {"role": "viewer"},
    "enable_endpoint": {"backlog": "deliver"},
    "patch_endpoint": {"url": f"{URL}/new"},
    "replay_endpoint": RANGE,
}
BAD_EVENT = "test_refused_events.py::test_a_bad_event_is_refused_and_leaves_nothing"
ELSEWHERE = {
    ErrorCode.CONFIRMATION_REQUIRED: "test_bulk_replays.py::test_more_than_is_confirmed_is_refused",
    ErrorCode.CONTENT_TYPE_INVALID: BAD_EVENT,
    ErrorCode.EVENT_TYPE_CONFLICT: BAD_EVENT,
    ErrorCode.EVENT_TYPE_INVALID: BAD_EVENT,
    ErrorCode.EVENT_TYPE_MISSING: BAD_EVENT,
    ErrorCode.FORBIDDEN: "test_who_asks.py::test_a_role_may_do_its_own_and_an_admin_all",
    ErrorCode.IDEMPOTENCY_CONFLICT: "test_idempotency.py::test_another_event_under_the_key_is_a_conflict",
    ErrorCode.IDEMPOTENCY_KEY_INVALID: BAD_EVENT,
    ErrorCode.INTERNAL_ERROR: "test_problems.py::test_an_internal_error_has_a_code_and_plain_words",
    ErrorCode.LAST_ADMIN_KEY: "test_keys.py::test_a_tenant_keeps_an_admin_s_key_that_lasts",
    ErrorCode.NOT_FOUND: "test_who_asks.py::test_another_tenant_s_things_are_not_there",
    ErrorCode.NOT_SUBSCRIBED: "test_replay.py::test_what_cannot_be_sent_is_refused_at_once",
    ErrorCode.PAYLOAD_EXPIRED: "test_replay.py::test_what_cannot_be_sent_is_refused_at_once",
    ErrorCode.TENANT_PURGING: "test_purging.py::test_from_then_on_whatever_would_change_something_is_refused",
    ErrorCode.TOO_MANY_ENDPOINTS: "test_limits.py::test_one_endpoint_too_many_is_refused_and_the_quota_named",
    ErrorCode.TOO_MANY_EVENTS: "test_limits.py::test_an_event_over_the_quota_is_not_kept",
    ErrorCode.TOO_MANY_ORDERED_ENDPOINTS: "test_ordered_endpoints.py::test_a_tenant_has_forty_at_most",
    ErrorCode.TOO_MANY_REQUESTS: "test_limits.py::test_a_key_over_its_limit_is_told_when_to_come_again",
    ErrorCode.TUNNELS_OFF: "test_tunnels.py::test_an_installation_without_a_node_says_so",
    ErrorCode.UNAUTHENTICATED: "test_who_asks.py::test_without_a_key_nothing_is_answered",
    ErrorCode.UNAVAILABLE: "test_problems.py::test_a_failing_store_is_a_503_that_says_nothing_of_it",
}
"""What one operation alone can give, and what comes before any of them: the test that shows it."""


@dataclass(frozen=True, slots=True)
class Asking:
    """An operator and an admin who has one of each thing."""

    operator: Relay
    admin: Relay
    names: Mapping[str, str]

    def ask(
        self,
        of: Operation,
        body: bytes | None = None,
        query: str = "",
        headers: Mapping[str, str | None] | None = None,
    ) -> Answer:
        """Ask as who may, with all that is needed; a header that is None is left out."""
        caller = self.admin if Role.ADMIN in (of.roles or ()) else self.operator
        proof = self.admin.elevated() if caller is self.admin else {}
        named = {**JSON, "If-Match": '"1"', **proof, **(headers or {})}
        told = json.dumps(BODIES.get(of.id, {})).encode() if body is None else body
        given = {name: value for name, value in named.items() if value is not None}
        return caller.call(of.method, of.path.format(**self.names) + query, told, given)


@pytest.fixture
def asking(operator: Relay) -> Asking:
    admin = operator.another("acme")
    made = admin.endpoint()
    said = admin.event()
    names = {
        "event_id": said["event_id"],
        "endpoint_id": made["id"],
        "delivery_id": said["delivery_ids"][0],
        "replay_id": admin.post(f"/v1/endpoints/{made['id']}/replay", RANGE).json["id"],
        "tenant_id": "acme",
        "key_id": admin.post("/v1/keys", {"role": "viewer"}, admin.elevated()).json["id"],
    }
    return Asking(operator, admin, names)


def declaring(*codes: ErrorCode) -> list[Operation]:
    """Give the operations that declare one of these codes; there are some."""
    found = [each for each in GUARDED if each.codes & set(codes)]
    assert found
    return found


def test_every_code_that_is_declared_is_provoked_here_or_in_the_test_that_is_named() -> None:
    here = set(re.findall(r"declaring\(ErrorCode\.([A-Z0-9_]+)", Path(__file__).read_text(encoding="utf-8")))
    here |= {each.name for each in BAD_BODIES}
    declared = set().union(*(each.codes for each in OPERATIONS))
    assert here | {each.name for each in ELSEWHERE} == {each.name for each in declared}
    for code, named in ELSEWHERE.items():
        file, _, test = named.partition("::")
        text = (HERE / file).read_text(encoding="utf-8")
        assert f"def {test}" in text, code


def test_a_query_that_nobody_knows_is_refused_by_every_operation(asking: Asking) -> None:
    for each in declaring(ErrorCode.FIELD_UNKNOWN):
        assert asking.ask(each, query="?nope=1").is_problem(400, "field_unknown", "nope"), each.id


def test_a_header_that_is_there_twice_is_refused_by_every_operation(asking: Asking) -> None:
    for each in declaring(ErrorCode.FIELD_INVALID):
        answer = asking.ask(each, headers={"if-match": '"2"'})
        assert answer.is_problem(400, "field_invalid", "If-Match"), each.id


def test_a_cursor_of_nothing_is_refused_by_every_list(asking: Asking) -> None:
    for each in declaring(ErrorCode.CURSOR_INVALID):
        assert asking.ask(each, query="?cursor=x").is_problem(400, "cursor_invalid", "cursor"), each.id


BAD_BODIES = {
    ErrorCode.BODY_EMPTY: b"",
    ErrorCode.BODY_NOT_JSON: b"{",
    ErrorCode.BODY_NOT_UTF8: b'"\xff"',
    ErrorCode.BODY_TOO_DEEP: b"[" * (NESTING_MAX + 1) + b"]" * (NESTING_MAX + 1),
    ErrorCode.BODY_TOO_LARGE: b" " * 4_200_000,
}


@pytest.mark.parametrize("code", BAD_BODIES)
def test_a_bad_body_is_refused_by_every_operation_that_reads_one(asking: Asking, code: ErrorCode) -> None:
    for each in declaring(code):
        answer = asking.ask(each, BAD_BODIES[code])
        assert answer.json["code"] == code, each.id


def test_a_change_says_of_which_version_it_is(asking: Asking) -> None:
    for each in declaring(ErrorCode.IF_MATCH_REQUIRED):
        answer = asking.ask(each, headers={"If-Match": None})
        assert answer.is_problem(428, "if_match_required", "If-Match"), each.id
    for each in declaring(ErrorCode.VERSION_STALE):
        answer = asking.ask(each, headers={"If-Match": '"99"'})
        assert answer.is_problem(412, "version_stale", "If-Match"), each.id


def test_what_is_elevated_needs_its_proof(asking: Asking) -> None:
    for each in declaring(ErrorCode.STEP_UP_REQUIRED):
        answer = asking.ask(each, headers={"Relay-Step-Up": None})
        assert answer.is_problem(403, "step_up_required", "Relay-Step-Up"), each.id


@pytest.mark.parametrize("url", ["https://127.0.0.1/", "nonsense"])
def test_a_bad_address_is_refused_wherever_one_is_given(asking: Asking, url: str) -> None:
    body = json.dumps({"url": url, "event_types": ["*"]}).encode()
    for each in declaring(ErrorCode.DESTINATION_NOT_ALLOWED) + declaring(ErrorCode.URL_INVALID):
        code = "url_invalid" if url == "nonsense" else "destination_not_allowed"
        assert asking.ask(each, body).json["code"] == code, each.id


def test_a_deleted_endpoint_takes_no_change(asking: Asking) -> None:
    (delete,) = (each for each in OPERATIONS if each.id == "delete_endpoint")
    assert asking.ask(delete).status == 204
    for each in declaring(ErrorCode.ENDPOINT_DELETED):
        # Its delivery has not come to its end yet, which is said first; test_replay.py has one that did.
        code = "delivery_pending" if each.id == "replay_delivery" else "endpoint_deleted"
        assert asking.ask(each).json["code"] == code, each.id


def test_what_an_endpoint_is_already_or_is_not_is_said(asking: Asking) -> None:
    for each in declaring(ErrorCode.ENDPOINT_ENABLED):
        assert asking.ask(each).json["code"] == "endpoint_enabled", each.id
    asking.admin.post(f"/v1/endpoints/{asking.names['endpoint_id']}/disable", {})
    for each in declaring(ErrorCode.ENDPOINT_DISABLED):
        assert asking.ask(each).json["code"] == "endpoint_disabled", each.id


def test_what_is_still_owed_is_not_replayed_and_what_has_ended_does_not_go_on(asking: Asking) -> None:
    for each in declaring(ErrorCode.DELIVERY_PENDING):
        assert asking.ask(each).json["code"] == "delivery_pending", each.id
    calls = event_of(asking.admin.messages("replays"), asking.admin.arn("replays"))
    assert asking.admin.run(lambdas.replay_many, calls) == []
    for each in declaring(ErrorCode.REPLAY_ENDED):
        assert asking.ask(each).json["code"] == "replay_ended", each.id


def test_wrong_codes_are_refused_and_then_not_looked_at(asking: Asking) -> None:
    body = b'{"code": "000000", "actions": ["purge"]}'
    for each in declaring(ErrorCode.STEP_UP_CODE_WRONG):
        assert asking.ask(each, body).is_problem(403, "step_up_code_wrong", "code"), each.id
    for each in declaring(ErrorCode.STEP_UP_LOCKED):
        answers = [asking.ask(each, body).json["code"] for _ in range(8)]
        assert answers[-1] == "step_up_locked", each.id
