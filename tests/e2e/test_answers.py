"""Whatever a receiver does, an attempt has a stated outcome: success, retried, or dead with a reason.

All cases are posted at once and then looked at one by one, so that their waits overlap.
"""

import base64
import gzip
import json
import socket
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.e2e.conftest import CONNECT_S, READ_S, TOTAL_S, Early
from tests.e2e.customer import Customer, Record, outcome

# What a busy machine may add to a timeout.
SLACK_MS = 2500
RESPONSE_CAP = 2048
ONE_BUFFER = 64 * 1024


class Case(NamedTuple):
    """What the receiver does (a path, or a scripted answer), and what an attempt at it comes to."""

    does: str | Record
    comes_to: tuple[str, int | None, str | None]


def raw(text: str, body: bytes = b"ok", *, close: bool = True) -> Record:
    """Answer with exactly this head and body."""
    data = text.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body
    return {"raw_b64": base64.b64encode(data).decode(), "close": close}


def answer(body: bytes, **headers: str) -> Record:
    return {"status": 200, "body_b64": base64.b64encode(body).decode(), "headers": headers}


def success(does: str | Record, status: int = 200) -> Case:
    return Case(does, ("success", status, None))


def retried(does: str | Record, status: int | None = None, fault: str | None = None) -> Case:
    return Case(does, ("retryable", status, fault))


def permanent(does: str | Record, status: int) -> Case:
    return Case(does, ("permanent", status, None))


BOMB = gzip.compress(bytes(20_000_000))
OK = "HTTP/1.1 200 OK\nContent-Length: 2"
RETRIED_STATUSES = (408, 425, 429, 500, 501, 502, 503, 504, 507, 599, 600, 999)
PERMANENT_STATUSES = (300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 413, 422, 451, 499)
CASES: dict[str, Case] = {
    **{f"{code}": success(f"/status/{code}", code) for code in (200, 201, 202, 203, 204, 205, 206, 226, 299)},
    **{f"{code}": permanent(f"/status/{code}", code) for code in PERMANENT_STATUSES},
    **{f"{code}": retried(f"/status/{code}", code) for code in RETRIED_STATUSES},
    "another protocol's turn": permanent("/status/101", 101),
    "a 1xx and nothing after it": permanent("/status/199", 199),
    "a 1xx and the end": permanent(raw("HTTP/1.1 199 Odd", b""), 199),
    "a 1xx with a body": permanent(raw("HTTP/1.1 199 Odd\nContent-Length: 2"), 199),
    "an announcement and silence": retried("/status/100", fault="timeout"),
    "an announcement and the end": retried(raw("HTTP/1.1 103 Early Hints", b""), fault="no_response"),
    "an announcement before the answer": success(raw("HTTP/1.1 103 Early Hints\nLink: </a>\n\n" + OK)),
    "a 1xx before the answer": success(raw("HTTP/1.1 100 Continue\n\nHTTP/1.1 199 Odd\n\n" + OK)),
    "f042 silence": retried("/hang", fault="timeout"),
    "f041 a status line that drips": retried("/trickle?ms=100&in=status", fault="timeout"),
    "f041 headers that drip": retried("/trickle?ms=100&in=headers", fault="timeout"),
    "f041 a body that drips": success("/trickle?ms=100&in=body"),
    "f043 a body cut short": success("/cut"),
    "f043 a chunk cut short": success("/cut?mode=chunked"),
    "a reset": retried("/rst", fault="no_response"),
    "f047 a close without an answer": retried("/close", fault="no_response"),
    "f047 another protocol": retried(raw("SSH-2.0-x", b""), fault="protocol_error"),
    "f047 another protocol cut short": retried(
        {"raw_b64": base64.b64encode(b"SSH-2.0-x\r\n").decode()}, fault="no_response"
    ),
    "f049 a control byte in a header": success(raw(OK + "\nX-A: a\x01b")),
    "f049 Latin-1 in a header": success(raw(OK + "\nX-A: caf\xe9")),
    "f050 an odd status line": retried(raw("HTTP/1.1 600 Odd"), status=600),
    "f050 no reason phrase": success(raw("HTTP/1.1 200\nServer: ")),
    "f050 HTTP/1.0 until close": success(raw("HTTP/1.0 200 OK")),
    "f050 HTTP/2.0 as text": success(raw("HTTP/2.0 200 OK")),
    "f052 a header of 9 KB": success(raw(OK + "\nX-Long: " + "a" * 9_000)),
    "f052 a header of 60 KB": success(raw(OK + "\nX-Long: " + "a" * 60_000)),
    "f052 a header of 200 KB": retried(raw(OK + "\nX-Long: " + "a" * 200_000), fault="protocol_error"),
    "f053 gzip that is none": success(answer(b"ok", **{"Content-Encoding": "gzip"})),
    "f053 x-gzip": success(answer(gzip.compress(b"ok"), **{"Content-Encoding": "x-gzip"})),
    "f053 an unknown encoding": success(answer(b"ok", **{"Content-Encoding": "aes128gcm"})),
    "f054 a decompression bomb": success(answer(BOMB, **{"Content-Encoding": "gzip"})),
    "f056 204 with a body": success(raw("HTTP/1.1 204 No\nContent-Length: 5", b"hello", close=False), 204),
    "f056 205 with a body": success(raw("HTTP/1.1 205 No\nContent-Length: 5", b"hello", close=False), 205),
    "f056 304 with a length": permanent(
        raw("HTTP/1.1 304 No\nContent-Length: 5", b"hello", close=False), 304
    ),
    "f057 two lengths": retried(raw(OK + "\nContent-Length: 3"), fault="protocol_error"),
    "f057 one length twice": success(raw(OK + "\nContent-Length: 2")),
    "f060 bytes that are no text": success(
        answer(b"\xff\xfe\x00", **{"Content-Type": "text/plain; charset=bogus-9"})
    ),
    "f060 text cut within a character": success(answer(("x" + "é" * 51_200).encode())),
    "8 MB": success("/bigbody?kb=8192"),
    "8 MB in chunks": success("/bigbody?kb=8192&mode=chunked"),
}
CUT = {"f041 a body that drips", "f043 a body cut short", "f043 a chunk cut short", "8 MB", "8 MB in chunks"}
CUT |= {"f054 a decompression bomb", "f060 text cut within a character"}


