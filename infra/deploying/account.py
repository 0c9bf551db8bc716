"""Where a deployment goes: an account of AWS, or an emulator that AWS_ENDPOINT_URL leads to."""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import boto3
from botocore.config import Config

from infra.deploying.stage import Stage, StageError

Say = Callable[[str], None]
"""Tells the person who deploys."""

OPEN: Final = "RELAY_ALLOW_PRIVATE_ENDPOINTS"
_MACHINES: Final = {"aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Account:
    """An account and a region of it; `endpoint_url` is an emulator's, or empty on AWS.

    An emulator is given made-up credentials, so that a slip never reaches the caller's own account.
    """

    region: str
    endpoint_url: str = ""

    @classmethod
    def of(cls, stage: Stage, endpoint_url: str) -> "Account":
        """Give the account a stage goes to; StageError for one that must never be on AWS."""
        if not endpoint_url and stage.settings.get(OPEN) == "true":
            raise StageError(
                f"The stage {stage.name} lets requests go anywhere: it is for emulators alone, and"
                " AWS_ENDPOINT_URL names none."
            )
        return cls(stage.region, endpoint_url)

    @cached_property
    def number(self) -> str:
        """Give the account's number."""
        return str(self.client("sts").get_caller_identity()["Account"])

    @property
    def architecture(self) -> str:
        """Give the processors of its functions, or "" where the configured ones are there."""
        return _MACHINES.get(platform.machine(), "x86_64") if self.endpoint_url else ""

    @property
    def look_every_s(self) -> float:
        """Give how long to wait between looks at something that takes a while."""
        return 0.2 if self.endpoint_url else 5.0

    @cached_property
    def clients(self) -> dict[str, Any]:
        """Keep the clients that were made."""
        return {}

    def client(self, service: str) -> Any:  # noqa: ANN401  botocore makes its clients at run time
        """Give the one client of a service."""
        if service not in self.clients:
            self.clients[service] = self._session.client(
                service,
                endpoint_url=self.endpoint_url or None,
                config=Config(
                    retries={"mode": "standard", "total_max_attempts": 8},
                    s3={"addressing_style": "path"} if self.endpoint_url else {},
                ),
            )
        return self.clients[service]

    @cached_property
    def _session(self) -> Any:  # noqa: ANN401  as above
        if not self.endpoint_url:
            return boto3.Session(region_name=self.region)
        return boto3.Session("test", "test", region_name=self.region)

    def object_url(self, bucket: str, key: str) -> str:
        """Give an object's address with the bucket in its path, which is what emulators understand."""
        origin = self.endpoint_url or f"https://s3.{self.region}.amazonaws.com"
        return f"{origin}/{bucket}/{key}"

    def api_url(self, api_id: str, stage_name: str = "api") -> str:
        """Give the address that a deployed API is called at."""
        if self.endpoint_url:
            return f"{self.endpoint_url}/restapis/{api_id}/{stage_name}/_user_request_"
        return f"https://{api_id}.execute-api.{self.region}.amazonaws.com/{stage_name}"
