"""Bells and fan-out calls over SQS. Losing one is no error: reconcile rings again."""

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.adapters.aws_json import JsonService
from chalicelib.application.ports import Bell, Unavailable
from chalicelib.domain import ids
from chalicelib.domain.delivery import Lane
from chalicelib.domain.gate import Queue
from chalicelib.wire import bell as bells

BATCH_MAX = 10
DELAY_MAX_S = 900
HIDE_MAX_S = 43_200
_APART = "#apart"
_CANARY = "canary"
LANE_QUEUES = (*(f"{each.value}.fifo" for each in Queue if each.value), "replay.fifo")
"""The queues of bells beside the shards."""


def shards(number: int) -> tuple[str, ...]:
    """Name the queues of so many shards."""
    return tuple(f"shard-{each}.fifo" for each in range(number))


class Queues:
    """The URLs of Relay's queues, asked for once each."""

    def __init__(self, service: JsonService, prefix: str) -> None:
        """Look queues up by name under a prefix."""
        self._service = service
        self._prefix = prefix
        self._urls: dict[str, str] = {}

    def url(self, name: str) -> str:
        """Give a queue's URL by its name without the prefix."""
        if name not in self._urls:
            answer = self._service.call("GetQueueUrl", QueueName=self._prefix + name)
            self._urls[name] = answer["QueueUrl"]
        return self._urls[name]


def _nobody_told(_queue: str, _count: int, _error: Exception) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What goes beside ringing: a trace header with each bell, and who is told of those lost, and why."""

    trace_header: Callable[[], str] = str
    lost: Callable[[str, int, Exception], None] = _nobody_told


class SqsBells:
    """Rings lanes on the FIFO queue of their endpoint: its shard, or one apart for how it behaves."""

    def __init__(
        self, service: JsonService, queues: Queues, shards: int, beside: Beside | None = None
    ) -> None:
        """Ring on that many shards."""
        self._service = service
        self._queues = queues
        self._shards = shards
        self._beside = beside or Beside()

    def ring(self, rung: Sequence[Bell]) -> int:
        """Ring each lane on its endpoint's queue; the number of bells lost."""
        by_queue: dict[str, list[Bell]] = {}
        for each in rung:
            by_queue.setdefault(self._queue_of(each), []).append(each)
        return sum(self._send(queue, batch) for queue, some in by_queue.items() for batch in _tens(some))

    def ring_later(self, lane: Lane, delay_s: int, queue: Queue = Queue.SHARD) -> int:
        """Ring a lane after a delay of 0 to 900 seconds; the number of bells lost."""
        body = bells.dump_delayed(lane, queue)
        return self._send_plain("delayed", body, min(DELAY_MAX_S, max(0, delay_s)))

    def call_fan_out(self, tenant: str, event_id: str, due_ms: int = 0, delay_s: int = 0) -> int:
        """Tell the fan-out function that an event waits for it; the number of calls lost."""
        body = json.dumps({"tenant": tenant, "event_id": event_id} | ({"due_ms": due_ms} if due_ms else {}))
        return self._send_plain("fan-out", body, min(DELAY_MAX_S, max(0, delay_s)))

    def call_ending(self, tenant: str, endpoint_id: str) -> int:
        """Tell the function that ends deliveries in pages of an endpoint; the number of calls lost."""
        return self._send_plain("endings", json.dumps({"tenant": tenant, "endpoint_id": endpoint_id}), 0)

    def call_replay(self, tenant: str, replay_id: str, delay_s: int = 0) -> int:
        """Tell the function of bulk replays that one waits for it; the number of calls lost."""
        body = json.dumps({"tenant": tenant, "replay_id": replay_id})
        return self._send_plain("replays", body, min(DELAY_MAX_S, max(0, delay_s)))

    def _queue_of(self, bell: Bell) -> str:
        if bell.lane.replay and bell.queue is not Queue.CLOUD:
            return "replay.fifo"
        if bell.queue is not Queue.SHARD:
            return f"{bell.queue.value}.fifo"
        return f"shard-{int(ids.endpoint_tag(bell.lane.endpoint_id), 16) % self._shards}.fifo"

    def _send(self, queue: str, batch: Sequence[Bell]) -> int:
        entries: Any = [
            {
                "Id": str(place),
                "MessageBody": bells.dump(each),
                "MessageGroupId": each.lane.name + (_APART if each.apart else ""),
                "MessageDeduplicationId": secrets.token_hex(16),
            }
            for place, each in enumerate(batch)
        ]
        header = self._beside.trace_header()
        for each in entries if header else ():
            each["MessageSystemAttributes"] = {
                "AWSTraceHeader": {"DataType": "String", "StringValue": header}
            }
        try:
            answer = self._service.call("SendMessageBatch", QueueUrl=self._queues.url(queue), Entries=entries)
        except (ClientError, BotoCoreError) as error:
            self._beside.lost(queue, len(batch), error)
            return len(batch)
        failed = answer.get("Failed", [])
        if failed:
            self._beside.lost(queue, len(failed), RuntimeError(failed[0]["Code"]))
        return len(failed)

    def _send_plain(self, queue: str, body: str, delay_s: int) -> int:
        try:
            self._service.call(
                "SendMessage", QueueUrl=self._queues.url(queue), MessageBody=body, DelaySeconds=delay_s
            )
        except (ClientError, BotoCoreError) as error:
            self._beside.lost(queue, 1, error)
            return 1
        return 0


