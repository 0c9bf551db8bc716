"""Queues and schedules call functions as Lambda's event source mappings do, over queues in memory."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from chalice.app import Chalice, CloudWatchEvent, Rate, SQSEvent

from infra.local.event_sources import EventSources, Polling, SourceOptions
from tests.fakes.local_queues import MemoryQueues

QUICKLY = SourceOptions(polling=Polling(wait_s=0, pause_s=0.002, longest_pause_s=0.01))
PATIENTLY = SourceOptions(polling=Polling(wait_s=1))


UNKNOWN = {"batchItemFailures": [{"itemIdentifier": "unknown"}]}


def until(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


class Stage:
    """An app with two queues whose handlers a test writes, and what they were called with."""

    def __init__(self) -> None:
        self.queues = MemoryQueues()
        self.app = Chalice(app_name="stub", configure_logs=False)
        self.answer: Callable[[dict[str, Any]], object] = lambda _: None
        self.events: list[dict[str, Any]] = []
        self.contexts: list[Any] = []
        self.app.on_sqs_message(queue="one.fifo", batch_size=10, name="one")(self.handle)
        self.app.on_sqs_message(queue="two", batch_size=1, name="two")(self.handle_two)

    def handle(self, event: SQSEvent) -> object:
        self.events.append(event.to_dict())
        self.contexts.append(event.context)
        return self.answer(event.to_dict())

    def handle_two(self, event: SQSEvent) -> object:
        return self.handle(event)

    @contextmanager
    def running(self, options: SourceOptions = QUICKLY) -> Iterator[EventSources]:
        sources = EventSources(self.app, self.queues, options)
        sources.start()
        try:
            yield sources
        finally:
            sources.stop(5)

    def bodies(self) -> list[str]:
        return [record["body"] for event in self.events for record in event["Records"]]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_messages_come_in_batches_and_are_deleted_when_the_function_is_done(stage: Stage) -> None:
    for number in range(25):
        stage.queues.send("one.fifo", str(number), f"group-{number}")
    with stage.running():
        until(lambda: not stage.queues.left("one.fifo"))
    assert sorted(map(int, stage.bodies())) == list(range(25))
    assert max(len(event["Records"]) for event in stage.events) == 10
    assert stage.events[0]["Records"][0]["eventSourceARN"].endswith(":one.fifo")


def test_the_batch_size_of_the_function_is_kept(stage: Stage) -> None:
    for number in range(4):
        stage.queues.send("two", str(number))
    with stage.running():
        until(lambda: not stage.queues.left("two"))
    assert [len(event["Records"]) for event in stage.events] == [1, 1, 1, 1]


def test_queues_go_by_the_prefix_of_the_run(stage: Stage) -> None:
    stage.app.on_sqs_message(queue="relay-three", batch_size=1, name="three")(stage.handle)
    stage.queues.send("mine-three", "x")
    with stage.running(replace(QUICKLY, prefix="mine-")):
        until(lambda: stage.bodies() == ["x"])


def test_the_context_is_lambdas_with_a_minute_to_go(stage: Stage) -> None:
    stage.queues.send("two", "x")
    with stage.running():
        until(lambda: bool(stage.contexts))
    assert stage.contexts[0].function_name == "two"
    assert 55_000 < stage.contexts[0].get_remaining_time_in_millis() <= 60_000


def test_only_what_the_function_kept_back_stays(stage: Stage) -> None:
    kept = [stage.queues.send("one.fifo", body, body) for body in "abc"][1]
    stage.answer = lambda _: {"batchItemFailures": [{"itemIdentifier": kept}]}
    with stage.running():
        until(lambda: len(stage.queues.left("one.fifo")) == 1)
    assert [message.id for message in stage.queues.left("one.fifo")] == [kept]
    assert stage.queues.in_flight("one.fifo") == 1


@pytest.mark.parametrize(
    "answer, said",
    [
        pytest.param(lambda _: 1 / 0, "function.failed", id="raises"),
        pytest.param(lambda _: UNKNOWN, "function.unusable_report", id="unknown id"),
        pytest.param(lambda _: "done", "function.unusable_report", id="no object"),
    ],
)
def test_a_failure_keeps_the_whole_batch_and_is_one_line_of_the_log(
    stage: Stage, answer: Callable[[Any], Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.queues.send("one.fifo", "a", "a")
    stage.queues.send("one.fifo", "b", "b")
    stage.answer = answer
    with stage.running() as sources:
        until(lambda: bool(stage.events))
        sources.stop(5)
    assert len(stage.queues.left("one.fifo")) == stage.queues.in_flight("one.fifo") == 2
    line = json.loads(capsys.readouterr().err)
    assert (line["message"], line["function"], line["level"]) == (said, "one", "ERROR")


def test_a_function_that_ran_too_long_has_failed(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.queues.send("two", "slow")
    stage.answer = lambda _: time.sleep(0.02)
    with stage.running(replace(QUICKLY, timeout_s=0.01)) as sources:
        until(lambda: bool(stage.events))
        sources.stop(5)
    assert len(stage.queues.left("two")) == 1
    assert json.loads(capsys.readouterr().err)["message"] == "function.timed_out"


def test_a_function_may_delete_its_messages_itself(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.queues.send("one.fifo", "a", "a")

    def delete(event: dict[str, Any]) -> None:
        handles = [{"ReceiptHandle": record["receiptHandle"]} for record in event["Records"]]
        stage.queues.delete("one.fifo", handles)

    stage.answer = delete
    with stage.running():
        until(lambda: len(stage.queues.deletes) == 2)
    assert not stage.queues.left("one.fifo")
    assert not capsys.readouterr().err


def test_a_group_is_never_in_two_invocations(stage: Stage) -> None:
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    lock = threading.Lock()

    def work(event: dict[str, Any]) -> None:
        groups = {record["attributes"]["MessageGroupId"] for record in event["Records"]}
        with lock:
            running.update(groups)
            for group in groups:
                most[group] = max(most[group], running[group])
        time.sleep(0.002)
        with lock:
            running.subtract(groups)

    stage.answer = work
    with stage.running():
        for number in range(200):
            stage.queues.send("one.fifo", str(number), f"group-{number % 7}")
        until(lambda: not stage.queues.left("one.fifo"))
    assert set(most.values()) == {1}
    for group in range(7):
        in_order = [body for body in map(int, stage.bodies()) if body % 7 == group]
        assert in_order == sorted(in_order)


def test_nothing_is_received_without_a_slot_to_run_it(stage: Stage) -> None:
    gate = threading.Event()
    stage.answer = lambda _: gate.wait(5) and None
    for number in range(10):
        stage.queues.send("two", str(number))
    with stage.running(replace(QUICKLY, slots=2)):
        until(lambda: len(stage.events) == 3)
        time.sleep(0.05)
        assert stage.queues.in_flight("two") == 3
        stage.queues.send("one.fifo", "not starved", "g")
        until(lambda: "not starved" in stage.bodies())
        gate.set()
        until(lambda: not stage.queues.left("two"))


def test_a_cap_holds_for_its_function_alone(stage: Stage) -> None:
    gate = threading.Event()
    stage.answer = lambda _: gate.wait(5) and None
    for number in range(4):
        stage.queues.send("two", str(number))
        stage.queues.send("one.fifo", str(number), "g")
        stage.queues.send("one.fifo", str(number), f"group-{number}")
    with stage.running(replace(QUICKLY, caps={"two": 2})):
        until(lambda: stage.queues.in_flight("two") == 2)
        time.sleep(0.05)
        assert stage.queues.in_flight("two") == 2
        gate.set()
        until(lambda: not stage.queues.left("two"))


def test_a_broken_queue_is_logged_once_and_asked_again(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.queues.broken = True
    with stage.running():
        until(lambda: stage.queues.receives >= 3)
        stage.queues.broken = False
        stage.queues.send("two", "after")
        until(lambda: "after" in stage.bodies())
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert sorted((line["message"], line["function"]) for line in lines) == [
        ("queue.unreachable", "one"),
        ("queue.unreachable", "two"),
    ]


def test_stopping_waits_for_what_runs_and_gives_back_what_came_late(stage: Stage) -> None:
    stage.answer = lambda _: time.sleep(0.1)
    stage.queues.send("two", "runs")
    with stage.running(PATIENTLY) as sources:
        until(lambda: bool(stage.events))
        sources._stopping.set()  # noqa: SLF001 - between a poll's question and its answer there is no other way in
        stage.queues.send("one.fifo", "late", "g")
        assert sources.stop(5) == 0
    assert stage.bodies() == ["runs"]
    assert not stage.queues.left("two")
    assert [message.body for message in stage.queues.left("one.fifo")] == ["late"]
    assert stage.queues.in_flight("one.fifo") == 0


def test_stopping_says_how_much_it_had_to_abandon(stage: Stage) -> None:
    gate = threading.Event()
    stage.answer = lambda _: gate.wait(5) and None
    stage.queues.send("two", "hangs")
    sources = EventSources(stage.app, stage.queues, QUICKLY)
    sources.start()
    until(lambda: bool(stage.events))
    assert sources.stop(0.05) == 1
    gate.set()
    assert sources.stop(5) == 0


def test_schedules_run_and_their_failures_are_logged(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    times: list[str] = []

    def reconcile(event: CloudWatchEvent) -> None:
        times.append(event.to_dict()["time"])
        raise RuntimeError("oh no")

    stage.app.schedule(Rate(1, unit=Rate.MINUTES), name="reconcile")(reconcile)
    with stage.running(replace(QUICKLY, speed=2000)):
        until(lambda: len(times) >= 3)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {(line["message"], line["function"]) for line in lines} == {("function.failed", "reconcile")}


def test_a_schedule_that_hangs_is_skipped_and_said_so(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = threading.Event()
    begun: list[int] = []

    def reconcile(_: CloudWatchEvent) -> None:
        begun.append(1)
        gate.wait(5)

    stage.app.schedule(Rate(1, unit=Rate.MINUTES), name="reconcile")(reconcile)
    with stage.running(replace(QUICKLY, speed=2000)):
        time.sleep(0.3)
        assert len(begun) == 2
        gate.set()
    first = json.loads(capsys.readouterr().err.splitlines()[0])
    assert (first["message"], first["function"]) == ("schedule.skipped", "reconcile")


def test_middleware_runs_for_every_invocation_from_the_first(stage: Stage) -> None:
    seen: list[int] = []

    def count(event: object, go_on: Callable[[object], object]) -> object:
        seen.append(1)
        return go_on(event)

    stage.app.register_middleware(count, "sqs")
    for number in range(40):
        stage.queues.send("two", str(number))
    with stage.running():
        until(lambda: not stage.queues.left("two"))
    assert len(seen) == len(stage.events) == 40
