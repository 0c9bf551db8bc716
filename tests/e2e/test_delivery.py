"""An event becomes requests: its exact bytes, signed, one id however often, until it is over.

What a receiver may answer, and what follows, is in test_answers; where requests may go in test_destinations.
"""

import base64
import hashlib
import time
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.conftest import ODD_JSON, TOTAL_S, Early
from tests.e2e.customer import Customer, Record, moment, outcome

NOISE = b"".join(hashlib.sha256(number.to_bytes(2)).digest() for number in range(8192))
BODIES = {
    "odd JSON": (ODD_JSON, "application/json"),
    "emoji": ('{"t":"😊 café … 漢"}'.encode(), "application/json; charset=utf-8"),
    "a scalar": (b'"x"', "application/vnd.order+json"),
    "a form": (b"a=1&b=%20+x&a=", "application/x-www-form-urlencoded"),
    "every byte": (bytes(range(256)), "application/octet-stream"),
    "one byte": (b"\0", "application/octet-stream"),
    "Latin-1": (b"caf\xe9\r\n", "text/plain; charset=iso-8859-1"),
    "what looks gzipped": (b"\x1f\x8b\x08rest", "application/gzip"),
    "5 KB": (NOISE[:5_000], "image/png"),
    "256 KiB": (NOISE, "application/octet-stream"),
}


@pytest.fixture(scope="module", autouse=True)
def begun(early: Early) -> Early:
    """Begin with what lasts."""
    return early


@pytest.mark.parametrize(
    "form, names",
    [
        ("relay", ("relay-delivery-id", "relay-timestamp", "relay-signature")),
        ("standard", ("webhook-id", "webhook-timestamp", "webhook-signature")),
    ],
)
def test_a_delivery_is_signed_as_its_endpoint_wants(
    customer: Customer, form: str, names: tuple[str, str, str]
) -> None:
    hook = customer.hook("/verify/{key}", signature=form)
    posted = customer.post(hook.type)
    (seen,) = customer.arrived(event_id=posted.event_id)
    assert (seen["status"], seen["verified"], seen["unverified_because"]) == (200, True, None)
    headers = seen["headers"]
    assert headers[names[0]] == posted.delivery_id
    signing = {each for each in headers if each.startswith(("relay-", "webhook-"))}
    told = {f"relay-{each}" for each in ("event-id", "event-type", "event-time", "attempt", "generation")}
    assert signing == set(names) | told
    assert (headers["relay-event-type"], headers["relay-attempt"], headers["relay-generation"]) == (
        hook.type, "1", "0",
    )  # fmt: skip
    assert headers["user-agent"].startswith("Relay/")
    assert headers["accept-encoding"] == "identity"
    assert customer.ended(posted.delivery_id)["status"] == "succeeded"


@pytest.mark.parametrize("name", BODIES)
def test_the_bytes_posted_are_the_bytes_sent_and_shown(customer: Customer, name: str) -> None:
    body, content_type = BODIES[name]
    hook = customer.hook("/verify/{key}")
    posted = customer.post(hook.type, body, content_type)
    (seen,) = customer.arrived(delivery_id=posted.delivery_id)
    assert seen["verified"] is True
    assert seen["body_sha256"] == hashlib.sha256(body).hexdigest()
    assert (seen["headers"]["content-length"], seen["headers"]["content-type"]) == (
        str(len(body)), content_type,
    )  # fmt: skip
    shown = customer.api.get(f"/v1/events/{posted.event_id}/payload")
    assert (shown.content, shown.headers["content-type"]) == (body, content_type)


def test_a_batch_carries_bytes_too(customer: Customer) -> None:
    hook = customer.hook("/verify/{key}")
    items = [
        {"type": hook.type, "payload": ODD_JSON.decode()},
        {
            "type": hook.type,
            "content_type": "image/png",
            "payload_base64": base64.b64encode(NOISE[:999]).decode(),
        },
    ]
    answered = customer.api.post("/v1/events/batch", json={"events": items})
    assert [each["status"] for each in answered.json()["results"]] == [202, 202]
    for each, body in zip(answered.json()["results"], (ODD_JSON, NOISE[:999]), strict=True):
        (seen,) = customer.arrived(event_id=each["event_id"])
        assert (seen["verified"], base64.b64decode(seen["body_base64"])) == (True, body)