@pytest.fixture(scope="module")
def delivered(customer: Customer, early: Early) -> dict[str, str]:
    """Post an event for an endpoint of each case, and give the ids of their deliveries."""
    targets = {
        name: case.does if isinstance(case.does, str) else customer.script(case.does)
        for name, case in CASES.items()
    }
    return {name: customer.deliver(target)[1] for name, target in targets.items()}


@pytest.mark.parametrize("name", CASES)
def test_every_answer_has_its_outcome(customer: Customer, delivered: dict[str, str], name: str) -> None:
    delivery = customer.tried(delivered[name])
    first = delivery["attempts"][0]
    assert outcome(first) == CASES[name].comes_to
    match first["outcome"]:
        case "success":
            assert (customer.ended(delivery["id"])["status"], delivery["reason"]) == ("succeeded", None)
        case "permanent":
            assert (delivery["status"], delivery["reason"]) == ("dead", "permanent_failure")
        case _:
            assert delivery["status"] in {"pending", "inflight"}
    assert (first["response_truncated"] is True) == (name in CUT)


@pytest.mark.parametrize("name", CASES)
def test_history_tells_of_every_request(customer: Customer, delivered: dict[str, str], name: str) -> None:
    attempts = customer.tried(delivered[name])["attempts"]
    seen = Counter(each["attempt"] for each in customer.received(brief=1, delivery_id=delivered[name]))
    for each in attempts:
        assert 1 <= seen[each["attempt"]] <= 1 + sent_again(each)


def sent_again(attempt: Record) -> bool:
    """Say whether an attempt tells of a kept connection that turned out to be closed."""
    return "sent again" in (attempt["detail"] or "")


@pytest.mark.parametrize(
    "name, seconds",
    [
        ("f042 silence", READ_S),
        ("f041 a status line that drips", READ_S),
        ("f041 headers that drip", READ_S),
        ("f041 a body that drips", TOTAL_S),
        ("a 1xx and nothing after it", READ_S),
    ],
)
def test_f041_no_receiver_holds_a_sender_longer_than_the_timeouts(
    customer: Customer, delivered: dict[str, str], name: str, seconds: int
) -> None:
    took_ms = customer.tried(delivered[name])["attempts"][0]["consumer_ms"]["total"]
    assert seconds * 1000 <= took_ms < seconds * 1000 + SLACK_MS


