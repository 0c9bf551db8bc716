"""Routes about Relay itself: is it alive, can it work."""

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.application.authenticate import DEFAULT_TENANT
from chalicelib.application.ports import Unavailable
from chalicelib.handlers import http


def alive() -> Response:
    """Say that the function runs."""
    return http.reply({"status": "ok"})


def ready() -> Response:
    """Say whether the store answers; 503 names what does not."""
    try:
        bootstrap.questions().endpoints.page(DEFAULT_TENANT, "", 1)
    except Unavailable:
        return http.reply({"status": "unavailable", "failing": ["store"]}, 503)
    return http.reply({"status": "ok", "failing": []})