def test_a_body_over_the_limit_is_refused(customer: Customer) -> None:
    headers = {"Relay-Event-Type": "too.big", "Content-Type": "image/png"}
    refused = customer.api.post("/v1/events", content=NOISE + b"x", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
    types = {each["type"] for each in customer.api.get("/v1/events?limit=200").json()["items"]}
    assert "too.big" not in types


def test_an_event_that_nobody_takes_is_kept(customer: Customer) -> None:
    posted = customer.post("nobody.takes.this")
    assert (posted.delivery_ids, posted.fan_out) == ([], "none")
    assert posted.event_id in {each["id"] for each in customer.api.get("/v1/events").json()["items"]}


def test_every_subscribed_endpoint_gets_its_own_delivery(customer: Customer) -> None:
    patterns = ["shared.case.paid", "shared.case.*", "shared.*", "shared.case.refunded"]
    hooks = [customer.hook("/verify/{key}", event_types=[each]) for each in patterns]
    posted = customer.post("shared.case.paid")
    shown = [customer.ended(each) for each in posted.delivery_ids]
    assert {each["endpoint_id"] for each in shown} == {each.id for each in hooks[:3]}
    assert [each["status"] for each in shown] == ["succeeded"] * 3
    assert {each["path"] for each in customer.received(event_id=posted.event_id, verified="true")} == {
        f"/verify/{each.type}" for each in hooks[:3]
    }


def test_retries_keep_id_and_body_and_are_signed_afresh(customer: Customer, early: Early) -> None:
    posted = early.retried
    delivery = customer.ended(posted.delivery_id, within_s=60)
    assert [each["outcome"] for each in delivery["attempts"]] == ["deferred"] * 3 + ["success"]
    seen = customer.received(event_id=posted.event_id)
    assert [each["attempt"] for each in seen] == [1, 2, 3, 4]
    assert {each["delivery_id"] for each in seen} == {posted.delivery_id}
    assert {base64.b64decode(each["body_base64"]) for each in seen} == {ODD_JSON}
    assert {each["verified"] for each in seen} == {True}
    stamps = [each["timestamp"] for each in seen]
    assert stamps == sorted(set(stamps))
    assert len({each["headers"]["relay-signature"] for each in seen}) == 4


def test_custom_headers_arrive_and_are_shown_masked(customer: Customer) -> None:
    headers = {"Authorization": "Bearer a.b-c", "X-Shop": "Bücher".encode().hex()}
    hook, delivery_id = customer.deliver("/verify/{key}", headers=headers)
    (seen,) = customer.arrived(delivery_id=delivery_id)
    assert seen["verified"] is True
    assert {f"{name}: {value}" for name, value in headers.items()} <= set(seen["header_lines"])
    assert set(customer.endpoint(hook.id).json()["headers"].values()) == {"********"}


@pytest.mark.parametrize("name", ["Relay-Signature", "webhook-id", "Host", "Content-Length", "X Y"])
def test_a_header_of_ours_cannot_be_replaced(customer: Customer, name: str) -> None:
    asked = {"url": "https://example.com/", "event_types": ["*"], "headers": {name: "x"}}
    refused = customer.register(asked)
    assert (refused.status_code, refused.json()["field"]) == (400, "headers")


def test_gone_disables_the_endpoint_and_stops_what_is_pending(customer: Customer) -> None:
    later = {"status": 503, "headers": {"Retry-After": "1"}}
    hook = customer.hook(customer.script(later, {"status": 410}, {"status": 200}))
    waiting = customer.post(hook.type).delivery_id
    due = moment(customer.tried(waiting)["next_attempt_at"])
    gone = customer.ended(customer.post(hook.type).delivery_id)
    assert (gone["status"], gone["reason"]) == ("dead", "permanent_failure")
    customer.stack.until(lambda: customer.endpoint(hook.id).json()["state"] == "disabled")
    assert "410" in customer.endpoint(hook.id).json()["state_reason"]
    held = customer.post(hook.type).delivery_id
    customer.stack.until(lambda: time.time() > due + 2, within_s=20)
    assert [customer.delivery(each)["status"] for each in (waiting, held)] == ["pending", "pending"]
    assert len(customer.received(path=hook.shown["url"].removeprefix(customer.stack.receiver_url))) == 2


def test_429_holds_the_whole_endpoint_until_it_said(customer: Customer) -> None:
    hook = customer.hook(customer.script({"status": 429, "headers": {"Retry-After": "2"}}, {"status": 200}))
    refused = customer.tried(customer.post(hook.type).delivery_id)
    assert refused["attempts"][0]["outcome"] == "deferred"
    other = customer.post(hook.type).delivery_id
    assert [customer.ended(each)["status"] for each in (refused["id"], other)] == ["succeeded"] * 2
    first, *rest = customer.received(path=hook.shown["url"].removeprefix(customer.stack.receiver_url))
    assert len(rest) == 2
    assert all(each["received_at"] >= first["answered_at"] + 2_000 for each in rest)


def test_503_moves_one_delivery_and_not_its_endpoint(customer: Customer) -> None:
    hook = customer.hook(customer.script({"status": 503, "headers": {"Retry-After": "30"}}, {"status": 200}))
    moved = customer.tried(customer.post(hook.type).delivery_id)
    assert customer.ended(customer.post(hook.type).delivery_id)["status"] == "succeeded"
    assert moved["attempts"][0]["outcome"] == "deferred"
    assert moment(moved["next_attempt_at"]) >= moment(moved["attempts"][0]["at"]) + 30
    assert customer.delivery(moved["id"])["status"] == "pending"


def test_retry_after_may_be_a_date(customer: Customer) -> None:
    due = int(time.time()) + 120
    later = {"status": 503, "headers": {"Retry-After": formatdate(due, usegmt=True)}}
    _, delivery_id = customer.deliver(customer.script(later))
    first = customer.tried(delivery_id)["attempts"][0]
    assert outcome(first) == ("deferred", 503, None)
    assert due <= moment(first["next_attempt_at"]) < due + 1


@pytest.mark.parametrize(
    "value, shortest_s, longest_s",
    [("Sun, 06 Nov 1994 08:49:37 GMT", 0, 5), ("0", 0, 5), ("999999", 3_600, 3_600)],
)
def test_retry_after_is_obeyed_from_now_to_an_hour(
    customer: Customer, value: str, shortest_s: int, longest_s: int
) -> None:
    _, delivery_id = customer.deliver(customer.script({"status": 503, "headers": {"Retry-After": value}}))
    first = customer.tried(delivery_id)["attempts"][0]
    assert outcome(first) == ("deferred", 503, None)
    assert shortest_s <= waited_s(first) <= longest_s + TOTAL_S


def waited_s(attempt: Record) -> float:
    """Say how long after the start of an attempt the next one is due."""
    return moment(attempt["next_attempt_at"]) - moment(attempt["at"])


@pytest.mark.parametrize("value", ["soon", "-1", "1e9", "1.5", "٣"])
def test_a_retry_after_that_is_none_is_an_ordinary_failure(customer: Customer, value: str) -> None:
    coded = value.encode().decode("latin-1")
    _, delivery_id = customer.deliver(customer.script({"status": 429, "headers": {"Retry-After": coded}}))
    assert outcome(customer.tried(delivery_id)["attempts"][0]) == ("retryable", 429, None)


def test_a_changed_endpoint_binds_from_the_next_attempt(customer: Customer) -> None:
    hook = customer.hook(customer.script({"status": 503, "headers": {"Retry-After": "2"}}))
    posted = customer.post(hook.type)
    customer.tried(posted.delivery_id)
    url = f"{customer.stack.receiver_url}/verify/{hook.type}"
    customer.change(hook.id, url=url, signature="standard", headers={"X-New": "1"})
    assert customer.ended(posted.delivery_id)["status"] == "succeeded"
    _, second = customer.received(event_id=posted.event_id)
    assert (second["path"], second["verified"]) == (f"/verify/{hook.type}", True)
    assert second["headers"]["webhook-id"] == posted.delivery_id
    assert second["headers"]["x-new"] == "1"


def test_a_deleted_endpoint_ends_what_it_was_owed(customer: Customer) -> None:
    hook = customer.hook(customer.script({"status": 503, "headers": {"Retry-After": "2"}}))
    delivery_id = customer.post(hook.type).delivery_id
    customer.tried(delivery_id)
    customer.delete(hook.id)
    assert customer.endpoint(hook.id).status_code == 404
    assert customer.post(hook.type).fan_out == "none"
    assert customer.ended(delivery_id)["reason"] == "endpoint_deleted"
    assert [each["id"] for each in customer.dead_letters(hook.id)] == [delivery_id]
    assert len(customer.received(delivery_id=delivery_id)) == 1


def test_an_endpoint_that_unsubscribes_ends_what_it_was_owed(customer: Customer) -> None:
    hook = customer.hook(customer.script({"status": 503, "headers": {"Retry-After": "2"}}))
    delivery_id = customer.post(hook.type).delivery_id
    customer.tried(delivery_id)
    customer.change(hook.id, event_types=["another.type"])
    assert customer.ended(delivery_id)["reason"] == "unsubscribed"
    assert [each["id"] for each in customer.dead_letters(hook.id)] == [delivery_id]
    assert len(customer.received(delivery_id=delivery_id)) == 1


def test_an_endpoint_gets_no_more_at_once_and_no_faster_than_it_can_take(customer: Customer) -> None:
    hook = customer.hook("/slow/{key}?ms=100", max_concurrency=3, rate_per_second=10, burst=5)
    items = [{"type": hook.type, "payload": "{}"}] * 40
    answered = customer.api.post("/v1/events/batch", json={"events": items}).json()["results"]
    for each in answered:
        assert customer.ended(each["delivery_ids"][0], within_s=60)["status"] == "succeeded"
    path = f"/slow/{hook.type}"
    assert customer.receiver.get("/stats").json()["paths"][path]["max_in_flight"] <= 3
    times = [each["received_at"] for each in customer.received(brief=1, path=path)]
    assert len(times) == 40
    # The first request may be a moment on its way; by the cap alone all would be over in 1.3 s.
    assert times[-1] - times[0] >= 1_000 * ((40 - 5) / 10 - 1)


def test_an_endpoint_that_is_down_is_left_alone_but_for_one_probe_at_a_time(customer: Customer) -> None:
    hook = customer.hook("/toggle/{key}", rate_per_second=1000, burst=1000, retry_profile="quick")
    path = f"/toggle/{hook.type}"
    customer.receiver.post(f"{path}?to=down").raise_for_status()
    items = [{"type": hook.type, "payload": "{}"}] * 40
    answered = customer.api.post("/v1/events/batch", json={"events": items}).json()["results"]
    customer.stack.until(lambda: len(around_the_pause(customer, path)[1]) >= 2, within_s=40)
    customer.receiver.post(f"{path}?to=up").raise_for_status()
    burst, probes = around_the_pause(customer, path)
    assert 20 <= len(burst) <= 20 + 8
    for earlier, later in pairwise(each for each in probes if each["status"] == 503):
        assert later["received_at"] - earlier["answered_at"] >= 2_000
    for each in answered:
        assert customer.ended(each["delivery_ids"][0], within_s=60)["status"] == "succeeded"


def around_the_pause(customer: Customer, path: str) -> tuple[list[Record], list[Record]]:
    """Part what a path received at its first pause of a second and a half."""
    seen = customer.received(brief=1, path=path)
    pauses = (at for at, (a, b) in enumerate(pairwise(seen)) if b["received_at"] - a["received_at"] > 1_500)
    first = next(pauses, len(seen)) + 1
    return seen[:first], seen[first:]


def test_the_quick_profile_ends_after_six_attempts(customer: Customer, early: Early) -> None:
    ended: list[str] = []

    def one_has_ended() -> bool:
        ended.extend(each for each in early.exhausting if customer.delivery(each)["status"] == "dead")
        return bool(ended)

    customer.stack.until(one_has_ended, within_s=160)
    delivery = customer.delivery(ended[0])
    assert delivery["reason"] == "attempts_exhausted"
    assert [outcome(each) for each in delivery["attempts"]] == [("retryable", 500, None)] * 6
    attempts = delivery["attempts"]
    for number, each in enumerate(attempts[:-1]):
        assert 0 <= waited_s(each) <= 5 * 2**number + TOTAL_S
    assert [each["id"] for each in customer.dead_letters(delivery["endpoint_id"])] == [delivery["id"]]


def test_secrets_stand_in_no_log_and_no_file_of_a_run(customer: Customer) -> None:
    secret = customer.hook("/sink").secret.removeprefix("whsec_").encode()
    places = [customer.stack.state / name for name in ("logs", "emulator", "payloads")]
    files = [each for place in places for each in Path(place).rglob("*") if each.is_file()]
    assert files
    assert [each for each in files if secret in each.read_bytes()] == []
