"""Accepting events: what is allowed, taken and fanned out."""

from functools import cache
from typing import TYPE_CHECKING

from chalicelib import bootstrap

if TYPE_CHECKING:
    from chalicelib.application.admit_requests import AdmitRequests
    from chalicelib.application.fan_out import FanOutLater
    from chalicelib.application.ingest import Ingest
    from chalicelib.application.limiter import Limiter
    from chalicelib.application.pacing import Pacing


@cache
def limiter() -> "Limiter":
    """Give what counts; what a process has taken it spends wherever it is needed."""
    from chalicelib.adapters.dynamodb.limiting import DynamoAllowances
    from chalicelib.application.limiter import Limiter

    return Limiter(DynamoAllowances(bootstrap.tables()), bootstrap.clock())


@cache
def admit_requests() -> "AdmitRequests":
    """Give the use case that holds keys to their quotas."""
    from chalicelib.application.admit_requests import AdmitRequests

    return AdmitRequests(bootstrap.limiter())


@cache
def pacing() -> "Pacing":
    """Give what paces fan-outs; a tenant's budget is known for as long as a key is."""
    from chalicelib.application.pacing import KnownQuotas, Pacing

    quotas = KnownQuotas(bootstrap.tenants(), bootstrap.clock(), bootstrap.settings().key_cache_secs * 1000)
    return Pacing(bootstrap.limiter(), bootstrap.clock(), quotas.fan_out_per_second)


@cache
def ingest() -> "Ingest":
    """Give the use case that accepts events."""
    from chalicelib.application.ingest import Ingest, IngestLimits

    of = bootstrap.settings()
    limits = IngestLimits(of.payload_max_bytes, of.inline_max_bytes, of.inline_fanout_max)
    return Ingest(
        bootstrap.capturing(),
        bootstrap.payloads(),
        bootstrap.bells(),
        bootstrap.clock(),
        bootstrap.dice(),
        limits,
        bootstrap.limiter(),
        bootstrap.pacing(),
    )


@cache
def fan_out() -> "FanOutLater":
    """Give the use case that fans out later."""
    from chalicelib.adapters.dynamodb.capturing import DynamoFanningOut
    from chalicelib.application.fan_out import FanOutLater

    return FanOutLater(
        DynamoFanningOut(bootstrap.tables()),
        bootstrap.capturing(),
        bootstrap.payloads(),
        bootstrap.bells(),
        bootstrap.clock(),
        bootstrap.pacing(),
    )
