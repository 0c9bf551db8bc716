"""Routes of bulk replays, and the functions that work them off."""

from collections.abc import Callable
from typing import Any

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.domain.audit import Actor
from chalicelib.domain.bulk_replay import BulkReplay
from chalicelib.handlers import http, messages
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, bodies, meaning, parsing
from chalicelib.wire import bell as bells


def begin(asked: Asked, endpoint_id: str) -> Response:
    """Begin to send again what of an endpoint's deliveries has ended, by time, status and type."""
    body = parsing.parse(bodies.BulkReplayBody, asked.body)
    wanted = meaning.wanted(body, bootstrap.clock().now_ms())
    of = (asked.caller.tenant, endpoint_id)
    begun = bootstrap.order_replays().begin(of, wanted, body.confirm, asked.actor)
    return http.reply(answers.bulk_replay(begun), 202, {"Location": f"/v1/replays/{begun.id}"})


def get(asked: Asked, replay_id: str) -> Response:
    """Show how far a bulk replay is."""
    return http.reply(answers.bulk_replay(bootstrap.order_replays().get(asked.caller.tenant, replay_id)))


def pause(asked: Asked, replay_id: str) -> Response:
    """Let a bulk replay begin no more for now."""
    return _turned(asked, replay_id, bootstrap.order_replays().pause)


def resume(asked: Asked, replay_id: str) -> Response:
    """Let a bulk replay go on."""
    return _turned(asked, replay_id, bootstrap.order_replays().resume)


def cancel(asked: Asked, replay_id: str) -> Response:
    """End a bulk replay for good."""
    return _turned(asked, replay_id, bootstrap.order_replays().cancel)


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's context has no type
    """Go on with each bulk replay that a message names; those that failed are named in the answer."""

    def go_on(tenant: str, replay_id: str) -> dict[str, Any]:
        begun = bootstrap.replay_many().run(tenant, replay_id, context.get_remaining_time_in_millis)
        return {"tenant": tenant, "replay_id": replay_id, "begun": begun}

    return messages.work_off(event, "replay", bells.load_replay, go_on)


def call() -> None:
    """Call for every bulk replay whose next run is due, and log how many there are."""
    bootstrap.log().info("replays.called", extra={"replays": bootstrap.replay_many().call_waiting()})


def _turned(asked: Asked, replay_id: str, turn: Callable[[str, str, Actor], BulkReplay]) -> Response:
    asked.has_nothing_to_say()
    return http.reply(answers.bulk_replay(turn(asked.caller.tenant, replay_id, asked.actor)))
