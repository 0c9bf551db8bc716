"""AWS clients, one per service and process, with retries and timeouts that fit a function."""

from typing import Any

import boto3
from botocore.config import Config

CONNECT_TIMEOUT_S, READ_TIMEOUT_S = 3, 10
POOL = 64
ATTEMPTS = 3


def make(
    service: str,
    *,
    validate: bool = False,
    attempts: int = ATTEMPTS,
    region: str | None = None,
    timeout_s: float | None = None,
) -> Any:  # noqa: ANN401 - boto3's clients have no common type
    """Make a client; validating parameters costs time that the hot path saves."""
    config = Config(
        retries={"mode": "standard", "total_max_attempts": attempts},
        connect_timeout=timeout_s or CONNECT_TIMEOUT_S,
        read_timeout=timeout_s or READ_TIMEOUT_S,
        max_pool_connections=POOL,
        tcp_keepalive=True,
        parameter_validation=validate,
        s3={"addressing_style": "path"},
    )
    return boto3.client(service, config=config, region_name=region)  # type: ignore[call-overload]  # any service
