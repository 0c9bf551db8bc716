"""Tunnels: tickets for those who listen and those who call, and what a listener's coming sets going."""

from dataclasses import dataclass

from chalicelib.application.auditing import Recorder
from chalicelib.application.endpoints import ManageEndpoints
from chalicelib.application.ports import Bell, Bells, Clock, Dice, Gates, Tickets
from chalicelib.domain import gate as gates
from chalicelib.domain.api_key import digest
from chalicelib.domain.audit import Action, Actor, Difference, Record
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import Transport, lane_numbers
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret
from chalicelib.domain.tunnel import TICKET_S, Ticket

_BYTES = 32
_RENEW_BEFORE_MS = 60_000
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Tunnels:
    """Gives out tickets, and looks at them."""

    tickets: Tickets
    clock: Clock
    dice: Dice

    def ticket(self, tenant: str, endpoint_id: str, record: Record | None = None) -> tuple[Ticket, Secret]:
        """Make a ticket, whose text is given this once."""
        made = Ticket(tenant, endpoint_id, self.clock.now_ms() + TICKET_S * 1000)
        text = Secret(f"tt_{self.dice.key(_BYTES).hex()}")
        self.tickets.issue(digest(text.reveal()), made, record)
        return made, text

    def opened(self, text: str) -> Ticket | None:
        """Give what a ticket opens; None: it is none, or has ended."""
        found = self.tickets.find(digest(text))
        return found if found and found.until_ms > self.clock.now_ms() else None


@dataclass(frozen=True, slots=True)
class ListenAt:
    """Lets an admin's machine listen at a tunnel."""

    endpoints: ManageEndpoints
    tunnels: Tunnels
    node_url: str

    def run(self, tenant: str, endpoint_id: str, by: Actor) -> tuple[Ticket, Secret]:
        """Make the ticket of a listener; raises RelayError where there is no such tunnel, or no node."""
        endpoint = self.endpoints.get_to_change(tenant, endpoint_id)
        if endpoint.transport is not Transport.TUNNEL:
            raise RelayError(
                ErrorCode.FIELD_INVALID,
                "This endpoint is no tunnel: nobody can listen at it.",
                field="id",
                expected="an endpoint whose `transport` is `tunnel`",
            )
        if not self.node_url:
            raise RelayError(
                ErrorCode.TUNNELS_OFF,
                "This installation has no relay node, so nobody can listen at a tunnel.",
                field="id",
                expected="an installation whose operator has set RELAY_NODE_URL",
            )
        recorder = Recorder(self.tunnels.clock, self.tunnels.dice)
        shown = Difference({}, {"opens_for_s": TICKET_S})
        record = recorder.record(by, Action.TUNNEL_TOKEN_MADE, (tenant, endpoint_id), shown)
        return self.tunnels.ticket(tenant, endpoint_id, record)


class CallersTicket:
    """The ticket of a process that sends through tunnels: one for all of them, made anew in time."""

    def __init__(self, tunnels: Tunnels, clock: Clock) -> None:
        """Have none yet."""
        self._tunnels = tunnels
        self._clock = clock
        self._held: tuple[Ticket, Secret] | None = None

    def text(self) -> Secret:
        """Give one that holds for a minute at least; raises Unavailable."""
        held = self._held
        if held is None or held[0].until_ms - _RENEW_BEFORE_MS < self._clock.now_ms():
            held = self._held = self._tunnels.ticket("", "")
        return held[1]


@dataclass(frozen=True, slots=True)
class ListenerCame:
    """Lets go of an endpoint that waited for a listener."""

    gates: Gates
    bells: Bells
    clock: Clock

    def run(self, tenant: str, endpoint_id: str) -> None:
        """End its hold and ring every lane of it; a lost bell is rung by reconcile."""
        of = (tenant, endpoint_id)
        for _ in range(_TRIES):
            gate = self.gates.read([of]).get(of)
            change = gates.listener_came(gate) if gate else None
            if gate is None or change is None:
                return
            (answer,) = self.gates.change([(of, change)])
            if answer.made:
                numbers = lane_numbers(gate.lanes, ordered=gate.ordered, replays=gate.replays)
                lanes = [Lane(tenant, endpoint_id, number) for number in numbers]
                now_ms = self.clock.now_ms()
                self.bells.ring([Bell(each, now_ms, apart=True, queue=gate.queue) for each in lanes])
                return
