"""The bulk replays of the chaos run: what succeeded at flaky receivers is sent again, range after range."""

import itertools
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import httpx

from tests.bench.chaos_load import Scene, path_of
from tests.bench.chaos_replays import Replayed
from tests.e2e.customer import Customer, Hook, moment

AGE_S = 3.0
ANSWERED_WITHIN_S, AGAIN_AFTER_S = 60, 0.2
RUNNING = "running"


class BulkReplayer:
    """Begins one bulk replay after another; no two of them have an event in common."""

    def __init__(self, customer: Customer, scene: Scene) -> None:
        """Replay the flaky endpoints of a scene, in turn."""
        paths = {path for each in scene.targets if each.kind == "flaky" for path in each.paths}
        self._customer = customer
        self._hooks = itertools.cycle([each for each in scene.hooks if path_of(each) in paths])
        self._since_s: dict[str, float] = {}
        self._begun: list[str] = []
        self.replays: list[Replayed] = []
        self.before: dict[tuple[str, str, int], Mapping[str, Any]] = {}

    def begin(self) -> None:
        """Begin to replay what succeeded at the next endpoint since it was its turn before."""
        hook = next(self._hooks)
        since_s, until_s = self._since_s.get(hook.id, 0.0), int(1_000 * (time.time() - AGE_S)) / 1_000
        self._since_s[hook.id] = until_s
        within = [
            each
            for each in pages(self._customer, f"/v1/endpoints/{hook.id}/deliveries")
            if since_s <= moment(each["created_at"]) < until_s
        ]
        begun = self._ask(hook, since_s, until_s)
        for each in within:
            self.before[each["event_id"], path_of(hook), each["generation"]] = each
            owed = begun and each["status"] == "succeeded"
            self.replays.append(Replayed(each["event_id"], path_of(hook), int(owed), 1))

    @property
    def begun(self) -> int:
        """Count those that were accepted."""
        return len(self._begun)

    def ended(self) -> bool:
        """Say whether every bulk replay has come to its end."""
        return all(self._state(each) != RUNNING for each in self._begun)

    def _ask(self, hook: Hook, since_s: float, until_s: float) -> bool:
        """Ask once; False when it may have begun or not."""
        body = {"since": _text(since_s), "until": _text(until_s), "status": "succeeded"}
        try:
            answer = self._customer.api.post(f"/v1/endpoints/{hook.id}/replay", json=body)
        except httpx.TransportError:
            return False
        if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return False
        answer.raise_for_status()
        self._begun.append(answer.json()["id"])
        return True

    def _state(self, replay_id: str) -> str:
        return str(answered(self._customer.api, f"/v1/replays/{replay_id}", {})["state"])


def pages(customer: Customer, path: str) -> Iterator[Mapping[str, Any]]:
    """Walk a list of the API, asking again whatever was not answered."""
    query: dict[str, Any] = {"limit": 200}
    while True:
        page = answered(customer.api, path, query)
        yield from page["items"]
        if page["cursor"] is None:
            return
        query["cursor"] = page["cursor"]


def answered(api: httpx.Client, path: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ask until it is answered; an error other than that of a busy store or a dead API is raised."""
    deadline_s = time.monotonic() + ANSWERED_WITHIN_S
    while True:
        try:
            answer = api.get(path, params=dict(query))
        except httpx.TransportError:
            if time.monotonic() > deadline_s:
                raise
        else:
            if answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR or time.monotonic() > deadline_s:
                answer.raise_for_status()
                found: Mapping[str, Any] = answer.json()
                return found
        time.sleep(AGAIN_AFTER_S)


def _text(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
