"""Routes of deliveries."""

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.application.authenticate import Role
from chalicelib.handlers import http
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers


def get(asked: Asked, delivery_id: str) -> Response:
    """Show a delivery with every attempt of its newest generation."""
    asked.caller.must_be(Role.VIEWER)
    return http.reply(answers.delivery(bootstrap.questions().delivery(asked.caller.tenant, delivery_id)))
