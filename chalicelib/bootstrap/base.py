"""What everything else stands on: settings, log, time, clients of AWS, numbers of gates and addresses."""

from functools import cache
from typing import TYPE_CHECKING, Any

from chalicelib import bootstrap
from chalicelib import settings as configuration
from chalicelib.settings import SETTLE_MARGIN_SECS, START_MARGIN_SECS, Settings

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

    from chalicelib.adapters.aws_json import JsonService
    from chalicelib.adapters.clock import SystemClock, SystemDice
    from chalicelib.domain.chat.platform import Origins
    from chalicelib.domain.gate import Rules
    from chalicelib.domain.target import Policy

# What is published twice is read twice: the next run tries again.
_TRIED_ONCE = frozenset({"sns"})


@cache
def settings() -> Settings:
    """Read the settings; raises SettingsError."""
    return configuration.load()


def function() -> str:
    """Name the function of app.py that this process runs; nothing where none or all of them are run."""
    return configuration.function()


@cache
def log() -> "Logger":
    """Give the logger."""
    from chalicelib import telemetry

    of = bootstrap.settings()
    return telemetry.logger(of.log_level, of.log_format)


@cache
def clock() -> "SystemClock":
    """Give the machine's clock."""
    from chalicelib.adapters.clock import SystemClock

    return SystemClock()


@cache
def dice() -> "SystemDice":
    """Give the machine's randomness."""
    from chalicelib.adapters.clock import SystemDice

    return SystemDice()


@cache
def client(service: str) -> Any:  # noqa: ANN401 - boto3's clients have no common type
    """Make the one client of an AWS service; a strict one refuses what AWS would and emulators do not."""
    from chalicelib.adapters import clients

    once = service in _TRIED_ONCE
    made = clients.make(
        service, validate=bootstrap.settings().strict_aws, attempts=1 if once else clients.ATTEMPTS
    )
    if bootstrap.settings().strict_aws:
        from chalicelib.adapters.aws_limits import refuse_what_aws_refuses

        refuse_what_aws_refuses(made)
    return made


@cache
def client_in(service: str, region: str) -> Any:  # noqa: ANN401 - boto3's clients have no common type
    """Make the client of an AWS service in a region where somebody else's queues and buses are."""
    from chalicelib.adapters import clients

    return clients.make(service, region=region)


@cache
def json_service(name: str) -> "JsonService":
    """Give the lean client of DynamoDB or SQS, with the hooks of the full one; the store tells the time."""
    from chalicelib.adapters.aws_json import JsonService

    return JsonService(bootstrap.client(name), bootstrap.clock().hear if name == "dynamodb" else None)


@cache
def rules() -> "Rules":
    """Give the numbers of every gate.

    A lease that is hardly longer than a request leaves less to pace ahead in.
    """
    from chalicelib.domain.gate import SECOND, Rules

    of = bootstrap.settings()
    spare_secs = of.lease_secs - of.total_timeout_secs - START_MARGIN_SECS - SETTLE_MARGIN_SECS
    return Rules(
        of.breaker,
        of.breaker_threshold,
        of.breaker_cooldown_secs * SECOND,
        of.breaker_max_cooldown_secs * SECOND,
        of.ramp_secs * SECOND,
        of.lease_secs * SECOND,
        of.total_timeout_secs * SECOND,
        min(Rules().reserve, spare_secs * SECOND),
        auto_disable=of.auto_disable,
        auto_disable_after=of.auto_disable_secs * SECOND,
        auto_disable_attempts=of.auto_disable_attempts,
    )


@cache
def policy() -> "Policy":
    """Say where requests may go."""
    from chalicelib.domain.target import Policy

    of = bootstrap.settings()
    return Policy(of.require_https, of.allow_private_endpoints, of.allowed_ports)


@cache
def origins() -> "Origins":
    """Say where the chats' platforms are reached."""
    from chalicelib.domain.chat.platform import Origins

    of = bootstrap.settings()
    return Origins(of.telegram_origin, of.discord_origin, of.slack_origin)
