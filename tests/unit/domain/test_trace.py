"""Spans as X-Ray's documents: in order, within one another, and of nothing but ids, classes and numbers."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import ids, trace
from chalicelib.domain.trace import Origin, Steps, Told

ROOT = "1-5759e988-bd862e3fe1be46a994272793"
PARENT = "53995c3f42cd8ad8"
DELIVERY = str(ids.uuid7(1_700_000_000_123, 5))
SPANS = ("0" * 15 + "1", "0" * 15 + "2", "0" * 15 + "3", "0" * 15 + "4")
TOLD = Told({"attempt": 1}, {}, 200, failed=False)


@pytest.mark.parametrize(
    "header, origin",
    [
        (f"Root={ROOT};Parent={PARENT};Sampled=1", Origin(ROOT, PARENT, wanted=True)),
        (f"Root={ROOT};Parent={PARENT};Sampled=0;Lineage=1:a:0", Origin(ROOT, PARENT, wanted=False)),
        (f"Self=1-67891234-12456789abcdef012345678; Root={ROOT}", Origin(ROOT)),
        (f"Root={ROOT};Sampled=?", Origin(ROOT)),
        (f"Root={ROOT};Parent=nobody;Sampled=1", Origin(ROOT, "", wanted=True)),
        ("", None),
        (f"Parent={PARENT};Sampled=1", None),
        ("Root=1-5759e988-BD862e3fe1be46a994272793", None),
        (f"Root={ROOT}\n", Origin(ROOT)),
        ("Root", None),
        (f"Root={ROOT};" + "x" * 500, None),
    ],
)
def test_a_trace_header_is_read_as_aws_writes_it_and_nothing_else_is(
    header: str, origin: Origin | None
) -> None:
    assert Origin.of_header(header) == origin


@given(st.text())
def test_no_header_whatever_breaks_anything(header: str) -> None:
    found = Origin.of_header(header)
    assert found is None or re.fullmatch("1-[0-9a-f]{8}-[0-9a-f]{24}", found.trace_id)


def test_a_delivery_s_own_trace_is_the_same_each_time_and_begins_when_its_event_came() -> None:
    own = Origin.of_delivery(DELIVERY)
    assert own == Origin.of_delivery(DELIVERY)
    assert re.fullmatch("1-[0-9a-f]{8}-[0-9a-f]{24}", own.trace_id)
    assert int(own.trace_id[2:10], 16) == 1_700_000_000
    assert own.trace_id != Origin.of_delivery(str(ids.uuid7(1_700_000_000_123, 6))).trace_id


@given(st.lists(st.integers(0, 2**51), min_size=6, max_size=6))
def test_gate_send_and_settle_lie_within_their_span_one_after_the_other(moments: list[int]) -> None:
    made = trace.document(Origin(ROOT, PARENT), SPANS, Steps(*moments), TOLD)
    gate, send, settle = made["subsegments"]
    times = [
        made["start_time"], gate["start_time"], gate["end_time"], send["start_time"], send["end_time"],
        settle["start_time"], settle["end_time"], made["end_time"],
    ]  # fmt: skip
    assert times == sorted(times)
    assert [each["name"] for each in (made, gate, send, settle)] == ["relay", "gate", "send", "settle"]
    assert [each["id"] for each in (made, gate, send, settle)] == list(SPANS)
    assert (made["trace_id"], made["parent_id"]) == (ROOT, PARENT)


def test_a_span_of_its_own_trace_has_no_parent() -> None:
    assert "parent_id" not in trace.document(Origin(ROOT), SPANS, Steps(1, 2, 3, 4, 5, 6), TOLD)


@pytest.mark.parametrize(
    "status, failed, blame",
    [
        (200, False, {}),
        (410, True, {"error": True}),
        (429, True, {"error": True, "throttle": True}),
        (503, True, {"fault": True}),
        (302, True, {"fault": True}),
        (None, True, {"fault": True}),
    ],
)
def test_a_failure_is_blamed_in_x_ray_s_words(
    status: int | None,
    *,
    failed: bool,
    blame: dict[str, Any],
) -> None:
    told = Told({}, {"held_ms": 5}, status, failed=failed)
    made = trace.document(Origin(ROOT), SPANS, Steps(1, 2, 3, 4, 5, 6), told)
    gate, send, _ = made["subsegments"]
    words = {"error", "throttle", "fault"}
    assert {name: made[name] for name in words & made.keys()} == blame
    assert {name: send[name] for name in words & send.keys()} == blame
    assert send.get("http") == (None if status is None else {"response": {"status": status}})
    assert gate["annotations"] == {"held_ms": 5}
