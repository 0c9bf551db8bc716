"""Try an endpoint: a sample event to it alone, whatever it subscribes to, and a look at what became of it.

It goes the way of every event: written first, then rung for, sent by the delivery plane alone. Who asks
waits a while for the attempt; a test is tried once, and one that fails is held against nobody.
"""

import json
from dataclasses import dataclass

from chalicelib.application.endpoints import not_found
from chalicelib.application.ports import (
    Bell,
    Bells,
    Capture,
    Capturing,
    Clock,
    Dice,
    Endpoints,
    Owing,
    Patience,
    Replaying,
    StoredEvent,
    Unavailable,
)
from chalicelib.application.questions import Delivery, Questions
from chalicelib.domain import event as events
from chalicelib.domain import ids
from chalicelib.domain.cloud.address import queue_of
from chalicelib.domain.delivery import Created, Lane, Owed
from chalicelib.domain.endpoint import REPLAY_LANE, Endpoint, EndpointState
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.event import TEST_TYPE, Event
from chalicelib.domain.request import event_time

WAIT_MS = 15_000
PAUSES_MS = (*(100,) * 5, *(250,) * 10, *(500,) * 24)
"""Between looks at history: often at first, as most attempts take less than a second; in all the wait."""


@dataclass(frozen=True, slots=True)
class TryEndpoint:
    """Sends tests."""

    endpoints: Endpoints
    capturing: Capturing
    replaying: Replaying
    questions: Questions
    bells: Bells
    clock: Clock
    dice: Dice
    patience: Patience

    def run(self, tenant: str, endpoint_id: str) -> Delivery:
        """Send a test and give its delivery as it is once it was tried, or after a while; raises RelayError.

        It stands in the line of replays, beside first attempts: it waits for no backlog, and none for it.
        """
        endpoint = self._endpoint(tenant, endpoint_id)
        now_ms = self.clock.now_ms()
        event = self._sample(endpoint, now_ms)
        owing = _owing(event, endpoint_id)
        stored = StoredEvent(event, len(event.body), matched=(endpoint_id,))
        self.replaying.expect(tenant, endpoint_id, now_ms)
        (failure,) = self.capturing.commit([Capture(stored, (owing,))], now_ms // 1000)
        if isinstance(failure, Unavailable):
            raise failure
        self.bells.ring([Bell(owing.owed.lane, now_ms, queue=queue_of(endpoint.transport))])
        delivery_id = owing.owed.delivery_id
        self._wait(tenant, endpoint_id, delivery_id, now_ms + WAIT_MS)
        return self.questions.delivery(tenant, delivery_id)

    def _endpoint(self, tenant: str, endpoint_id: str) -> Endpoint:
        found = self.endpoints.get(tenant, endpoint_id) if ids.is_id(endpoint_id, "ep") else None
        if found is None:
            raise not_found("endpoint", endpoint_id)
        if found.state is EndpointState.DELETED:
            raise deleted()
        if found.state is EndpointState.DISABLED:
            raise disabled(found.state_reason)
        return found

    def _sample(self, of: Endpoint, now_ms: int) -> Event:
        event_id = ids.new_id("evt", now_ms, self.dice.bits(ids.ENTROPY_BITS))
        body = {
            "type": TEST_TYPE,
            "message": "This is a test that the owner of this endpoint has sent with Relay.",
            "endpoint_id": of.id,
            "sent_at": event_time(now_ms),
        }
        return Event(
            of.tenant, event_id, TEST_TYPE, events.JSON_CONTENT_TYPE, json.dumps(body).encode(), now_ms
        )

    def _wait(self, tenant: str, endpoint_id: str, delivery_id: str, until_ms: int) -> None:
        """Look at history now and again, until there is more of the delivery than that it is owed."""
        for pause_ms in PAUSES_MS:
            found = self.questions.reading.delivery(tenant, endpoint_id, delivery_id, self.clock.now_us())
            if (found is not None and len(found.rows) > 1) or self.clock.now_ms() >= until_ms:
                return
            self.patience.wait(pause_ms)


def _owing(event: Event, endpoint_id: str) -> Owing:
    lane = Lane(event.tenant, endpoint_id, REPLAY_LANE)
    delivery_id = ids.delivery_id(event.id, endpoint_id)
    owed = Owed(lane, delivery_id, event.id, event.received_ms)
    return Owing(owed, Created(delivery_id, 0, event.id, event.type, lane.number, event.received_ms))


def deleted() -> RelayError:
    """Make the answer to a test of an endpoint that was deleted."""
    return RelayError(
        ErrorCode.ENDPOINT_DELETED,
        "This endpoint was deleted; nothing can be sent to it.",
        field="id",
        expected="an endpoint that is not deleted",
    )


def disabled(reason: str) -> RelayError:
    """Make the answer to a test of an endpoint that takes nothing for now."""
    because = f": {reason}" if reason else ""
    return RelayError(
        ErrorCode.ENDPOINT_DISABLED,
        f"This endpoint is disabled{because}. A test would wait as its deliveries do.",
        field="id",
        expected="an endpoint that is enabled, by `enable`",
    )
