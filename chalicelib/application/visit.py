"""One lane's visit by a deliver function: what it was called for and how far it is.

The only mutable thing of the delivery plane; it lives as long as one batch of bells.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from chalicelib.application.ports import Hint
from chalicelib.domain.delivery import Lane, Owed, Status
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import Claim, Told
from chalicelib.domain.request import Request
from chalicelib.domain.sent import Sent
from chalicelib.domain.trace import Steps

FRESH_MS = 250
MANY_LANES = 4
TRUSTED_AMONG_MANY_MS = 60_000
# Sends whose moments lie this close are re-read and started together.
TOGETHER_US = 50_000


def trusted_ms(lanes: int) -> int:
    """Say how old a bell may be whose named rows are taken as they are, in a batch of that many lanes.

    Asking the store drains ahead, ten rows for a query, and pays where few lanes are busy; among
    many, the query costs more than the row or two that it finds (docs/decisions/0005).
    """
    return FRESH_MS if lanes < MANY_LANES else TRUSTED_AMONG_MANY_MS


class Stage(StrEnum):
    """What a visit does next."""

    WANTING = "wanting"
    SENDING = "sending"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Call:
    """The bells of one lane in a batch: when the oldest was rung, the rows they name, their receipts.

    `came_back`: one of them had been given back by a visit that was held. `rung_in`: the trace headers that
    came with the bells of deliveries, by their ids.
    """

    lane: Lane
    rung_ms: int
    hints: tuple[Hint, ...]
    receipts: tuple[str, ...]
    came_back: bool = False
    rung_in: Mapping[str, str] = field(default_factory=dict)

    def rows(self, now_ms: int, trusted_ms: int = FRESH_MS) -> list[Owed]:
        """Give the rows that bells up to that old name, else none: then the store is asked."""
        if now_ms - self.rung_ms > trusted_ms:
            return []
        return [Owed(self.lane, each.delivery_id, each.event_id, each.ready_ms) for each in self.hints]


@dataclass(frozen=True, slots=True)
class Underway:
    """A delivery that is being sent, to whom, what, when its turn came, and to when it was paced (Unix µs).

    `kept` is what history keeps of the request.
    """

    owed: Owed
    endpoint: Endpoint
    request: Request
    turn_us: int
    paced_us: int
    kept: Sent


@dataclass(slots=True)
class Visit:
    """A lane being worked on.

    `wake_ms` is when a wanting lane is looked at again, `full` how often in a row it had more than one
    look can take, `buried` the dead holder whose attempts this visit has told of; a `stuck` one ends as
    soon as nothing of it is in flight; a `blocked` one is ordered and its first has to be tried again.
    `held`: it was, since it was last let in. `granted` are rows it may still send under its lease, each
    with the moment (Unix µs) from which it may; `asked_us` is when it first had something to ask the gate for
    in this round, `admitted_us` is when it was let in, `last_us` the moment
    of the last that was started. `died`: under this lease a delivery was given up on, `refused`: for its
    address. `elsewhere`: what sends to its endpoint is another function, to whose queue it is rung on.
    """

    call: Call
    holder: str
    stage: Stage = Stage.WANTING
    wake_ms: int = 0
    round: int = 0
    waited_ms: int = 0
    wanted: list[Owed] = field(default_factory=list)
    more: bool = False
    full: int = 0
    next_ms: int = 0
    buried: str = ""
    stuck: bool = False
    blocked: bool = False
    held: bool = False
    claim: Claim | None = None
    granted: list[tuple[Owed, int]] = field(default_factory=list)
    asked_us: int = 0
    admitted_us: int = 0
    last_us: int = 0
    sending: dict[str, Underway] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    died: bool = False
    refused: bool = False
    elsewhere: bool = False

    @property
    def lane(self) -> Lane:
        """Name the lane."""
        return self.call.lane

    @property
    def gate_key(self) -> tuple[str, str]:
        """Name the gate: tenant and endpoint."""
        return (self.call.lane.tenant, self.call.lane.endpoint_id)

    @property
    def over(self) -> bool:
        """Say whether it holds a lease and has nothing in flight any more, nor anything left to send."""
        return self.stage is Stage.SENDING and not self.sending and not self.granted

    def wait_until(self, moment_ms: int, now_ms: int) -> None:
        """Come back to this lane at a moment, still in this visit."""
        self.stage = Stage.WANTING
        self.waited_ms += max(0, moment_ms - now_ms)
        self.wake_ms = moment_ms

    def admit(self, claim: Claim, moments: tuple[int, ...], now_us: int) -> None:
        """Take a lease: the rows it names may go, each from its moment on."""
        self.claim = claim
        self.admitted_us = now_us
        self.blocked = False
        self.held = False
        self.more |= len(self.wanted) > len(moments)
        self.granted = list(zip(self.wanted, moments, strict=False))
        self.wanted = self.wanted[len(moments) :]

    @property
    def starts_us(self) -> int | None:
        """Say from when on it may start something; None: not before what is in flight has ended."""
        if not self.granted or (self.lane.ordered and self.sending):
            return None
        return self.granted[0][1]

    def due(self, now_us: int) -> bool:
        """Say whether it may start something now, or in a moment that hardly matters."""
        starts_us = self.starts_us
        return starts_us is not None and starts_us <= now_us + TOGETHER_US

    def take(self, now_us: int) -> list[tuple[Owed, int]]:
        """Take what may be started now: all whose moment has come, or the first of an ordered lane."""
        if not self.due(now_us):
            return []
        ripe = sum(1 for _, moment_us in self.granted if moment_us <= now_us + TOGETHER_US)
        count = 1 if self.lane.ordered else ripe
        taken, self.granted = self.granted[:count], self.granted[count:]
        return taken

    def pass_on(self) -> None:
        """Send nothing here: the lane is rung on the queue of its endpoint."""
        self.stop()
        self.more = True
        self.elsewhere = True

    def stop(self) -> None:
        """Start nothing more under this lease; what was granted stays owed."""
        self.more |= bool(self.granted)
        self.granted = []


@dataclass(frozen=True, slots=True)
class Attempted:
    """One attempt as it is logged, counted and traced; ids and numbers only.

    `platform_ms` is all that it waited since it was ready, `held_ms` how much of that its endpoint was held
    (`held_for`: why it last was), `consumer_ms` what its endpoint took. `steps` are its moments, which nobody
    knows of one whose holder died. `rung_in` is the trace header of its bell.
    """

    tenant: str
    endpoint_id: str
    lane: str
    delivery_id: str
    event_id: str
    generation: int
    attempt: int
    outcome: str
    status: int | None
    fault: str | None
    became: Status
    reason: str
    platform_ms: int
    held_ms: int
    held_for: str
    consumer_ms: int
    steps: Steps | None = None
    rung_in: str = ""
