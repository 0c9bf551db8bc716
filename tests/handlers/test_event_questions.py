"""What is answered about events: the list, one of them, its bytes and its deliveries."""

import base64
import json
import random
import time
from collections.abc import Iterator

import pytest

from chalicelib.domain import ids
from chalicelib.domain.tenant import DEFAULT_TENANT
from tests.handlers.relay import Relay, typed

NOBODY = "evt_01a22a7c-5366-79c3-90eb-70e6bdfad2fa"
NO_IDS = [
    "x",
    "evt_",
    "EVT_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "evt_01A22A7C-5366-79C3-90EB-70E6BDFAD2FA",
    "evt_01a22a7c-5366-49c3-90eb-70e6bdfad2fa",
    "evt_01a22a7c536679c390eb70e6bdfad2fa",
    "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "evt_01a22a7c-5366-79c3-90eb-70e6bdfad2fa%0A",
    "evt_ffffffff-ffff-7fff-bfff-ffffffffffff",
    "evt_%00",
    "%F0%9F%98%8A",
    "default%23hours",
    "x" * 3_000,
    NOBODY,
]


def listed(pages: Iterator[list[dict[str, str]]]) -> list[str]:
    return [each["id"] for page in pages for each in page]


def test_an_event_is_shown_without_its_bytes(tenant: Relay) -> None:
    before_ms = time.time_ns() // 1_000_000
    said = tenant.event(b"secret words", typed("order.paid", "text/plain"))
    shown = tenant.get(f"/v1/events/{said['event_id']}")
    assert shown.status == 200
    received_at = shown.json.pop("received_at")
    assert shown.json == {
        "id": said["event_id"],
        "type": "order.paid",
        "content_type": "text/plain",
        "size_bytes": 12,
        "received_at": received_at,
        "fan_out": "none",
    }
    assert received_at.endswith("Z")
    assert ids.created_ms(said["event_id"]) >= before_ms
    assert b"secret words" not in tenant.get("/v1/events").body


def test_events_are_listed_newest_first_to_the_end(tenant: Relay) -> None:
    posted = [tenant.event()["event_id"] for _ in range(5)]
    for limit in (1, 2, 5, 200):
        assert listed(tenant.pages(f"/v1/events?limit={limit}")) == sorted(posted, reverse=True)
    assert tenant.get("/v1/events").json["cursor"] is None


def test_an_empty_list_ends_at_once(empty_relay: Relay) -> None:
    for path in ("/v1/events", "/v1/endpoints"):
        assert empty_relay.get(path).json == {"items": [], "cursor": None}


def test_an_event_past_its_time_reads_as_absent_while_its_row_still_lies_there(relay: Relay) -> None:
    event_id = relay.event()["event_id"]
    kept = relay.event()["event_id"]
    (row,) = (each for each in relay.rows("events") if each["sk"]["S"] == event_id)
    relay.change("events", row, ttl={"N": str(int(time.time()) - 1)})
    for path in ("", "/payload", "/deliveries"):
        assert relay.get(f"/v1/events/{event_id}{path}").is_problem(404, "not_found", "id")
    assert listed(relay.pages("/v1/events")) == [kept]


@pytest.mark.parametrize("name", NO_IDS)
@pytest.mark.parametrize("path", ["", "/payload", "/deliveries"])
def test_what_names_no_event_is_not_found(empty_relay: Relay, name: str, path: str) -> None:
    answer = empty_relay.get(f"/v1/events/{name}{path}")
    assert answer.is_problem(404, "not_found", "id"), answer.body
    assert len(answer.json["detail"]) < 200


@pytest.mark.parametrize("path", ["/v1/events", "/v1/endpoints", f"/v1/events/{NOBODY}/deliveries"])
@pytest.mark.parametrize("limit", ["0", "201", "-1", "1.5", "1e1", "ten", "", "%D9%A1", "0001", "9" * 5_000])
def test_a_limit_is_a_number_from_1_to_200(empty_relay: Relay, path: str, limit: str) -> None:
    answer = empty_relay.get(f"{path}?limit={limit}")
    assert answer.is_problem(400, "field_invalid", "limit")
    assert answer.json["expected"] == "1 to 200"


@pytest.mark.parametrize("path", ["/v1/events", "/v1/endpoints", f"/v1/events/{NOBODY}/deliveries"])
def test_an_unknown_question_is_named(empty_relay: Relay, path: str) -> None:
    answer = empty_relay.get(f"{path}?page=2")
    assert answer.is_problem(400, "field_unknown", "page")
    assert "limit" in answer.json["expected"]


