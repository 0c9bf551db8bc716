"""Long ends: what an owner's word, or time, has decided about deliveries that are still owed.

The one rule says how a delivery will end before anybody has come to it: senders, reads and the function that
ends them in pages all go by it. Source: DESIGN §3 (long ends) and §5.
"""

from dataclasses import dataclass
from enum import StrEnum

from chalicelib.domain import ids
from chalicelib.domain.endpoint import Endpoint, EndpointState, lane_numbers
from chalicelib.domain.gate import Gate
from chalicelib.domain.outcome import DeathReason

DAY_MS = 86_400_000
KEPT_MS = 90 * DAY_MS
"""How long a disabled endpoint's deliveries are kept, from the later of the disabling and their creation."""


class Cause(StrEnum):
    """Why deliveries of an endpoint are ended in pages."""

    OWNER = "owner"
    AGE = "age"


@dataclass(frozen=True, slots=True)
class Ending:
    """Deliveries of an endpoint being ended: how far that is, and not before when (Unix ms).

    `cursor` names a lane and the last row of it that was dealt with, or is empty; `version` is the endpoint's
    that began it.
    """

    tenant: str
    endpoint_id: str
    cause: Cause
    version: int
    due_ms: int = 0
    cursor: str = ""

    def concerns(self, endpoint: Endpoint) -> bool:
        """Say whether an endpoint as it is now still has deliveries to be ended for this cause."""
        if self.cause is Cause.AGE:
            return endpoint.state is EndpointState.DISABLED
        return endpoint.state is EndpointState.DELETED or endpoint.skip_before_ms > 0


def begun_by(old: Endpoint, new: Endpoint) -> Ending | None:
    """Say what a change of an endpoint ends: at once, or once it has been disabled for long."""
    turned = new.state is not old.state
    if (turned and new.state is EndpointState.DELETED) or new.skip_before_ms > old.skip_before_ms:
        return Ending(new.tenant, new.id, Cause.OWNER, new.version)
    if turned and new.state is EndpointState.DISABLED:
        return Ending(new.tenant, new.id, Cause.AGE, new.version, new.state_ms + KEPT_MS)
    return None


def ending_of(
    endpoint: Endpoint, delivery_id: str, generation: int, waits_since_ms: int, now_ms: int
) -> DeathReason | None:
    """Say how a delivery that is owed is already bound to end, or None."""
    reason = decided(endpoint, delivery_id, generation)
    if reason is not None or endpoint.state is not EndpointState.DISABLED:
        return reason
    too_long = max(waits_since_ms, endpoint.state_ms) <= now_ms - KEPT_MS
    return DeathReason.EXPIRED if too_long else None


def decided(endpoint: Endpoint, delivery_id: str, generation: int) -> DeathReason | None:
    """Say how an owner has ended a delivery: by deleting its endpoint, or by skipping it.

    What an owner skips are first generations, by when their event was received: a replay was asked for apart.
    """
    if endpoint.state is EndpointState.DELETED:
        return DeathReason.ENDPOINT_DELETED
    if generation == 0 and ids.created_ms(delivery_id) < endpoint.skip_before_ms:
        return DeathReason.SKIPPED
    return None


def lanes_of(endpoint: Endpoint, gate: Gate | None) -> tuple[str, ...]:
    """Number all lanes that may have got something; that of the replays first, as others may be added."""
    lanes = max(endpoint.limits.lanes, gate.lanes if gate else 1)
    *numbers, replays = lane_numbers(lanes, ordered=endpoint.ordered, replays=True)
    return (replays, *numbers)