def test_redirects_and_silence_end_at_the_total_timeout(customer: Customer) -> None:
    slow = customer.script({"status": 307, "headers": {"Location": "/hang"}, "delay_ms": 1_500})
    _, delivery_id = customer.deliver(slow)
    first = customer.tried(delivery_id)["attempts"][0]
    assert outcome(first) == ("retryable", None, "timeout")
    assert TOTAL_S * 1000 <= first["consumer_ms"]["total"] < TOTAL_S * 1000 + SLACK_MS


def test_f041_a_hanging_endpoint_lets_the_rest_of_its_batch_go(customer: Customer) -> None:
    hooks = [customer.hook("/hang/batch") for _ in range(9)] + [customer.hook("/sink")]
    items = [{"type": hook.type, "payload": "{}"} for hook in hooks]
    answered = customer.api.post("/v1/events/batch", json={"events": items}).json()["results"]
    *hanging, healthy = [each["delivery_ids"][0] for each in answered]
    (seen,) = customer.arrived(delivery_id=healthy)
    for each in hanging:
        assert outcome(customer.tried(each)["attempts"][0]) == ("retryable", None, "timeout")
    left = customer.arrived(9, path="/hang/batch", outcome="left")[:9]
    assert seen["answered_at"] < min(each["answered_at"] for each in left)


@pytest.fixture
def deaf() -> Iterator[int]:
    """Give a port where connections are taken and never spoken on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def full() -> Iterator[int]:
    """Give a port whose queue of connections is full, so that further ones get no answer at all."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for caller in (first, second):
            caller.settimeout(0)
            caller.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def test_f042_silence_has_a_fault_for_each_phase(customer: Customer, deaf: int, full: int) -> None:
    _, shaking_hands = customer.deliver(f"https://127.0.0.1:{deaf}/")
    _, connecting = customer.deliver(f"http://127.0.0.1:{full}/")
    firsts = [customer.tried(each)["attempts"][0] for each in (shaking_hands, connecting)]
    assert [each["fault"] for each in firsts] == ["tls_failed", "connect_timeout"]
    for each in firsts:
        assert CONNECT_S * 1000 <= each["consumer_ms"]["total"] < CONNECT_S * 1000 + SLACK_MS


def test_who_is_not_there_is_retried(customer: Customer) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        _, refused = customer.deliver(f"http://127.0.0.1:{reserved.getsockname()[1]}/")
        _, unknown = customer.deliver("http://nowhere.invalid/")
        assert outcome(customer.tried(refused)["attempts"][0]) == ("retryable", None, "connect_failed")
        assert outcome(customer.tried(unknown)["attempts"][0]) == ("retryable", None, "dns_failed")


def test_f044_a_connection_closed_while_idle_costs_no_attempt(customer: Customer) -> None:
    hook = customer.hook("/stale?ms=50")
    for _ in range(8):
        delivery_id = customer.post(hook.type).delivery_id
        customer.arrived(delivery_id=delivery_id)
        assert [outcome(each) for each in customer.ended(delivery_id)["attempts"]] == [("success", 200, None)]


def test_f044_a_kept_connection_closed_instead_of_an_answer_is_told(customer: Customer) -> None:
    hook = customer.hook(customer.script({"status": 200}, {"do": "close"}, {"do": "rst"}, {"status": 200}))
    customer.ended(customer.post(hook.type).delivery_id)
    delivery = customer.ended(customer.post(hook.type).delivery_id)
    assert outcome(delivery["attempts"][-1]) == ("success", 200, None)
    assert {each["fault"] for each in delivery["attempts"][:-1]} <= {"no_response"}
    requests = len(customer.received(brief=1, delivery_id=delivery["id"]))
    assert requests == 3 == len(delivery["attempts"]) + sum(map(sent_again, delivery["attempts"]))