def forged(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


EVENTS = f"events from 0 to {ids.END_MS}"
"""What the list without a filter is called in its cursors."""
FORGED = {
    "empty": "",
    "no base64": "%%%",
    "no JSON": "aGVsbG8",
    "not UTF-8": "_w",
    "a number": forged(5),
    "three": forged([EVENTS, NOBODY, 1]),
    "two": forged([EVENTS, NOBODY]),
    "no text": forged([EVENTS, 5, DEFAULT_TENANT]),
    "no id": forged([EVENTS, "zzz", DEFAULT_TENANT]),
    "an id and more": forged([EVENTS, NOBODY + "\n", DEFAULT_TENANT]),
    "another kind of id": forged([EVENTS, "ep_" + NOBODY[4:], DEFAULT_TENANT]),
    "the other list": forged(["endpoints", "ep_" + NOBODY[4:], DEFAULT_TENANT]),
    "deep": base64.urlsafe_b64encode(b"[" * 700).decode(),
    "long": "A" * 10_000,
}


@pytest.mark.parametrize("cursor", FORGED.values(), ids=FORGED.keys())
def test_a_cursor_that_is_not_the_list_s_own_is_refused(empty_relay: Relay, cursor: str) -> None:
    answer = empty_relay.get(f"/v1/events?cursor={cursor.replace('%', '%25')}")
    assert answer.is_problem(400, "cursor_invalid", "cursor"), answer.body


def test_a_cursor_in_that_form_is_taken(empty_relay: Relay) -> None:
    cursor = forged([EVENTS, NOBODY, DEFAULT_TENANT])
    assert empty_relay.get(f"/v1/events?cursor={cursor}").json == {"items": [], "cursor": None}


def test_no_list_takes_another_s_cursor(tenant: Relay) -> None:
    endpoints = [tenant.endpoint()["id"] for _ in range(2)]
    events = [tenant.event()["event_id"] for _ in range(2)]
    lists = [
        "/v1/events",
        "/v1/endpoints",
        *(f"/v1/events/{each}/deliveries" for each in events),
        *(f"/v1/endpoints/{each}/deliveries" for each in endpoints),
        f"/v1/endpoints/{endpoints[0]}/deliveries?status=pending",
    ]
    cursors = []
    for path in lists:
        joint = "&" if "?" in path else "?"
        cursors.append(tenant.get(f"{path}{joint}limit=1").json["cursor"])
    assert None not in cursors
    assert len(set(cursors)) == len(lists)
    for path in lists:
        joint = "&" if "?" in path else "?"
        taken = [tenant.get(f"{path}{joint}cursor={each}") for each in cursors]
        assert sorted(each.status for each in taken) == [200] + [400] * (len(lists) - 1)
        assert all(each.is_problem(400, "cursor_invalid", "cursor") for each in taken if each.status == 400)


def test_the_deliveries_of_an_event_are_listed_to_the_end(tenant: Relay) -> None:
    takers = [tenant.endpoint()["id"] for _ in range(3)]
    tenant.event()
    said = tenant.event()
    path = f"/v1/events/{said['event_id']}/deliveries"
    for limit in (1, 2, 200):
        assert sorted(listed(tenant.pages(f"{path}?limit={limit}"))) == sorted(said["delivery_ids"])
    shown = tenant.get(path).json["items"]
    assert {each["endpoint_id"] for each in shown} == set(takers)
    assert {each["event_id"] for each in shown} == {said["event_id"]}


def test_a_delivery_that_waits_says_so(tenant: Relay) -> None:
    endpoint = tenant.endpoint()
    said = tenant.event()
    (delivery_id,) = said["delivery_ids"]
    answer = tenant.get(f"/v1/deliveries/{delivery_id}")
    assert answer.status == 200
    at = answer.json["created_at"]
    assert answer.json == {
        "id": delivery_id,
        "event_id": said["event_id"],
        "event_type": "order.paid",
        "endpoint_id": endpoint["id"],
        "generation": 0,
        "generations": [0],
        "replayed_as": None,
        "replayed_at": None,
        "status": "pending",
        "reason": None,
        "ending": None,
        "created_at": at,
        "next_attempt_at": at,
        "hold": None,
        "attempts": [],
        "earlier": [],
    }


@pytest.mark.parametrize(
    "name", ["x", NOBODY, NOBODY[4:], NOBODY[4:].upper(), "ep_" + NOBODY[4:], "%F0%9F%98%8A"]
)
def test_what_names_no_delivery_is_not_found(empty_relay: Relay, name: str) -> None:
    assert empty_relay.get(f"/v1/deliveries/{name}").is_problem(404, "not_found", "id")


def test_a_payload_that_is_gone_is_not_found(relay: Relay) -> None:
    said = relay.event(random.Random(3).randbytes(9_000), typed("t", "image/png"))
    (key,) = relay.stored_payloads()
    relay.aws("s3").delete_object(Bucket=relay.made.bucket, Key=key)
    assert relay.get(f"/v1/events/{said['event_id']}/payload").is_problem(404, "not_found", "id")
