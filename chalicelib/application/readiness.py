"""Readiness: whether Relay can work, by what the store says of it."""

from dataclasses import dataclass

from chalicelib.application.ports import Clock, Endpoints, Unavailable
from chalicelib.application.ports.gauging import Gauging
from chalicelib.domain import gauging
from chalicelib.domain.gauging import Failing
from chalicelib.domain.tenant import DEFAULT_TENANT


@dataclass(frozen=True, slots=True)
class Readiness:
    """Looks at the store, and at what the reporter left there."""

    endpoints: Endpoints
    gauging: Gauging
    queues: tuple[str, ...]
    clock: Clock

    def failing(self) -> tuple[Failing, ...]:
        """Say what fails; of a store that does not answer no more is known."""
        try:
            self.endpoints.page(DEFAULT_TENANT, "", 1)
            signs = self.gauging.signs(self.queues)
        except Unavailable:
            return (Failing.STORE,)
        return gauging.failing(signs, self.clock.now_ms(), self.queues)
