"""Replay: a delivery that has ended is sent once more, as its next generation.

Written with all that it owes before its lane is rung; pressed twice, it is written once.
"""

from dataclasses import dataclass

from chalicelib.application.auditing import Recorder
from chalicelib.application.ports import Bell, Bells, Clock, Dice, Generations, Owing, Replaying, StoredEvent
from chalicelib.application.questions import Questions
from chalicelib.domain.audit import Action, Actor, Difference
from chalicelib.domain.cloud.address import queue_of
from chalicelib.domain.delivery import Created, HistoryRow, Status, status_of
from chalicelib.domain.endpoint import Endpoint, EndpointState
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.event import matching_patterns
from chalicelib.domain.replay import Ancestor, next_generation


@dataclass(frozen=True, slots=True)
class Replay:
    """Replays single deliveries."""

    store: Replaying
    questions: Questions
    bells: Bells
    clock: Clock
    dice: Dice

    def run(self, tenant: str, delivery_id: str, by: Actor) -> Created:
        """Begin the next generation of a delivery, or raise RelayError.

        When it is still on its way, its endpoint is deleted or takes its type no more, or its bytes are gone.
        """
        found = self.questions.generations(tenant, delivery_id)
        rows = newest_rows(found)
        if status_of(rows, leased=False) is Status.PENDING:
            raise pending(delivery_id)
        now_ms = self.clock.now_ms()
        endpoint, event_type = self._may_be_sent(tenant, found.endpoint_id, rows[0].event_id)
        owing = Owing(*next_generation(ancestor(tenant, found, event_type), now_ms))
        self.store.expect(tenant, found.endpoint_id, now_ms)
        change = Difference({"generation": rows[-1].generation}, {"generation": owing.created.generation})
        recorder = Recorder(self.clock, self.dice)
        record = recorder.record(by, Action.DELIVERY_REPLAYED, (tenant, delivery_id), change)
        if not self.store.begin(owing, now_ms, record):
            raise pending(delivery_id)
        self.bells.ring([Bell(owing.owed.lane, now_ms, queue=queue_of(endpoint.transport))])
        return owing.created

    def _may_be_sent(self, tenant: str, endpoint_id: str, event_id: str) -> tuple[Endpoint, str]:
        """Give the endpoint and the event's type, or raise RelayError.

        What would only end again is refused at once.
        """
        endpoint = self.questions.endpoints.get(tenant, endpoint_id)
        if endpoint is None or endpoint.state is EndpointState.DELETED:
            raise deleted()
        stored = self.questions.reading.event(tenant, event_id, self.clock.now_ms())
        if stored is None or not self._has_bytes(stored):
            raise payload_expired()
        if not takes(endpoint, stored.event.type):
            raise not_subscribed(stored.event.type)
        return endpoint, stored.event.type

    def _has_bytes(self, stored: StoredEvent) -> bool:
        return not stored.payload_key or self.questions.payloads.get(stored.payload_key) is not None


def newest_rows(found: Generations) -> tuple[HistoryRow, ...]:
    """Give the rows of a delivery's newest generation."""
    return tuple(row for row in found.rows if row.generation == found.rows[-1].generation)


def ancestor(tenant: str, found: Generations, event_type: str) -> Ancestor:
    """Say of a delivery's newest generation what the next one needs."""
    last = found.rows[-1]
    sequence = max((row.sequence for row in found.rows if isinstance(row, Created)), default=0)
    return Ancestor(
        tenant, found.endpoint_id, found.delivery_id, last.generation, last.event_id, event_type, sequence
    )


def takes(endpoint: Endpoint, event_type: str) -> bool:
    """Say whether an endpoint's subscription has a type."""
    return bool(set(endpoint.event_types).intersection(matching_patterns(event_type)))


def pending(delivery_id: str) -> RelayError:
    """Make the answer to a replay of what is still on its way."""
    return RelayError(
        ErrorCode.DELIVERY_PENDING,
        f"Delivery {delivery_id} is still on its way: it is pending or in flight.",
        field="id",
        expected="a delivery whose newest generation has succeeded or is dead",
    )


def deleted() -> RelayError:
    """Make the answer to a replay for an endpoint that was deleted."""
    return RelayError(
        ErrorCode.ENDPOINT_DELETED,
        "The endpoint of this delivery was deleted; nothing can be sent to it.",
        field="id",
        expected="a delivery of an endpoint that is not deleted",
    )


def payload_expired() -> RelayError:
    """Make the answer to a replay whose bytes are not kept any more."""
    return RelayError(
        ErrorCode.PAYLOAD_EXPIRED,
        "The bytes of this delivery's event are past their retention and gone.",
        field="id",
        expected="a delivery of an event that is still kept",
    )


def not_subscribed(event_type: str) -> RelayError:
    """Make the answer to a replay of a type that its endpoint takes no more."""
    return RelayError(
        ErrorCode.NOT_SUBSCRIBED,
        f"The endpoint no longer takes events of the type {event_type}.",
        field="id",
        expected="`event_types` of the endpoint that include it",
    )
