"""Plays what starts functions on AWS: SQS event source mappings and schedules, for any Chalice app.

One thread per queue asks for messages; the invocations run in a pool of threads. What Lambda promises holds
here: a batch of up to ten, partial batch responses, messages deleted only after the function said so, a group
never in two invocations (the queue sees to that), and nothing received without a free slot to run it.
"""

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from chalice.app import Chalice, ScheduledEventConfig, SQSEventConfig

from infra.local.functions import Function, FunctionFailedError
from infra.local.invocation import FUNCTION_TIMEOUT_S, keep_threads_apart
from infra.local.logs import log_line
from infra.local.queues import QueueError, Queues
from infra.local.schedules import Schedules, period_of
from infra.local.slots import Slots
from infra.local.sqs_event import Message, UnusableReportError, event_of, kept_back, queue_arn

DEFAULT_PREFIX = "relay-"

_BATCH_LIMIT = 10
_RUNS_OF_A_SCHEDULE = 2
_LONGEST_TROUBLE_PAUSE_S = 5.0
# After a batch that was not full the poller rests, as Lambda's do between polls: the next one holds more.
_GATHER_S = 0.04


@dataclass(frozen=True, slots=True)
class Polling:
    """How a queue is asked for messages.

    `wait_s` is SQS's long poll (0 to 20 whole seconds). After an empty answer the next question waits
    `pause_s`, doubling up to `longest_pause_s`.
    """

    wait_s: int = 1
    pause_s: float = 0.0
    longest_pause_s: float = 0.0