class SqsCanaries:
    """Canaries through the shards, in a message group of their own, and how full the queues of bells are."""

    def __init__(self, service: JsonService, queues: Queues, shards: tuple[str, ...]) -> None:
        """Use these shards."""
        self._service = service
        self._queues = queues
        self._shards = shards

    @property
    def queues(self) -> tuple[str, ...]:
        """Name the queues that canaries go through."""
        return self._shards

    def ring(self, now_ms: int) -> int:
        """Send one through each of these queues; the number of those lost."""
        return sum(self._send(queue, now_ms) for queue in self._shards)

    def most_in_flight(self) -> int:
        """Say how many messages the fullest queue of bells holds as being worked on."""
        return max(self._in_flight(queue) for queue in (*self._shards, *LANE_QUEUES))

    def _send(self, queue: str, now_ms: int) -> int:
        message = {"MessageBody": bells.dump_canary(now_ms), "MessageGroupId": _CANARY}
        try:
            url = self._queues.url(queue)
            self._service.call(
                "SendMessage", QueueUrl=url, **message, MessageDeduplicationId=secrets.token_hex(16)
            )
        except (ClientError, BotoCoreError):
            return 1
        return 0

    def _in_flight(self, queue: str) -> int:
        name = "ApproximateNumberOfMessagesNotVisible"
        try:
            url = self._queues.url(queue)
            told = self._service.call("GetQueueAttributes", QueueUrl=url, AttributeNames=[name])
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("a queue failed") from error
        return int(told["Attributes"][name])


class SqsReceipts:
    """The received bells of one queue, by their receipt handles."""

    def __init__(self, service: JsonService, queue_url: str) -> None:
        """Use SQS for one queue."""
        self._service = service
        self._queue_url = queue_url

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete bells; one that is gone already is no error."""
        for batch in _tens(receipts):
            entries: Any = [{"Id": str(place), "ReceiptHandle": each} for place, each in enumerate(batch)]
            try:
                self._service.call("DeleteMessageBatch", QueueUrl=self._queue_url, Entries=entries)
            except (ClientError, BotoCoreError) as error:
                raise Unavailable("the queue failed") from error

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Keep bells out of sight for that long from now."""
        for batch in _tens(receipts):
            entries: Any = [
                {"Id": str(place), "ReceiptHandle": each, "VisibilityTimeout": min(seconds, HIDE_MAX_S)}
                for place, each in enumerate(batch)
            ]
            try:
                self._service.call("ChangeMessageVisibilityBatch", QueueUrl=self._queue_url, Entries=entries)
            except (ClientError, BotoCoreError) as error:
                raise Unavailable("the queue failed") from error


def _tens(some: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(some), BATCH_MAX):
        yield some[start : start + BATCH_MAX]
