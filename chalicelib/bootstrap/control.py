"""What the API does with endpoints, deliveries and replays."""

from functools import cache
from typing import TYPE_CHECKING

from chalicelib import bootstrap

if TYPE_CHECKING:
    from chalicelib.application.authorizing import Authorize
    from chalicelib.application.bulk_replay import OrderReplays
    from chalicelib.application.endpoints import ManageEndpoints
    from chalicelib.application.inspect import Inspect
    from chalicelib.application.measure_backlog import MeasureBacklog
    from chalicelib.application.purge import OrderPurges
    from chalicelib.application.questions import Questions
    from chalicelib.application.replay import Replay
    from chalicelib.application.rotate import RotateKeys
    from chalicelib.application.showing import Showing
    from chalicelib.application.try_endpoint import TryEndpoint
    from chalicelib.application.tunnels import ListenAt, ListenerCame, Tunnels


@cache
def manage_endpoints() -> "ManageEndpoints":
    """Give the use case behind the endpoint routes."""
    from chalicelib.application.endpoints import ManageEndpoints

    return ManageEndpoints(
        bootstrap.endpoints(),
        bootstrap.signing_keys(),
        bootstrap.clock(),
        bootstrap.dice(),
        bootstrap.policy(),
        bootstrap.bells(),
        bootstrap.origins(),
    )


@cache
def authorize() -> "Authorize":
    """Give the use case that checks and seals what endpoints are authenticated with."""
    from chalicelib.adapters.http.own_tls import OpenSslCertificates
    from chalicelib.application.authorizing import Authorize

    return Authorize(bootstrap.signing_keys(), OpenSslCertificates(), bootstrap.clock(), bootstrap.policy())


@cache
def rotate_keys() -> "RotateKeys":
    """Give the use case that rotates signing keys."""
    from chalicelib.application.rotate import RotateKeys

    return RotateKeys(bootstrap.manage_endpoints())


@cache
def measure_backlog() -> "MeasureBacklog":
    """Give the use case that counts what waits."""
    from chalicelib.application.measure_backlog import MeasureBacklog

    return MeasureBacklog(bootstrap.endpoints(), bootstrap.gates(), bootstrap.work(), bootstrap.clock())


@cache
def questions() -> "Questions":
    """Give the use case that answers what happened."""
    from chalicelib.adapters.dynamodb.reading import DynamoReading
    from chalicelib.application.questions import Questions

    return Questions(
        DynamoReading(bootstrap.tables()), bootstrap.endpoints(), bootstrap.payloads(), bootstrap.clock()
    )


@cache
def showing() -> "Showing":
    """Give the use case that makes what may be seen."""
    from chalicelib.adapters.dynamodb.reading import DynamoReading
    from chalicelib.application.showing import Showing

    return Showing(
        DynamoReading(bootstrap.tables()), bootstrap.payloads(), bootstrap.tenants(), bootstrap.clock()
    )


@cache
def inspect() -> "Inspect":
    """Give the use case that shows requests of the past."""
    from chalicelib.application.inspect import Inspect

    return Inspect(bootstrap.questions(), bootstrap.showing(), bootstrap.origins())


@cache
def replay() -> "Replay":
    """Give the use case that replays a delivery."""
    from chalicelib.adapters.dynamodb.replaying import DynamoReplaying
    from chalicelib.application.replay import Replay

    return Replay(
        DynamoReplaying(bootstrap.tables()),
        bootstrap.questions(),
        bootstrap.bells(),
        bootstrap.clock(),
        bootstrap.dice(),
    )


@cache
def try_endpoint() -> "TryEndpoint":
    """Give the use case that sends tests."""
    from chalicelib.adapters.clock import SystemPatience
    from chalicelib.adapters.dynamodb.replaying import DynamoReplaying
    from chalicelib.application.try_endpoint import TryEndpoint

    return TryEndpoint(
        bootstrap.endpoints(),
        bootstrap.capturing(),
        DynamoReplaying(bootstrap.tables()),
        bootstrap.questions(),
        bootstrap.bells(),
        bootstrap.clock(),
        bootstrap.dice(),
        SystemPatience(),
    )


@cache
def order_replays() -> "OrderReplays":
    """Give the use case behind the routes of bulk replays."""
    from chalicelib.application.bulk_replay import OrderReplays

    return OrderReplays(
        bootstrap.bulk_replays(),
        bootstrap.endpoints(),
        bootstrap.bells(),
        bootstrap.clock(),
        bootstrap.dice(),
    )


@cache
def order_purges() -> "OrderPurges":
    """Give the use case behind the routes that purge."""
    from chalicelib.application.purge import OrderPurges

    return OrderPurges(bootstrap.purging(), bootstrap.endpoints(), bootstrap.clock(), bootstrap.dice())


@cache
def tunnels() -> "Tunnels":
    """Give what makes and looks at tickets of tunnels."""
    from chalicelib.adapters.dynamodb.tickets import DynamoTickets
    from chalicelib.application.tunnels import Tunnels

    return Tunnels(DynamoTickets(bootstrap.tables()), bootstrap.clock(), bootstrap.dice())


@cache
def listen_at() -> "ListenAt":
    """Give the use case that lets a machine listen at a tunnel."""
    from chalicelib.application.tunnels import ListenAt

    return ListenAt(bootstrap.manage_endpoints(), bootstrap.tunnels(), bootstrap.settings().node_url)


@cache
def listener_came() -> "ListenerCame":
    """Give the use case that lets go of an endpoint that waited for a listener."""
    from chalicelib.application.tunnels import ListenerCame

    return ListenerCame(bootstrap.gates(), bootstrap.bells(), bootstrap.clock())
