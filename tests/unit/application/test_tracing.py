"""Tracing: one span for each attempt that is wanted, in the trace it belongs to, so many a second at most."""

from dataclasses import replace

import pytest

from chalicelib.application.tracing import Tracer
from chalicelib.application.visit import Attempted
from chalicelib.domain.delivery import Status
from chalicelib.domain.endpoint import Limits
from chalicelib.domain.trace import Origin, Steps
from tests.fakes.fixed_clock import FixedClock, LoadedDice
from tests.fakes.kept_spans import KeptSpans
from tests.fakes.scripted_sender import status
from tests.unit.application.process import Process
from tests.unit.application.world import TAKE_OVER_MS, VISIBILITY_MS, World, posted

ROOT, OTHER = "1-5759e988-bd862e3fe1be46a994272793", "1-5759e988-bd862e3fe1be46a994272794"
PARENT = "53995c3f42cd8ad8"
DELIVERY = "018bcfe5-687b-7000-8000-000000000005"
ATTEMPTED = Attempted(
    "acme", "ep_1", "acme#ep_1#0", DELIVERY, "evt_1", 0, 1, "success", 200, None, Status.SUCCEEDED, "",
    5, 0, "", 20, Steps(1, 2, 3, 4, 5, 6),
)  # fmt: skip


class Told:
    """A tracer, and what it wrote."""

    def __init__(self, per_second: int = 100) -> None:
        self.spans = KeptSpans()
        self.clock = FixedClock()
        self.tracer = Tracer(self.spans, self.clock, LoadedDice(), per_second)


def steps_of(attempted: Attempted) -> Steps:
    assert attempted.steps is not None
    return attempted.steps


def header(root: str, sampled: str = "1") -> str:
    return f"Root={root};Parent={PARENT};Sampled={sampled}"


@pytest.mark.parametrize(
    "rung_in, called_in, trace_id, parent",
    [
        ("", "", Origin.of_delivery(DELIVERY).trace_id, None),
        ("", header(ROOT), ROOT, PARENT),
        (header(OTHER), header(ROOT), OTHER, PARENT),
        ("nonsense", header(ROOT), ROOT, PARENT),
        (header(OTHER, "0"), header(ROOT), "", None),
        ("", header(ROOT, "0"), "", None),
    ],
)
def test_a_span_goes_on_from_whoever_rang_the_bell_or_called_the_function_unless_that_is_not_traced(
    rung_in: str, called_in: str, trace_id: str, parent: str | None
) -> None:
    told = Told()
    assert told.tracer.tell(replace(ATTEMPTED, rung_in=rung_in), called_in) == trace_id
    assert [each["trace_id"] for each in told.spans.documents] == ([trace_id] if trace_id else [])
    assert [each.get("parent_id") for each in told.spans.documents] == ([parent] if trace_id else [])


def test_a_process_writes_so_many_spans_a_second_and_no_more() -> None:
    told = Told(per_second=3)
    for _ in range(4):
        written = [bool(told.tracer.tell(ATTEMPTED, header(ROOT))) for _ in range(10)]
        assert written == [True] * 3 + [False] * 7
        told.clock.advance(ms=1_000)
    assert len(told.spans.documents) == 12
    ids = [part["id"] for each in told.spans.documents for part in (each, *each["subsegments"])]
    assert len(set(ids)) == len(ids) == 48


def test_a_span_says_what_the_attempt_was_and_nothing_else() -> None:
    told = Told()
    failed = replace(
        ATTEMPTED, outcome="retryable", status=None, fault="timeout", became=Status.PENDING, held_ms=7,
        held_for="rate_limit",
    )  # fmt: skip
    told.tracer.tell(failed)
    (span,) = told.spans.documents
    assert span["annotations"] == {
        "tenant": "acme",
        "endpoint_id": "ep_1",
        "lane": "acme#ep_1#0",
        "delivery_id": DELIVERY,
        "event_id": "evt_1",
        "generation": 0,
        "attempt": 1,
        "outcome": "retryable",
        "became": "pending",
        "fault": "timeout",
    }
    gate, send, settle = span["subsegments"]
    assert gate["annotations"] == {"held_ms": 7, "held_for": "rate_limit"}
    assert span["fault"] is send["fault"] is True
    assert send.keys() == {"name", "id", "start_time", "end_time", "namespace", "fault"}
    assert settle.keys() == {"name", "id", "start_time", "end_time"}


def test_the_steps_of_an_attempt_are_those_of_its_visit(world: World) -> None:
    world.endpoint(limits=Limits(10, 1, 8))
    world.sender.script = lambda _: status(200, took_ms=20)
    world.accept([posted()] * 4, world.usual)
    asked_us = world.clock.now_us()
    report = world.deliver()
    assert report is not None
    first, *_, last = sorted(map(steps_of, report.attempted), key=lambda steps: steps.sent_us)
    assert first[:4] == (asked_us, asked_us, asked_us, asked_us + 20_000)
    assert last.asked_us == asked_us
    assert last.turn_us - asked_us >= 250_000
    for each in report.attempted:
        steps = steps_of(each)
        assert steps == steps.in_order
        assert steps.answered_us - steps.sent_us == each.consumer_ms * 1000 == 20_000
        assert (each.held_for == "rate_limit") == (each.held_ms > 0)
    assert max(each.held_ms for each in report.attempted) > 0


def test_a_lane_that_was_held_in_place_asked_before_it_was(world: World) -> None:
    endpoint = world.endpoint()
    world.accept([posted()], world.usual)
    asked_us = world.clock.now_us()
    until_ms = world.hold(endpoint, 1_500)
    report = world.deliver()
    assert report is not None
    (attempted,) = report.attempted
    assert steps_of(attempted).asked_us == asked_us
    assert steps_of(attempted).turn_us >= until_ms * 1000


def test_a_visit_that_was_only_held_made_no_attempt_and_so_no_span(world: World) -> None:
    endpoint = world.endpoint()
    world.accept([posted()], world.usual)
    world.hold(endpoint, 30_000)
    held = world.deliver()
    assert held is not None
    assert held.attempted == ()
    assert world.sender.sent == []
    world.pass_time(31_000)
    assert len(world.sender.sent) == 1


def test_an_attempt_whose_holder_died_is_told_but_has_no_span(world: World) -> None:
    world.endpoint()
    (delivery,) = world.deliveries(1)
    died = Process(world)
    died.faults.kill_at(1, after=True)
    world.deliver(died)
    world.clock.advance(ms=TAKE_OVER_MS)
    world.run(lambda process: process.reconcile.run(), world.usual)
    world.clock.advance(ms=VISIBILITY_MS)
    report = world.deliver()
    assert report is not None
    assert [each.outcome for each in report.attempted] == world.outcomes(delivery) == ["unknown", "success"]
    unknown, _ = report.attempted
    assert (unknown.became, unknown.attempt, unknown.consumer_ms) == (Status.PENDING, 1, 0)
    told = Told()
    assert told.tracer.tell(unknown) == ""
    assert told.spans.documents == []
