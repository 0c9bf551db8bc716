"""Errors as answers: one status a code, one document for all, each code provoked and documented."""

import re
from http import HTTPStatus

import pytest

from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.handlers import problems
from infra.package import ROOT
from tests.handlers.conftest import Lines
from tests.handlers.relay import JSON, Answer, Relay

STATUSES = {
    400: {
        "body_empty",
        "body_not_json",
        "body_not_utf8",
        "body_too_deep",
        "content_type_invalid",
        "cursor_invalid",
        "destination_not_allowed",
        "event_type_conflict",
        "event_type_invalid",
        "event_type_missing",
        "field_invalid",
        "field_unknown",
        "idempotency_key_invalid",
        "url_invalid",
    },
    401: {"unauthenticated"},
    403: {"forbidden", "step_up_code_wrong", "step_up_required", "tenant_purging"},
    404: {"not_found"},
    409: {
        "confirmation_required",
        "delivery_pending",
        "endpoint_deleted",
        "endpoint_disabled",
        "endpoint_enabled",
        "idempotency_conflict",
        "last_admin_key",
        "not_subscribed",
        "payload_expired",
        "replay_ended",
        "too_many_endpoints",
        "too_many_ordered_endpoints",
        "tunnels_off",
    },
    412: {"version_stale"},
    413: {"body_too_large"},
    428: {"if_match_required"},
    429: {"step_up_locked", "too_many_events", "too_many_requests"},
    500: {"internal_error"},
    503: {"unavailable"},
}
ERRORS = (ROOT / "docs/errors.md").read_text(encoding="utf-8")


def test_every_code_has_its_status() -> None:
    told: dict[int, set[str]] = {}
    for code in ErrorCode:
        told.setdefault(problems.status_of(code).value, set()).add(code.value)
    assert told == STATUSES


def test_every_code_is_used() -> None:
    sources = [
        path.read_text(encoding="utf-8")
        for path in (ROOT / "chalicelib").rglob("*.py")
        if path.name not in {"errors.py", "problems.py"}
    ]
    used = set(re.findall(r"ErrorCode\.([A-Z0-9_]+)", " ".join(sources)))
    assert used == {code.name for code in ErrorCode}


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_is_documented_with_its_status_and_cure(code: ErrorCode) -> None:
    row = re.search(
        rf"^\| <a id=\"{code}\"></a>`{code}` \| (\d+) \| ([^|]+) \| ([^|]+) \|$", ERRORS, re.MULTILINE
    )
    assert row is not None, f"docs/errors.md lacks {code}"
    assert int(row[1]) == problems.status_of(code).value
    assert min(len(row[2]), len(row[3])) > 15


def test_no_other_code_is_documented() -> None:
    named = re.findall(r"^\| <a id=\"([a-z0-9_]+)\"></a>", ERRORS, re.MULTILINE)
    assert named == sorted(named)
    assert set(named) == set(ErrorCode)


def test_a_document_has_what_there_is_to_say_and_nothing_empty() -> None:
    full = RelayError(ErrorCode.FIELD_INVALID, "It is not.", field="limit", expected="1 to 200")
    assert problems.document(full) == {
        "type": "https://relay.example/errors#field_invalid",
        "title": "Field invalid",
        "status": HTTPStatus.BAD_REQUEST,
        "code": "field_invalid",
        "detail": "It is not.",
        "field": "limit",
        "expected": "1 to 200",
    }
    bare = RelayError(ErrorCode.NOT_FOUND, "It is not.")
    assert list(problems.document(bare)) == ["type", "title", "status", "code", "detail"]


def broken(relay: Relay) -> Answer:
    """Ask for an endpoint whose row nobody of Relay wrote."""
    made = relay.endpoint(description="hush hush")
    (row,) = (each for each in relay.rows("endpoints") if each["sk"]["S"] == made["id"])
    relay.change("endpoints", row, transport=None)
    return relay.get(f"/v1/endpoints/{made['id']}")


def test_an_internal_error_has_a_code_and_plain_words_and_its_reason_in_the_log(
    relay: Relay, lines: Lines
) -> None:
    answer = broken(relay)
    assert answer.is_problem(500, "internal_error")
    assert b"KeyError" not in answer.body
    assert b"transport" not in answer.body
    (line,) = lines.named("request.failed")
    assert line["exception_name"] == "KeyError"
    assert line["request_id"] == answer.headers["x-amzn-requestid"]
    assert (line["method"], line["route"]) == ("GET", "/v1/endpoints/{endpoint_id}")
    assert "hush" not in str(lines.texts)


@pytest.mark.parametrize(
    "table, method, target",
    [
        ("endpoints", "GET", "/v1/endpoints"),
        ("endpoints", "POST", "/v1/endpoints"),
        ("events", "GET", "/v1/events"),
        ("events", "POST", "/v1/events"),
        ("events", "POST", "/v1/events/batch"),
        ("idempotency", "POST", "/v1/events"),
        ("history", "GET", "/v1/deliveries/{delivery_id}"),
        ("gates", "GET", "/v1/deliveries/{delivery_id}"),
        ("tenants", "GET", "/v1/events"),
    ],
)
def test_a_failing_store_is_a_503_that_says_nothing_of_it(
    relay: Relay, lines: Lines, table: str, method: str, target: str
) -> None:
    relay.endpoint()
    said = relay.event()
    caller = relay.another("default") if table == "tenants" else relay
    relay.drop_table(table)
    bodies = {
        "/v1/endpoints": b'{"url":"https://receiver.example","event_types":["*"]}',
        "/v1/events/batch": b'{"events":[{"type":"t","payload":"{}"}]}',
    }
    headers = {**JSON, "Idempotency-Key": "k"}
    path = target.format(delivery_id=said["delivery_ids"][0])
    answer = caller.call(method, path, bodies.get(target, b'{"type":"order.paid"}'), headers)
    assert answer.is_problem(503, "unavailable")
    assert answer.json["detail"] == "Relay could not do this just now; nothing was lost. Try again."
    assert relay.made.tables[table].encode() not in answer.body
    assert len(lines.named("request.unavailable")) == 1


def test_a_refusal_is_no_line_of_the_log(relay: Relay, lines: Lines) -> None:
    assert relay.call("POST", "/v1/events", b"{}").status == 400
    assert lines.texts == []
