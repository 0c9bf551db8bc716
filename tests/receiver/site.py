"""What the receiver remembers between requests: secrets, log, toggles, scripts, dice and who is held."""

import asyncio
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from tests.receiver import clock
from tests.receiver.entry import Arrival, Entry, Record
from tests.receiver.log import DeliveryLog
from tests.receiver.request import Request
from tests.receiver.verify import Secrets, Verdict

if TYPE_CHECKING:
    from tests.receiver.script import Script

UP = 200


@dataclass(slots=True)
class Counts:
    """TCP connections: accepted since the last reset, and open now."""

    accepts: int = 0
    open: int = 0


class Site:
    """The receiver's whole state. Belongs to one event loop."""

    def __init__(self, log: DeliveryLog, seed: int = 0) -> None:
        """Start empty; `seed` decides how the dice of `/flaky` fall."""
        self.log = log
        self.secrets = Secrets()
        self.toggles: dict[str, int] = {}
        self.scripts: dict[str, Script] = {}
        self.counts = Counts()
        self.released = asyncio.Event()
        self._seed = seed
        self._dice: dict[str, Random] = {}

    def arrive(self, request: Request, connection: int, *, verify: bool) -> Entry:
        """Record a delivery at this instant, judging its signature if that is wanted."""
        at = clock.now()
        verdict = self._judge(request, at.epoch_ns / clock.NS_PER_S) if verify else None
        return self.log.arrive(Arrival(request, connection, verdict, at))

    def dice(self, target: str, seed: str | None) -> Random:
        """Give the dice of a target: the n-th throw is the same in every run with the same seed."""
        dice = self._dice.get(target)
        if dice is None:
            dice = self._dice[target] = Random(f"{seed or self._seed}:{target}")
        return dice

    def stats(self) -> Record:
        """Give the log's counts and those of the connections."""
        return {"accepts": self.counts.accepts, "open": self.counts.open, **self.log.stats()}

    def reset(self, *, keep_secrets: bool = False) -> None:
        """Forget what was received, toggled and scripted, start counting again and let go of who hangs."""
        self.log.clear()
        self.toggles.clear()
        self.scripts.clear()
        self._dice.clear()
        self.counts.accepts = 0
        if not keep_secrets:
            self.secrets.clear()
        released, self.released = self.released, asyncio.Event()
        released.set()

    def _judge(self, request: Request, now_s: float) -> Verdict:
        target = request.target
        endpoint = target.rest if target.family == "verify" else ""
        return self.secrets.judge(target.text, request.headers, request.body, now_s, endpoint=endpoint)
