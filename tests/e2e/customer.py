"""A customer of a stack: registers endpoints, posts events, asks what became of them.

Everything goes over HTTP, and the receiver's log is the witness; nothing of the product is imported.
"""

import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from types import TracebackType
from typing import Any, Self

import httpx
import pyotp

from tests.e2e.stack import RelayStack

Record = dict[str, Any]
JSON = "application/json"
ENDED = ("succeeded", "dead")
SECOND_FACTOR = "RELAYLOCALDEVELOPMENTONLYSECRET2"
CODE_SECS = 30
PROOF_SECS = 240


@dataclass(frozen=True, slots=True)
class Hook:
    """A registered endpoint: its answer, its secret, and the one event type that only it takes."""

    id: str
    type: str
    secret: str
    shown: Record = field(hash=False)


@dataclass(frozen=True, slots=True)
class Posted:
    """What a producer got for an event."""

    event_id: str
    delivery_ids: list[str]
    fan_out: str

    @property
    def delivery_id(self) -> str:
        """Give the id of the only delivery."""
        (only,) = self.delivery_ids
        return only


class Customer:
    """Speaks to the API and the receiver of one stack, from any thread.

    Whatever is waited for comes at once on an idle machine; patience is for a busy one.
    """

    def __init__(self, stack: RelayStack, patience_s: float = 150) -> None:
        self.stack = stack
        self._patience_s = patience_s
        watched = {"response": [self._watch]}
        self.api = httpx.Client(base_url=stack.api_url, timeout=30, trust_env=False, event_hooks=watched)
        self.receiver = httpx.Client(base_url=stack.receiver_url, timeout=30, trust_env=False)
        self._run = _letters(uuid.uuid4().hex[:8])
        self._numbers = count(1)
        self._proof = ""
        self._proven_until = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.api.close()
        self.receiver.close()

    def _watch(self, response: httpx.Response) -> None:
        request = response.request
        body = request.read()
        where = f"{request.method} {request.url.path}"
        self.stack.watch.exchange(request.headers, body, response.read(), where)

    def hook(self, target: str, **fields: object) -> Hook:
        """Register an endpoint at a path of the receiver or a whole URL, and hand its secret over.

        `{key}` in the target becomes the event type, under which the receiver knows the secret.
        """
        event_type = f"case.{self._run}.{_letters(str(next(self._numbers)))}"
        where = target.replace("{key}", event_type)
        url = self.stack.receiver_url + where if where.startswith("/") else where
        answer = self.register({"url": url, "event_types": [event_type]} | fields)
        assert answer.status_code == 201, answer.text
        shown = answer.json()
        secret = shown.pop("secret")
        shown.pop("public_key", None)
        known = {"secret": secret, "endpoint": event_type}
        self.receiver.post("/secret", json=known).raise_for_status()
        return Hook(shown["id"], event_type, secret, shown)

    def register(self, body: Record) -> httpx.Response:
        """Ask for an endpoint."""
        return self.api.post("/v1/endpoints", json=body)

    def elevated(self) -> dict[str, str]:
        """Give the header that elevated actions need, for a code of the documented second factor.

        A code is good once, so it is kept for as long as it lasts; somebody else may have used this one.
        """
        if time.monotonic() > self._proven_until:
            now = time.time()
            tries = (self._prove(now + later) for later in (0, CODE_SECS))
            answer = next(each for each in tries if each.status_code != httpx.codes.FORBIDDEN)
            assert answer.status_code == httpx.codes.OK, answer.text
            self._proof = answer.json()["assertion"]
            self._proven_until = time.monotonic() + PROOF_SECS
        return {"Relay-Step-Up": self._proof}

    def _prove(self, at_s: float) -> httpx.Response:
        code = pyotp.TOTP(SECOND_FACTOR).at(at_s)
        actions = ["url_change", "enable_deliver", "key_creation", "secret_rotation", "purge"]
        return self.api.post("/v1/step-up", json={"code": code, "actions": actions})

    def script(self, *answers: Record) -> str:
        """Write a script for the receiver and give its path; the last answer repeats."""
        key = f"s{next(self._numbers)}"
        written = self.receiver.post("/script", json={"key": key, "answers": list(answers)})
        assert written.status_code == 200, written.text
        return f"/script/{key}"

    def post(
        self,
        event_type: str,
        body: bytes = b'{"n": 1}',
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Posted:
        """Post an event that must be accepted."""
        named = {"Content-Type": content_type, "Relay-Event-Type": event_type, **(headers or {})}
        answer = self.api.post("/v1/events", content=body, headers=named)
        assert answer.status_code == 202, answer.text
        return Posted(**answer.json())

    def post_many(self, event_type: str, count: int) -> list[str]:
        """Post so many events by the batch route; the ids of their deliveries come back."""
        ids: list[str] = []
        for start in range(0, count, 100):
            items = [
                {"type": event_type, "payload": json.dumps({"n": n})}
                for n in range(start, min(count, start + 100))
            ]
            answer = self.api.post("/v1/events/batch", json={"events": items})
            assert answer.status_code == 207, answer.text
            ids += [each for item in answer.json()["results"] for each in item["delivery_ids"]]
        return ids

    def deliver(self, target: str, **fields: object) -> tuple[Hook, str]:
        """Register an endpoint and post one event for it; its hook and the delivery's id come back."""
        hook = self.hook(target, **fields)
        return hook, self.post(hook.type).delivery_id

    def endpoint(self, endpoint_id: str) -> httpx.Response:
        """Ask for an endpoint."""
        return self.api.get(f"/v1/endpoints/{endpoint_id}")

    def change(self, endpoint_id: str, **fields: object) -> Record:
        """Change an endpoint as it is now."""
        match = {"If-Match": self.endpoint(endpoint_id).headers["ETag"]}
        if "url" in fields:
            match |= self.elevated()
        answer = self.api.patch(f"/v1/endpoints/{endpoint_id}", json=fields, headers=match)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def delete(self, endpoint_id: str) -> None:
        """Delete an endpoint as it is now."""
        match = {"If-Match": self.endpoint(endpoint_id).headers["ETag"]}
        answer = self.api.delete(f"/v1/endpoints/{endpoint_id}", headers=match)
        assert answer.status_code == 204, answer.text

    def delivery(self, delivery_id: str) -> Record:
        """Ask for a delivery."""
        answer = self.api.get(f"/v1/deliveries/{delivery_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def deliveries(self, endpoint_id: str) -> list[Record]:
        """List an endpoint's deliveries, at most 200."""
        answer = self.api.get(f"/v1/endpoints/{endpoint_id}/deliveries", params={"limit": 200})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])

    def dead_letters(self, endpoint_id: str) -> list[Record]:
        """List what an endpoint's owner will not get."""
        answer = self.api.get(f"/v1/endpoints/{endpoint_id}/deliveries", params={"status": "dead"})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])

    def tried(self, delivery_id: str, times: int = 1, within_s: float = 0) -> Record:
        """Give a delivery as soon as so many attempts at it are known."""
        return self._when(delivery_id, lambda seen: len(seen["attempts"]) >= times, within_s)

    def ended(self, delivery_id: str, within_s: float = 0) -> Record:
        """Give a delivery as soon as it succeeded or is dead."""
        return self._when(delivery_id, lambda seen: seen["status"] in ENDED, within_s)

    def all_ended(self, endpoint_id: str, times: int, within_s: float = 0) -> list[Record]:
        """Give an endpoint's deliveries as soon as they are so many and all of them have ended."""
        seen: list[Record] = []

        def look() -> bool:
            seen[:] = self.deliveries(endpoint_id)
            return len(seen) == times and all(each["status"] in ENDED for each in seen)

        self._until(look, within_s)
        return seen

    def counted(self, series: str, count: int) -> None:
        """Wait until a series of the installation's metrics has come to a count, as anybody reads it here."""

        def look() -> bool:
            lines = httpx.get(f"{self.stack.api_url}/metrics").raise_for_status().text.splitlines()
            (value,) = (each.rpartition(" ")[2] for each in lines if each.startswith(f"{series} "))
            assert float(value) <= count
            return float(value) == count

        self._until(look, 0)

    def received(self, **where: object) -> list[Record]:
        """Give what the receiver's log has, oldest first."""
        answer = self.receiver.get("/received", params={name: str(value) for name, value in where.items()})
        assert answer.status_code == 200, answer.text
        return list(answer.json())

    def count(self, **where: object) -> int:
        """Count what the receiver's log has."""
        params = {name: str(value) for name, value in where.items()} | {"count": "1"}
        return int(self.receiver.get("/received", params=params).json()["count"])

    def arrived(self, times: int = 1, within_s: float = 0, **where: object) -> list[Record]:
        """Give what the receiver's log has as soon as it is so many."""
        self._until(lambda: self.count(**where) >= times, within_s)
        return self.received(**where)

    def _when(self, delivery_id: str, holds: Callable[[Record], bool], within_s: float) -> Record:
        seen: Record = {}

        def look() -> bool:
            seen.update(self.delivery(delivery_id))
            return holds(seen)

        try:
            self._until(look, within_s)
        except AssertionError:
            raise AssertionError(f"in the end it is {json.dumps(seen, indent=1)}") from None
        return seen

    def _until(self, holds: Callable[[], bool], within_s: float) -> None:
        self.stack.until(holds, within_s or self._patience_s)


def _letters(text: str) -> str:
    """Write digits as letters: in a path, both together would be taken for a token and masked."""
    return text.translate(str.maketrans("0123456789", "ghijklmnop"))


def moment(text: str) -> float:
    """Read a time of the API as Unix seconds."""
    return datetime.fromisoformat(text).timestamp()


def outcome(attempt: Record) -> tuple[str, int | None, str | None]:
    """Give an attempt's outcome, status and fault."""
    return attempt["outcome"], attempt["status"], attempt["fault"]
