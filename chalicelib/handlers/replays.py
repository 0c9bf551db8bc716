"""Routes of bulk replays."""

from collections.abc import Callable

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.domain.audit import Actor
from chalicelib.domain.bulk_replay import BulkReplay
from chalicelib.handlers import http
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, bodies, meaning, parsing


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


def _turned(asked: Asked, replay_id: str, turn: Callable[[str, str, Actor], BulkReplay]) -> Response:
    asked.has_nothing_to_say()
    return http.reply(answers.bulk_replay(turn(asked.caller.tenant, replay_id, asked.actor)))
