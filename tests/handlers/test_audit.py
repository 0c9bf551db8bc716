"""The audit as the API tells it."""

import pytest

from chalicelib.domain.api_key import Role
from tests.handlers.relay import Relay
from tests.handlers.test_tenants import opened


def test_a_change_is_told_with_who_what_before_and_after_when_and_from_where(guarded: Relay) -> None:
    made = guarded.endpoint(headers={"X-Token": "a-hidden-value"})
    answer = guarded.patch(made, {"rate_per_second": 20, "description": "faster"})
    assert answer.status == 200, answer.body
    (changed, created) = guarded.get("/v1/audit").json["items"]
    assert guarded.key is not None
    key_id = guarded.key.split(".")[1]
    assert changed["actor"] == {"kind": "key", "key_id": key_id, "address": "192.0.2.7"}
    assert (changed["action"], changed["subject"]) == ("endpoint.changed", made["id"])
    assert changed["before"] == {"description": "", "rate_per_second": 10}
    assert changed["after"] == {"description": "faster", "rate_per_second": 20}
    assert changed["at"] >= created["at"] >= made["created_at"]
    assert (created["action"], created["before"]) == ("endpoint.created", {})
    assert created["after"]["headers"] == {"X-Token": "********"}
    told = repr(guarded.rows("audit"))
    assert made["secret"] not in told
    assert "a-hidden-value" not in told


def test_it_is_filtered_and_paged(guarded: Relay) -> None:
    first, second = guarded.endpoint(), guarded.endpoint()
    for each in (first, second):
        guarded.call("POST", f"/v1/endpoints/{each['id']}/disable")
    pages = list(guarded.pages(f"/v1/audit?limit=1&subject={first['id']}"))
    assert [each["action"] for page in pages for each in page] == ["endpoint.disabled", "endpoint.created"]
    (only,) = guarded.pages(f"/v1/audit?action=endpoint.disabled&since={first['created_at']}")
    assert [each["subject"] for each in only] == [second["id"], first["id"]]
    assert guarded.get(f"/v1/audit?until={first['created_at']}").json["items"] == []


@pytest.mark.parametrize(
    "query, field",
    [
        ("action=endpoint.eaten", "action"),
        ("since=yesterday", "since"),
        ("until=1", "until"),
        ("subject=" + "x" * 101, "subject"),
        ("limit=0", "limit"),
        ("cursor=x", "cursor"),
    ],
)
def test_a_wrong_question_names_the_parameter(empty_guarded: Relay, query: str, field: str) -> None:
    answer = empty_guarded.get(f"/v1/audit?{query}")
    assert answer.status == 400
    assert answer.json["field"] == field


def test_a_cursor_of_other_filters_is_none_of_this_list(guarded: Relay) -> None:
    for _ in range(2):
        guarded.endpoint()
    cursor = guarded.get("/v1/audit?limit=1").json["cursor"]
    assert guarded.get(f"/v1/audit?limit=1&action=key.created&cursor={cursor}").status == 400


def test_who_is_no_admin_does_not_read_it(guarded: Relay) -> None:
    """It names keys and addresses of people."""
    for role in (Role.VIEWER, Role.PRODUCER):
        assert guarded.another("acme", role).get("/v1/audit").is_problem(403, "forbidden")


def test_another_tenant_s_is_not_there(guarded: Relay) -> None:
    guarded.endpoint()
    assert guarded.another("stranger").get("/v1/audit").json == {"items": [], "cursor": None}


def test_the_operator_reads_a_tenant_s_by_its_name(operator: Relay) -> None:
    shown = opened(operator)
    listed = operator.get(f"/v1/audit?tenant={shown['id']}").json["items"]
    assert [each["action"] for each in listed] == ["tenant.created"]
    assert listed[0]["actor"] == {"kind": "operator", "key_id": "operator", "address": "192.0.2.7"}
    assert operator.get("/v1/audit").is_problem(400, "field_invalid", "tenant")


def test_who_is_no_operator_names_no_other(guarded: Relay) -> None:
    guarded.endpoint()
    assert guarded.get("/v1/audit?tenant=acme").status == 200
    stranger = guarded.another("stranger")
    assert stranger.get("/v1/audit?tenant=acme").is_problem(404, "not_found", "id")
