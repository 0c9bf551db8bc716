"""Routes that order purges."""

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.domain.step_up import ElevatedAction
from chalicelib.handlers import http, tenants
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, parsing


def tenant(asked: Asked, tenant_id: str) -> Response:
    """Begin to remove a tenant that is still as it was read, with all that is its own."""
    old = tenants.of(asked, tenant_id)
    asked.as_read(old.version, "tenant")
    if not asked.caller.is_operator:
        asked.elevated(ElevatedAction.PURGE)
    return http.reply(answers.tenant(bootstrap.order_purges().tenant(old, asked.actor)), 202)


def dead_letters(asked: Asked, endpoint_id: str) -> Response:
    """Begin to remove an endpoint's dead letters, all or those given up on before a moment."""
    text = asked.query.get("before")
    before_ms = None if text is None else parsing.queried_ms(text, "before")
    orders = bootstrap.order_purges()
    of = orders.found((asked.caller.tenant, endpoint_id))
    asked.elevated(ElevatedAction.PURGE)
    return http.reply(answers.purged_letters(orders.dead_letters(of, before_ms, asked.actor)), 202)
