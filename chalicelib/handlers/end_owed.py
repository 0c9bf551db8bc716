"""The functions of long ends: one ends deliveries in pages when called, the other calls it each minute."""

from typing import Any

from chalicelib import bootstrap
from chalicelib.handlers import counted, messages
from chalicelib.wire import bell as bells


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's context has no type
    """End what each named endpoint is owed and shall not get; those that failed are named in the answer."""

    def end(tenant: str, endpoint_id: str) -> dict[str, Any]:
        try:
            ended = bootstrap.end_owed().run(tenant, endpoint_id, context.get_remaining_time_in_millis)
        finally:
            counted.flush()
        return {"tenant": tenant, "endpoint_id": endpoint_id, "ended": ended}

    return messages.work_off(event, "ending", bells.load_ending, end)


def call() -> None:
    """Call once for every endpoint that has something due to be ended, and log how many there are."""
    bootstrap.log().info("endings.called", extra={"endpoints": bootstrap.end_owed().call_waiting()})