LONG_POLLING = Polling()
# moto answers one request at a time, so nobody may wait inside it.
SHORT_POLLING = Polling(wait_s=0, pause_s=0.01, longest_pause_s=0.2)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How much may run at once, and how queues and time are treated.

    `slots` is the shared pool; `caps` bounds single functions by name, `cap` all others; `speed` divides the
    periods of schedules; `prefix` stands in for the default one in the names of queues, as it does in the
    template on AWS.
    """

    slots: int = 64
    cap: int | None = None
    caps: Mapping[str, int] = field(default_factory=dict)
    polling: Polling = LONG_POLLING
    speed: float = 1.0
    prefix: str = DEFAULT_PREFIX
    timeout_s: float = FUNCTION_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class _Source:
    function: Function
    url: str
    arn: str
    batch: int
    cap: int | None


class EventSources:
    """Every queue and schedule of an app, started and stopped together."""

    def __init__(self, app: Chalice, queues: Queues, options: SourceOptions = SourceOptions()) -> None:
        """Look up the app's queues; QueueError when one does not exist."""
        self._app = keep_threads_apart(app)
        self._queues = queues
        self._options = options
        self._sources = [
            self._source_of(config) for config in app.event_sources if isinstance(config, SQSEventConfig)
        ]
        scheduled = [
            (self._function(config.name), period_of(config.schedule_expression))
            for config in app.event_sources
            if isinstance(config, ScheduledEventConfig)
        ]
        self._slots = Slots(options.slots)
        most = options.slots + len(self._sources) + _RUNS_OF_A_SCHEDULE * len(scheduled)
        self._pool = ThreadPoolExecutor(max_workers=max(1, most), thread_name_prefix="function")
        self._schedules = Schedules(scheduled, self._start_scheduled, options.speed)
        self._stopping = threading.Event()
        self._pollers = [
            threading.Thread(target=self._poll, args=(source,), name=source.function.name, daemon=True)
            for source in self._sources
        ]

    def start(self) -> None:
        """Begin to receive and to run schedules."""
        for poller in self._pollers:
            poller.start()
        self._schedules.start()

    def stop(self, within_s: float) -> int:
        """Receive nothing more and wait for what runs; the number of invocations still running comes back.

        Messages of a poll that was under way go back to their queue at once.
        """
        deadline = time.monotonic() + within_s
        self._stopping.set()
        self._schedules.stop()
        self._slots.close()
        for poller in self._pollers:
            poller.join(max(0.0, deadline - time.monotonic()))
        running = self._slots.wait_idle(max(0.0, deadline - time.monotonic()))
        return running - sum(poller.is_alive() for poller in self._pollers)

    def _function(self, name: str) -> Function:
        return Function(name, self._app.handler_map[name], self._options.timeout_s)

    def _named(self, queue: str) -> str:
        if not queue.startswith(DEFAULT_PREFIX):
            return queue
        return self._options.prefix + queue.removeprefix(DEFAULT_PREFIX)

    def _source_of(self, config: SQSEventConfig) -> _Source:
        queue = self._named(config.queue or str(config.queue_arn).rpartition(":")[2])
        caps = [self._options.caps.get(config.name, self._options.cap), config.maximum_concurrency]
        given = [cap for cap in caps if cap is not None]
        return _Source(
            function=self._function(config.name),
            url=self._queues.url(queue),
            arn=queue_arn(queue),
            batch=min(_BATCH_LIMIT, config.batch_size),
            cap=min(given) if given else None,
        )

    def _poll(self, source: _Source) -> None:
        polling = self._options.polling
        pause_s = polling.pause_s
        while self._slots.claim(source.function.name, source.cap):
            messages = self._receive(source)
            if messages:
                self._pool.submit(self._run_batch, source, messages)
                pause_s = polling.pause_s
                if len(messages) < source.batch:
                    self._stopping.wait(_GATHER_S)
            else:
                self._slots.release(source.function.name)
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, polling.longest_pause_s)

    def _receive(self, source: _Source) -> list[Message]:
        """Ask once; a queue that does not answer is asked again, less and less often, and logged once."""
        pause_s = 0.0
        while not self._stopping.is_set():
            try:
                return self._hand_over(
                    source, self._queues.receive(source.url, source.batch, self._options.polling.wait_s)
                )
            except QueueError as error:
                if not pause_s:
                    _log_trouble("queue.unreachable", source, error)
                pause_s = min(2 * pause_s or 0.25, _LONGEST_TROUBLE_PAUSE_S)
                self._stopping.wait(pause_s)
        return []

    def _hand_over(self, source: _Source, messages: list[Message]) -> list[Message]:
        if messages and self._stopping.is_set():
            self._queues.give_back(source.url, messages)
            return []
        return messages

    def _run_batch(self, source: _Source, messages: list[Message]) -> None:
        try:
            self._finish(source, messages)
        except FunctionFailedError:
            pass  # It is in the log, and the batch comes back when its visibility ends.
        except QueueError as error:
            _log_trouble("queue.delete_failed", source, error)
        finally:
            self._slots.release(source.function.name)

    def _finish(self, source: _Source, messages: list[Message]) -> None:
        ids = [message["MessageId"] for message in messages]
        answer = source.function.invoke(event_of(messages, source.arn), messages=ids)
        try:
            kept = kept_back(answer, messages)
        except UnusableReportError as error:
            _log_trouble("function.unusable_report", source, error)
            return
        done = [message for message in messages if message["MessageId"] not in kept]
        if done:
            self._queues.delete(source.url, done)

    def _start_scheduled(self, function: Function, event: dict[str, Any]) -> None:
        if self._slots.claim_now(function.name, _RUNS_OF_A_SCHEDULE):
            self._pool.submit(self._run_scheduled, function, event)
        else:
            log_line(
                logging.WARNING, "schedule.skipped", function=function.name, detail="earlier runs still run"
            )

    def _run_scheduled(self, function: Function, event: dict[str, Any]) -> None:
        try:
            function.invoke(event)
        except FunctionFailedError:
            pass  # It is in the log, and the next run is coming.
        finally:
            self._slots.release(function.name)


def _log_trouble(message: str, source: _Source, error: Exception) -> None:
    log_line(
        logging.ERROR,
        message,
        function=source.function.name,
        queue=source.arn,
        error=type(error).__name__,
        detail=str(error),
    )