def test_f046_work_that_was_done_before_the_timeout_is_known_again_by_its_id(customer: Customer) -> None:
    late = {"status": 200, "delay_ms": (TOTAL_S + 1) * 1000}
    hook = customer.hook(customer.script(late, {"status": 200}))
    delivery = customer.ended(customer.post(hook.type).delivery_id)
    assert [outcome(each)[::2] for each in delivery["attempts"]] == [
        ("retryable", "timeout"),
        ("success", None),
    ]
    met = customer.received(delivery_id=delivery["id"])
    assert [each["attempt"] for each in met] == [1, 2]
    assert {each["headers"]["relay-delivery-id"] for each in met} == {delivery["id"]}


def test_silence_on_a_kept_connection_is_one_request(customer: Customer) -> None:
    hook = customer.hook(customer.script({"status": 200}, {"do": "hang"}, {"status": 200}))
    customer.ended(customer.post(hook.type).delivery_id)
    delivery = customer.ended(customer.post(hook.type).delivery_id)
    assert [outcome(each)[::2] for each in delivery["attempts"]] == [
        ("retryable", "timeout"),
        ("success", None),
    ]
    assert [each["attempt"] for each in customer.received(delivery_id=delivery["id"])] == [1, 2]


def test_f056_an_answer_beyond_204_spoils_nothing_for_the_next(customer: Customer) -> None:
    spoilt = raw("HTTP/1.1 204 No\nContent-Length: 5", b"hello", close=False)
    hook = customer.hook(customer.script(spoilt, {"status": 201}))
    statuses = [
        customer.ended(customer.post(hook.type).delivery_id)["attempts"][0]["status"] for _ in range(2)
    ]
    assert statuses == [204, 201]


def test_f058_no_cookie_is_ever_sent_back(customer: Customer) -> None:
    baked = {"status": 200, "headers": {"Set-Cookie": "sid=abc; Path=/"}}
    baker, other = customer.hook(customer.script(baked)), customer.hook("/sink")
    for hook in (baker, other, baker):
        delivery_id = customer.post(hook.type).delivery_id
        customer.ended(delivery_id)
        (seen,) = customer.received(delivery_id=delivery_id)
        assert "cookie" not in seen["headers"]


@pytest.mark.parametrize("mode", ["length", "chunked"])
def test_a_big_answer_costs_the_cap_and_what_was_under_way(customer: Customer, mode: str) -> None:
    """Our socket takes 32 KiB unread, doubled by the kernel; as much may lie in the sender's buffers."""
    hook = customer.hook(f"/bigbody?kb=8192&mode={mode}", rate_per_second=1000)
    delivery_ids = [customer.post(hook.type).delivery_id for _ in range(10)]
    for delivery_id in delivery_ids:
        first = customer.ended(delivery_id)["attempts"][0]
        assert len(first["response"]) == RESPONSE_CAP
        (seen,) = customer.arrived(delivery_id=delivery_id, outcome="left")
        assert seen["bytes_written"] <= RESPONSE_CAP + 2 * ONE_BUFFER


def test_f054_f060_an_answer_is_kept_as_it_came(customer: Customer, delivered: dict[str, str]) -> None:
    bytes_ = customer.ended(delivered["f060 bytes that are no text"])["attempts"][0]
    assert (bytes_["response"], base64.b64decode(bytes_["response_base64"])) == (None, b"\xff\xfe\x00")
    bomb = customer.ended(delivered["f054 a decompression bomb"])["attempts"][0]
    assert base64.b64decode(bomb["response_base64"])[20:] == BOMB[20:RESPONSE_CAP]
    cut = customer.ended(delivered["f060 text cut within a character"])["attempts"][0]
    assert cut["response"] == "x" + "é" * ((RESPONSE_CAP - 1) // 2), "half a character is left out"


def test_f049_f060_whatever_was_answered_every_log_line_is_json(
    customer: Customer, delivered: dict[str, str]
) -> None:
    for delivery_id in delivered.values():
        customer.tried(delivery_id)
    # Those with `_aws` are metrics, which CloudWatch reads.
    lines = [json.loads(line) for line in customer.stack.log("workers").splitlines()]
    logged = {line.get("delivery_id") for line in lines}
    assert set(delivered.values()) <= logged
    told = [line for line in lines if "_aws" not in line]
    assert [line for line in told if line["level"] not in {"INFO", "WARNING"}] == []
