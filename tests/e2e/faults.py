"""Faults of a whole stack: processes killed, queues emptied."""

import time
from dataclasses import dataclass

from tests.e2e.stack import RelayStack

# A process that ends three times in a row within ten seconds of its start is not started again.
SOON_S, SOON_ENDS = 10.5, 2


@dataclass(slots=True)
class Killer:
    """Kills the workers, and waits until others run; never so often that they stay dead."""

    stack: RelayStack
    started: float
    soon: int = 0

    def kill(self) -> None:
        if self.soon >= SOON_ENDS:
            self.stack.until(lambda: time.monotonic() - self.started > SOON_S, within_s=60)
        self.soon = 0 if time.monotonic() - self.started > SOON_S else self.soon + 1
        before = self.stack.pid("workers")
        self.stack.kill("workers")
        restarted(self.stack, "workers", before)
        self.started = time.monotonic()


def queues(stack: RelayStack) -> list[str]:
    return list(stack.client("sqs").list_queues(QueueNamePrefix=stack.prefix)["QueueUrls"])


def restarted(stack: RelayStack, name: str, before: int) -> None:
    stack.until(lambda: stack.pid(name) != before, within_s=60)


def hide_for(stack: RelayStack, seconds: int) -> None:
    """Let every queue give back soon what a dead process held."""
    sqs = stack.client("sqs")
    for url in queues(stack):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": str(seconds)})


def purge(stack: RelayStack) -> None:
    """Empty every queue."""
    sqs = stack.client("sqs")
    for url in queues(stack):
        sqs.purge_queue(QueueUrl=url)
