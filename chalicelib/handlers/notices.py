"""Routes of notices."""

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.handlers.http import Asked
from chalicelib.wire import notices


def page(asked: Asked) -> Response:
    """List a tenant's notices, newest first."""
    after, limit = asked.page("notices", "ntc")
    now_ms = bootstrap.clock().now_ms()
    found = bootstrap.noticing().page(asked.caller.tenant, after, limit, now_ms)
    return asked.listed([notices.shown(each) for each in found.items], "notices", found.after)
