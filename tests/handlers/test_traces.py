"""Traces: a delivery is one span with gate, send and settle inside it; switched off, nothing is."""

import gc
import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib import bootstrap
from chalicelib.domain.trace import Origin
from chalicelib.settings import SettingsError, xray_daemon
from tests.handlers.collector import Collector
from tests.handlers.conftest import Lines, MakeRelay
from tests.handlers.relay import Relay
from tests.handlers.test_delivering import delivery
from tests.leaks.watch import WATCH
from tests.receiver import Receiver

ROOT, PARENT = "1-5759e988-bd862e3fe1be46a994272793", "53995c3f42cd8ad8"
HEADER = f"Root={ROOT};Parent={PARENT};Sampled=1"
DEVELOPMENT = {"RELAY_ALLOW_KEYLESS": "true", "RELAY_ALLOW_PRIVATE_ENDPOINTS": "true"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as listening:
        yield listening


@pytest.fixture
def traced(make_relay: MakeRelay, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    relay = make_relay(RELAY_TRACES="xray", RELAY_TRACES_PER_SECOND="1000", **DEVELOPMENT)
    monkeypatch.setenv("AWS_XRAY_DAEMON_ADDRESS", collector.address)
    yield relay
    if tracer := bootstrap.tracer():
        tracer.spans.close()  # type: ignore[attr-defined] # a function's process has no end at which to close


def span_of(collector: Collector, said: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Take the one span of a delivery, and hold it to its form."""
    span = collector.next()
    assert collector.nothing_more()
    WATCH.seen("a span of a trace", json.dumps(span))
    gate, send, settle = span["subsegments"]
    assert [each["name"] for each in (span, gate, send, settle)] == ["relay", "gate", "send", "settle"]
    ids = [each["id"] for each in (span, gate, send, settle)]
    assert len(set(ids)) == 4
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in ids)
    moments = [
        span["start_time"], gate["start_time"], gate["end_time"], send["start_time"], send["end_time"],
        settle["start_time"], settle["end_time"], span["end_time"],
    ]  # fmt: skip
    assert moments == sorted(moments)
    assert span["annotations"]["delivery_id"] == said["delivery_ids"][0]
    assert span["annotations"]["event_id"] == said["event_id"]
    return span


def test_a_delivery_is_one_span_with_its_three_parts(
    traced: Relay, collector: Collector, receiver: Receiver, lines: Lines
) -> None:
    made = traced.endpoint(url=receiver.url("/sink?token=hush-query"), headers={"X-Token": "hush-header"})
    said = traced.event(b'{"type":"order.paid","of":"hush-body"}')
    traced.deliver_all()
    span = span_of(collector, said)
    assert span["trace_id"] == Origin.of_delivery(said["delivery_ids"][0]).trace_id
    assert span["annotations"]["endpoint_id"] == made["id"]
    assert span["annotations"]["outcome"] == "success"
    assert span["subsegments"][1]["http"] == {"response": {"status": 200}}
    assert not span.keys() & {"fault", "error", "parent_id"}
    assert "hush" not in json.dumps(span)
    assert "127.0.0.1" not in json.dumps(span)
    (line,) = lines.named("delivery.attempted")
    assert line["trace_id"] == span["trace_id"]


def test_a_failed_attempt_is_one_too(traced: Relay, collector: Collector, receiver: Receiver) -> None:
    traced.endpoint(url=receiver.url("/always500"))
    said = traced.event()
    traced.deliver_all()
    span = span_of(collector, said)
    assert span["fault"] is span["subsegments"][1]["fault"] is True
    assert (span["annotations"]["outcome"], span["annotations"]["became"]) == ("retryable", "pending")


def test_a_held_one_is_one_that_says_how_long_and_why(
    traced: Relay, collector: Collector, receiver: Receiver
) -> None:
    """Four at once, of which the gate lets one through each 250 ms: what is paced was held by its rate."""
    traced.endpoint(url=receiver.url("/sink"), rate_per_second=4, burst=1)
    said = [traced.event() for _ in range(2)]
    for queue, messages in traced.rung().items():
        assert traced.deliver(queue, messages) == []
    spans = [collector.next() for _ in said]
    assert collector.nothing_more()
    held = max(spans, key=lambda span: span["start_time"] + span["subsegments"][0]["end_time"])
    gate = held["subsegments"][0]
    assert gate["annotations"]["held_for"] == "rate_limit"
    assert gate["annotations"]["held_ms"] > 50
    assert {span["annotations"]["delivery_id"] for span in spans} == {
        one for each in said for one in each["delivery_ids"]
    }


def test_a_span_goes_on_from_the_trace_of_the_request_that_rang(
    traced: Relay, collector: Collector, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lambda names the request's trace to the function, which sends it with the bell."""
    traced.endpoint(url=receiver.url("/sink"))
    monkeypatch.setenv("_X_AMZN_TRACE_ID", HEADER)
    said = traced.event()
    monkeypatch.delenv("_X_AMZN_TRACE_ID")
    ((queue, (bell,)),) = traced.rung().items()
    bell["Attributes"].setdefault("AWSTraceHeader", HEADER)
    assert traced.deliver(queue, [bell]) == []
    span = span_of(collector, said)
    assert (span["trace_id"], span["parent_id"]) == (ROOT, PARENT)


def test_what_is_not_sampled_upstream_is_not_traced(
    traced: Relay, collector: Collector, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced.endpoint(url=receiver.url("/sink"))
    traced.event()
    monkeypatch.setenv("_X_AMZN_TRACE_ID", f"Root={ROOT};Parent={PARENT};Sampled=0")
    traced.deliver_all()
    assert collector.nothing_more()


def test_a_daemon_that_is_not_there_is_missed_by_nobody(
    traced: Relay, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_XRAY_DAEMON_ADDRESS", "{}:{}".format(*taken.getsockname()))
    traced.endpoint(url=receiver.url("/sink"))
    said = [traced.event() for _ in range(2)]
    traced.deliver_all()
    assert [delivery(traced, each)["status"] for each in said] == ["succeeded"] * 2


def test_switched_off_there_is_no_socket_and_no_span(
    relay: Relay, receiver: Receiver, collector: Collector, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_XRAY_DAEMON_ADDRESS", collector.address)
    monkeypatch.setenv("_X_AMZN_TRACE_ID", HEADER)
    relay.endpoint(url=receiver.url("/sink"))
    relay.event()
    ((queue, (bell,)),) = relay.rung().items()
    assert "AWSTraceHeader" not in bell["Attributes"]
    bell["Attributes"]["AWSTraceHeader"] = HEADER
    assert relay.deliver(queue, [bell]) == []
    assert bootstrap.tracer() is None
    assert collector.nothing_more()
    assert [line["trace_id"] for line in lines.named("delivery.attempted")] == [""]
    made = [type(each).__name__ for each in gc.get_objects()]
    assert {"XrayDaemon", "Tracer"}.isdisjoint(made)


@pytest.mark.parametrize(
    "said, address",
    [
        ("", ("127.0.0.1", 2000)),
        ("169.254.79.129:2000", ("169.254.79.129", 2000)),
        ("tcp:127.0.0.1:2001 udp:127.0.0.2:2002", ("127.0.0.2", 2002)),
        ("[fd00::5]:2000", ("fd00::5", 2000)),
    ],
)
def test_the_daemon_is_where_lambda_says(said: str, address: tuple[str, int]) -> None:
    assert xray_daemon({"AWS_XRAY_DAEMON_ADDRESS": said}) == address


@pytest.mark.parametrize("said", ["nowhere", "127.0.0.1:", ":2000", "127.0.0.1:x"])
def test_a_daemon_s_address_that_is_none_is_told(said: str) -> None:
    with pytest.raises(SettingsError, match="AWS_XRAY_DAEMON_ADDRESS"):
        xray_daemon({"AWS_XRAY_DAEMON_ADDRESS": said})
