"""Sending what is owed, and looking after lanes that nobody looked at."""

from functools import cache
from typing import TYPE_CHECKING

from chalicelib import bootstrap
from chalicelib import settings as configuration

if TYPE_CHECKING:
    from chalicelib.adapters.cloud import CloudSender
    from chalicelib.adapters.http.sender import GuardedSender
    from chalicelib.application.deliver import Deliver
    from chalicelib.application.ports import Sender
    from chalicelib.application.reconcile import Reconcile
    from chalicelib.application.tracing import Tracer


@cache
def sender() -> "GuardedSender":
    """Give the one sender of the process; its connections outlive invocations."""
    from chalicelib.adapters.http.dial import Proxy
    from chalicelib.adapters.http.loop import BackgroundLoop
    from chalicelib.adapters.http.sender import GuardedSender, SendLimits
    from chalicelib.adapters.http.transport import GuardedTransport, Timeouts

    of = bootstrap.settings()
    timeouts = Timeouts(of.connect_timeout_secs, of.read_timeout_secs)
    proxy = Proxy(*of.outbound_proxy) if of.outbound_proxy else None
    transport = GuardedTransport(bootstrap.policy(), timeouts, proxy=proxy)
    limits = SendLimits(of.total_timeout_secs, of.response_max_bytes, of.max_in_flight)
    return GuardedSender(transport, limits, BackgroundLoop(), bootstrap.clock().now_ms)


@cache
def http_sender() -> "Sender":
    """Give what sends over HTTP: directly, and through the relay node where there is one."""
    node_url = bootstrap.settings().node_url
    if not node_url:
        return bootstrap.sender()
    from chalicelib.adapters.http.tunnelled import TunnelledSender, frame_limits
    from chalicelib.application.tunnels import CallersTicket

    direct = bootstrap.sender()
    ticket = CallersTicket(bootstrap.tunnels(), bootstrap.clock())
    return TunnelledSender(direct, direct.limited(frame_limits(direct.limits)), node_url, ticket.text)


@cache
def cloud_sender() -> "CloudSender":
    """Give what sends to queues and buses in AWS accounts of others."""
    from chalicelib.adapters import clients
    from chalicelib.adapters.cloud import STEPS, CloudSender, Sessions
    from chalicelib.adapters.http.loop import BackgroundLoop
    from chalicelib.adapters.http.sender import SendLimits

    of = bootstrap.settings()
    sts = clients.make("sts", attempts=1, timeout_s=of.total_timeout_secs / STEPS)
    limits = SendLimits(of.total_timeout_secs, of.response_max_bytes, of.max_in_flight)
    return CloudSender(Sessions(sts), bootstrap.client_in, limits, BackgroundLoop())


@cache
def tracer() -> "Tracer | None":
    """Give what writes spans; None, with nothing loaded or opened for it, unless that is switched on."""
    of = bootstrap.settings()
    if of.traces == "off":
        return None
    from chalicelib.adapters.xray import XrayDaemon
    from chalicelib.application.tracing import Tracer

    daemon = XrayDaemon(configuration.xray_daemon())
    return Tracer(daemon, bootstrap.clock(), bootstrap.dice(), of.traces_per_second)


def trace_header() -> str:
    """Give AWS's trace header of the call that this process answers; nothing where there is none."""
    return configuration.trace_header()


@cache
def deliver() -> "Deliver":
    """Give the use case of the delivery plane, for what is sent over HTTP."""
    return _deliver(bootstrap.http_sender(), cloud=False)


@cache
def deliver_cloud() -> "Deliver":
    """Give the use case of the delivery plane, for what is sent to AWS."""
    return _deliver(bootstrap.cloud_sender(), cloud=True)


def _deliver(by: "Sender", *, cloud: bool) -> "Deliver":
    from chalicelib.application.admission import Admission
    from chalicelib.application.deliver import Deliver
    from chalicelib.application.gatekeeper import Gatekeeper, KnownGates
    from chalicelib.application.holding import Holding
    from chalicelib.application.lane_bells import LaneBells
    from chalicelib.application.settlement import Settlement

    known = KnownGates()
    keeper = Gatekeeper(bootstrap.gates(), known)
    holding = Holding(bootstrap.work(), keeper, bootstrap.clock())
    lane_bells = LaneBells(bootstrap.bells(), keeper, bootstrap.clock())
    settlement = Settlement(
        bootstrap.work(),
        keeper,
        holding,
        lane_bells,
        bootstrap.endpoints(),
        bootstrap.clock(),
        bootstrap.dice(),
        bootstrap.rules(),
        bootstrap.counting(),
    )
    return Deliver(
        bootstrap.work(),
        Admission(bootstrap.gates(), known, bootstrap.rules()),
        settlement,
        bootstrap.payloads(),
        bootstrap.signing_keys(),
        by,
        bootstrap.clock(),
        bootstrap.dice(),
        bootstrap.settings().total_timeout_secs * 1000,
        bootstrap.settings().payload_max_bytes,
        bootstrap.origins(),
        cloud,
    )


@cache
def reconcile() -> "Reconcile":
    """Give the watchdog."""
    from concurrent.futures import ThreadPoolExecutor

    from chalicelib.adapters.dynamodb.work import DynamoWatching
    from chalicelib.application.reconcile import LOOKED_AT_ONCE, Reconcile

    return Reconcile(
        DynamoWatching(bootstrap.tables()),
        bootstrap.work(),
        bootstrap.gates(),
        bootstrap.bells(),
        bootstrap.fan_out(),
        bootstrap.clock(),
        ThreadPoolExecutor(LOOKED_AT_ONCE, "reconcile").map,
    )
