"""The fan-out function: does what ingest left to be fanned out later."""

from typing import Any

from chalicelib import bootstrap
from chalicelib.handlers import messages
from chalicelib.wire import bell as bells


def handle(event: dict[str, Any]) -> dict[str, Any]:
    """Fan out each event that a message names; those that failed are named in the answer."""

    def fan_out(tenant: str, event_id: str, due_ms: int) -> None:
        bootstrap.fan_out().run(tenant, event_id, due_ms)

    return messages.work_off(event, "fan_out", bells.load_fan_out, fan_out)
