"""Every setting of the relay node: an environment variable PASEO_RELAY_…, under the names its users know.

Read once at the start; what is unknown, out of bounds or at odds with another is told in one sentence.
"""

import os
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chalicelib.settings import Names, read

PREFIX = "PASEO_RELAY_"
MESSAGE_MAX_BYTES = 33_554_418
"""32 MiB less 14, the longest head of a frame."""
CONTROL_MAX_BYTES = 65_536

Milliseconds = Annotated[int, Field(ge=1, le=3_600_000)]
Bytes = Annotated[int, Field(ge=1, le=1 << 40)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]


class NodeSettings(BaseModel):
    """The frozen settings of one node; docs/relay-node.md explains each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 4_000
    drain: bool = False
    open: bool = True
    ownership_target: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:\[\]/-]{1,256}$")] = "local"
    reroute_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")] = "x-reroute-target"
    cluster_query: str = ""
    min_cluster_size: Count = 1
    registry: Annotated[str, Field(pattern="^(none|dynamodb)$")] = "none"
    acceptors: Count = 100
    connections_per_acceptor: Count = 200
    http_idle_timeout_ms: Milliseconds = 15_000
    capacity_mutation_timeout_ms: Milliseconds = 5_000
    ingress_budget_bytes: Bytes = 536_870_912
    ingress_weight: Annotated[int, Field(ge=1, le=64)] = 4
    delivery_timeout_ms: Milliseconds = 30_000
    transport_send_timeout_ms: Milliseconds = 35_000
    control_queue_bytes: Bytes = 1_048_576
    data_attach_timeout_ms: Milliseconds = 15_000
    tcp_receive_buffer_bytes: Annotated[int, Field(ge=4_096, le=1 << 26)] = 65_536
    memory_watermark_bytes: Annotated[int, Field(ge=0, le=1 << 40)] = 0
    memory_recovery_percent: Annotated[int, Field(ge=1, le=100)] = 90
    sync_again_ms: Milliseconds = 10_000
    control_unresponsive_ms: Milliseconds = 5_000
    owner_idle_ms: Milliseconds = 30_000
    lease_ms: Milliseconds = 10_000
    lease_renewal_ms: Milliseconds = 3_000
    clock_skew_ms: Milliseconds = 2_000
    drain_timeout_ms: Milliseconds = 30_000

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.transport_send_timeout_ms <= self.delivery_timeout_ms:
            raise ValueError(
                f"{PREFIX}TRANSPORT_SEND_TIMEOUT_MS is {self.transport_send_timeout_ms}; it has to be greater"
                f" than {PREFIX}DELIVERY_TIMEOUT_MS, {self.delivery_timeout_ms}"
            )
        needed = MESSAGE_MAX_BYTES * self.ingress_weight
        if self.ingress_budget_bytes < needed:
            raise ValueError(
                f"{PREFIX}INGRESS_BUDGET_BYTES is {self.ingress_budget_bytes}; with {PREFIX}INGRESS_WEIGHT"
                f" {self.ingress_weight} one message of the greatest size needs {needed}"
            )
        if self.lease_renewal_ms * 2 + self.clock_skew_ms > self.lease_ms:
            raise ValueError(
                f"{PREFIX}LEASE_MS is {self.lease_ms}; it has to outlast two renewals of"
                f" {PREFIX}LEASE_RENEWAL_MS and {PREFIX}CLOCK_SKEW_MS"
            )
        return self

    @property
    def sockets_max(self) -> int:
        """Say how many WebSockets may be active at once."""
        return self.acceptors * self.connections_per_acceptor


def load(environment: Mapping[str, str] | None = None) -> NodeSettings:
    """Read the settings; raises SettingsError with one sentence per fault."""
    source = os.environ if environment is None else environment
    return read(NodeSettings, source, Names(PREFIX, "docs/relay-node.md"))
