"""The fault proxy of the chaos run: microburst in front of the emulator, with the faults of a bad day.

It throttles the store, drops answers after the write has happened, breaks connections before it, and cancels
transactions for conflicts that nobody caused; queues, payloads and keys fail now and then too.
"""

import itertools
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from infra.local.emulator import HOST, free_port
from infra.local.processes import ROOT, CannotRunError, Child, Leash, Program, Start

PYTHON = ROOT / ".venv-chaos" / "bin" / "python"
STARTED_WITHIN_S = 30.0
HEALTH = "/_localstack/health"
WRITES = ("TransactWriteItems", "BatchExecuteStatement")
READS = ("Query", "BatchGetItem")
OF_QUEUES = ("SendMessageBatch", "SendMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")
LARGEST_CONFLICT = 8
STORM_S, STORM_EVERY_S = 4.0, 20.0
THROTTLED = {"code": "ProvisionedThroughputExceededException", "message": "more than was provisioned"}
FAILED = {"code": "InternalError", "status": 500}
SLOW_DOWN = {"code": "SlowDown", "status": 503}
ANSWER_DROPPED = {"response": {"abort_bytes": 0}}
_COUNT = re.compile(r'microburst_faults_total\{service="(.*?)",operation="(.*?)",action="(.*?)"\} (\d+)')

Rule = dict[str, Any]


def bad_day(throttled: float = 0.04) -> list[Rule]:
    """Give the rules; each fires by chance, by itself; so large a part of the store's calls is throttled."""
    rules = [_conflict(size) for size in range(1, LARGEST_CONFLICT + 1)]
    for operation in WRITES:
        rules.append(_rule("dynamodb", operation, throttled, error=THROTTLED))
        rules.append(_rule("dynamodb", operation, 0.03, **ANSWER_DROPPED))
        rules.append(_rule("dynamodb", operation, 0.01, reset=True))
    rules += [_rule("dynamodb", operation, throttled, error=THROTTLED) for operation in READS]
    rules += [_rule("s3", operation, 0.15, error=SLOW_DOWN) for operation in ("PutObject", "GetObject")]
    rules.append(_rule("kms", "Decrypt", 0.05, error={"code": "ThrottlingException"}))
    for operation in OF_QUEUES:
        rules.append(_rule("sqs", operation, 0.01, **ANSWER_DROPPED))
        rules.append(_rule("sqs", operation, 0.02, error=FAILED))
    return rules


def storm() -> list[Rule]:
    """Give the rules of the moments when hardly anything gets through: more than retries make up for."""
    return bad_day(throttled=0.6)


def _conflict(size: int) -> Rule:
    """Cancel a transaction of so many writes: the last is in conflict."""
    reasons = [{"Code": "None"}] * (size - 1) + [{"Code": "TransactionConflict"}]
    error = {"code": "TransactionCanceledException", "fields": {"CancellationReasons": reasons}}
    body = f"length(TransactItems) == `{size}`"
    return _rule("dynamodb", "TransactWriteItems", 0.05, body=body, error=error)


def _rule(service: str, operation: str, probability: float, **effect: object) -> Rule:
    return {"service": service, "operation": operation, "probability": probability, **effect}


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that runs."""

    port: int

    def answers(self) -> bool:
        """Say whether it serves and passes on; the first request takes it seconds, others milliseconds."""
        try:
            answer = httpx.get(
                f"http://{HOST}:{self.port}{HEALTH}", timeout=STARTED_WITHIN_S, trust_env=False
            )
        except httpx.TransportError:
            return False
        return answer.status_code == HTTPStatus.OK

    def do(self, rules: Sequence[Rule]) -> None:
        """Make these faults, and no others, from now on."""
        httpx.post(f"{self._control}/rules", json=list(rules), trust_env=False).raise_for_status()

    def faults(self) -> Mapping[str, int]:
        """Count the faults so far by operation and kind."""
        text = httpx.get(f"{self._control}/metrics", trust_env=False).text
        return {f"{operation} {kind}": int(count) for _, operation, kind, count in _COUNT.findall(text)}

    @property
    def _control(self) -> str:
        return f"http://{HOST}:{self.port}/_microburst"


@contextmanager
def proxy_before(emulator_url: str, leash: Leash, logs: Path) -> Iterator[Proxy]:
    """Run a proxy in front of an emulator, without faults at first; CannotRunError when it does not start."""
    proxy = Proxy(free_port())
    command = (str(PYTHON), "-m", "microburst", "--upstream", emulator_url, "--port", str(proxy.port))
    logs.mkdir(parents=True, exist_ok=True)
    child = Child(Program("fault proxy", command, os.environ, logs / "proxy.log"), leash)
    try:
        if child.wait_ready(proxy.answers, STARTED_WITHIN_S, lambda: None) is not Start.READY:
            raise CannotRunError(f"The fault proxy did not start: {child.last_words()}.")
        yield proxy
    finally:
        child.stop()


@contextmanager
def changing_weather(proxy: Proxy) -> Iterator[None]:
    """Have a bad day with a storm now and then, and no fault any more in the end."""
    over = threading.Event()

    def change() -> None:
        for lasts_s, rules in itertools.cycle(((STORM_EVERY_S - STORM_S, bad_day()), (STORM_S, storm()))):
            proxy.do(rules)
            if over.wait(lasts_s):
                return

    changing = threading.Thread(target=change)
    changing.start()
    try:
        yield
    finally:
        over.set()
        changing.join()
        proxy.do([])
