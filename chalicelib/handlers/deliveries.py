"""Routes of deliveries: what became of one, and sending it again."""

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.handlers import http
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, queries


def get(asked: Asked, delivery_id: str) -> Response:
    """Show a delivery with every attempt of its newest generation."""
    tenant = asked.caller.tenant
    (shown,) = bootstrap.showing().deliveries(tenant, [bootstrap.questions().delivery(tenant, delivery_id)])
    return http.reply(answers.delivery(shown))


def request(asked: Asked, delivery_id: str) -> Response:
    """Show the exact request of an attempt, and a line that sends it once more."""
    number = queries.number(asked.query, "attempt", least=1)
    generation = queries.number(asked.query, "generation")
    to = queries.address(asked.query, "to")
    found = bootstrap.inspect().run(asked.caller.tenant, delivery_id, generation, number)
    return http.reply(answers.inspected(found, to))


def replay(asked: Asked, delivery_id: str) -> Response:
    """Send a delivery that has ended once more, as its next generation."""
    asked.has_nothing_to_say()
    tenant = asked.caller.tenant
    begun = bootstrap.replay().run(tenant, delivery_id, asked.actor)
    return http.reply(answers.replay(begun), 202, {"Location": f"/v1/deliveries/{delivery_id}"})
