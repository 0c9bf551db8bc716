"""The functions of bulk replays: one goes on with them when called, the other calls it each minute."""

from typing import Any

from chalicelib import bootstrap
from chalicelib.handlers import messages
from chalicelib.wire import bell as bells


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's context has no type
    """Go on with each bulk replay that a message names; those that failed are named in the answer."""

    def go_on(tenant: str, replay_id: str) -> dict[str, Any]:
        begun = bootstrap.replay_many().run(tenant, replay_id, context.get_remaining_time_in_millis)
        return {"tenant": tenant, "replay_id": replay_id, "begun": begun}

    return messages.work_off(event, "replay", bells.load_replay, go_on)


def call() -> None:
    """Call for every bulk replay whose next run is due, and log how many there are."""
    bootstrap.log().info("replays.called", extra={"replays": bootstrap.replay_many().call_waiting()})
