"""The replays of the chaos run: deliveries that have ended are sent again, one by one, while all goes on."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx

from tests.bench.chaos_load import Producers, Scene, Target
from tests.e2e.customer import ENDED

EVERY_S = 0.7
OLD_ENOUGH_S = 5.0
REPLAYED = frozenset({"healthy", "refusing"})
TRIES, AGAIN_AFTER_S = 100, 0.2


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay as its owner saw it.

    `generation` is the newest that a 202 named, 0 when every answer was lost; `asked` how often a request may
    have begun one.
    """

    event_id: str
    path: str
    generation: int
    asked: int


class Replayer:
    """A thread that replays until it is stopped, and remembers how each generation had ended before."""

    def __init__(self, api_url: str, scene: Scene, producers: Producers) -> None:
        """Replay what these producers posted."""
        self._api_url = api_url
        self._targets = {each.type: each for each in scene.targets}
        self._producers = producers
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failure: Exception | None = None
        self.replays: list[Replayed] = []
        self.before: dict[tuple[str, str, int], Mapping[str, Any]] = {}

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no more, and wait for the last answer; raises what the thread died of."""
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with httpx.Client(base_url=self._api_url, timeout=30, trust_env=False) as api:
                for event_id, delivery_id, path in self._candidates():
                    self._replay(api, event_id, delivery_id, path)
                    if self._stopping.wait(EVERY_S):
                        return
        except Exception as error:  # noqa: BLE001 - told by whoever stops it
            self._failure = error

    def _candidates(self) -> Iterator[tuple[str, str, str]]:
        """Give events that went to one endpoint a while ago, each once."""
        place = 0
        while not self._stopping.is_set():
            accepted = self._producers.accepted
            if place >= len(accepted) or accepted[place].acknowledged_s > time.monotonic() - OLD_ENOUGH_S:
                self._stopping.wait(EVERY_S)
                continue
            event, place = accepted[place], place + 1
            target: Target = self._targets[event.type]
            if target.kind in REPLAYED:
                yield event.event_id, event.delivery_ids[0], target.paths[0]

    def _replay(self, api: httpx.Client, event_id: str, delivery_id: str, path: str) -> None:
        """Replay a delivery if it has ended; while answers are lost, look again and ask again."""
        asked = 0
        for _ in range(TRIES):
            shown = _answered(lambda: api.get(f"/v1/deliveries/{delivery_id}"), HTTPStatus.OK)
            if shown is None:
                continue
            if shown["status"] not in ENDED:
                break
            self.before[event_id, path, shown["generation"]] = shown
            asked += 1
            begun = _answered(lambda: api.post(f"/v1/deliveries/{delivery_id}/replay"), HTTPStatus.ACCEPTED)
            if begun is not None:
                self.replays.append(Replayed(event_id, path, begun["generation"], asked))
                return
        if asked:
            self.replays.append(Replayed(event_id, path, 0, asked))


def _answered(ask: Callable[[], httpx.Response], status: HTTPStatus) -> Mapping[str, Any] | None:
    """Ask once; None, a moment later, when the answer was lost or another one."""
    try:
        answer = ask()
    except httpx.TransportError:
        answer = None
    if answer is not None and answer.status_code == status:
        found: Mapping[str, Any] = answer.json()
        return found
    time.sleep(AGAIN_AFTER_S)
    return None
