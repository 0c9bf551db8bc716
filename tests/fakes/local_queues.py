"""Queues in memory with SQS's promises: groups one at a time, visibility, receive counts, stale handles."""

import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from infra.local.queues import QueueError
from infra.local.sqs_event import Message


@dataclass(slots=True)
class Waiting:
    """One message of a queue."""

    body: str
    group: str | None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    handle: str = ""
    receives: int = 0
    visible_at: float = 0.0


class MemoryQueues:
    """Queues by name; `receives` counts the questions asked, `broken` makes every call fail."""

    def __init__(self, visibility_s: float = 360.0) -> None:
        self.visibility_s = visibility_s
        self.broken = False
        self.receives = 0
        self.deletes: list[int] = []
        self._changed = threading.Condition()
        self._waiting: dict[str, list[Waiting]] = {}

    def send(self, name: str, body: str, group: str | None = None) -> str:
        with self._changed:
            message = Waiting(body, group)
            self._waiting.setdefault(name, []).append(message)
            self._changed.notify_all()
            return message.id

    def left(self, name: str) -> list[Waiting]:
        with self._changed:
            return list(self._waiting.get(name, []))

    def in_flight(self, name: str) -> int:
        now = time.monotonic()
        return sum(message.visible_at > now for message in self.left(name))

    def url(self, name: str) -> str:
        return name

    def receive(self, url: str, most: int, wait_s: int) -> list[Message]:
        deadline = time.monotonic() + wait_s
        with self._changed:
            self.receives += 1
            while not (taken := self._take(url, most)) and time.monotonic() < deadline:
                self._changed.wait(min(0.05, deadline - time.monotonic()))
            return [_shown(message) for message in taken]

    def delete(self, url: str, messages: Sequence[Message]) -> None:
        handles = {message["ReceiptHandle"] for message in messages}
        with self._changed:
            self._refuse_when_broken()
            before = self._waiting[url]
            self._waiting[url] = [message for message in before if message.handle not in handles]
            self.deletes.append(len(messages))
            self._changed.notify_all()

    def give_back(self, url: str, messages: Sequence[Message]) -> None:
        handles = {message["ReceiptHandle"] for message in messages}
        with self._changed:
            for message in self._waiting[url]:
                if message.handle in handles:
                    message.visible_at = 0.0
            self._changed.notify_all()

    def _take(self, url: str, most: int) -> list[Waiting]:
        self._refuse_when_broken()
        now = time.monotonic()
        waiting = self._waiting.get(url, [])
        busy = {message.group for message in waiting if message.group and message.visible_at > now}
        taken = [message for message in waiting if message.visible_at <= now and message.group not in busy][
            :most
        ]
        for message in taken:
            message.handle, message.visible_at = str(uuid.uuid4()), now + self.visibility_s
            message.receives += 1
        return taken

    def _refuse_when_broken(self) -> None:
        if self.broken:
            raise QueueError("the queue is broken")


def _shown(message: Waiting) -> dict[str, Any]:
    group = {"MessageGroupId": message.group} if message.group else {}
    return {
        "MessageId": message.id,
        "ReceiptHandle": message.handle,
        "Body": message.body,
        "MD5OfBody": "0",
        "Attributes": {"ApproximateReceiveCount": str(message.receives), "SentTimestamp": "1", **group},
    }
