"""Every setting of Relay: an environment variable RELAY_…, bounded, with its unit in its name.

The one place that reads the environment. A variable that is unknown or out of bounds, or two that
contradict each other, are told in one sentence and nothing starts.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from types import MappingProxyType
from typing import Annotated, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from chalicelib.domain.api_key import DEVELOPMENT_OPERATOR_KEY, digest
from chalicelib.domain.chat.platform import OFFICIAL
from chalicelib.domain.endpoint import OVERLAP_MAX_S, OVERLAP_S

PREFIX = "RELAY_"
Model = TypeVar("Model", bound=BaseModel)
_NOTHING: Mapping[str, object] = MappingProxyType({})
SETTLE_MARGIN_SECS = 2
# What may pass between admission and the last send of a lease: without it no send would ever start.
START_MARGIN_SECS = 1

_ENDPOINT = "AWS_ENDPOINT_URL"
_HANDLER = "_HANDLER"
_TRACE = "_X_AMZN_TRACE_ID"
_DAEMON, _DAEMON_DEFAULT = "AWS_XRAY_DAEMON_ADDRESS", "127.0.0.1:2000"
_IGNORED = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_ADDRESS_AND_PORT = re.compile(r"(\[(?P<v6>[0-9a-f:.]+)\]|(?P<v4>[0-9.]+)):(?P<port>[0-9]{1,5})", re.ASCII)
_PORT_LIST = re.compile(r"[0-9]{1,5}(,[0-9]{1,5})*", re.ASCII)


class SettingsError(ValueError):
    """A setting is wrong; the text says which, and what would be right."""


def _ports(value: object) -> object:
    if value == "*":
        return None
    if isinstance(value, str):
        if not _PORT_LIST.fullmatch(value):
            raise ValueError("it takes port numbers separated by commas, or *")
        return frozenset(int(each) for each in value.split(","))
    return value


def _proxy(value: object) -> object:
    if value == "":
        return None
    if isinstance(value, str):
        found = _ADDRESS_AND_PORT.fullmatch(value)
        address, port = (found["v6"] or found["v4"], found["port"]) if found else ("", "")
        try:
            return str(ip_address(address)), int(port)
        except ValueError:
            raise ValueError(
                "it takes an address and a port, such as 10.0.0.5:3128 or [fd00::5]:3128"
            ) from None
    return value


Seconds = Annotated[int, Field(ge=1, le=86_400)]
Port = Annotated[int, Field(ge=1, le=65_535)]
Proxy = Annotated[tuple[str, Port] | None, BeforeValidator(_proxy)]
Origin = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~-]+)*$", max_length=256)]
NodeUrl = Annotated[str, Field(pattern=r"^(https?://[A-Za-z0-9.:\[\]-]+)?$", max_length=256)]
Ports = Annotated[frozenset[Port] | None, BeforeValidator(_ports)]


class Settings(BaseModel):
    """The frozen settings of one installation; docs/configuration.md explains each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    resource_prefix: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,22}-$")] = "relay-"
    payload_bucket: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")] = "relay-payloads"
    audit_bucket: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")] = "relay-audit"
    notices_topic_arn: Annotated[
        str, Field(pattern=r"^(arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256})?$")
    ] = ""
    shard_count: Annotated[int, Field(ge=1, le=4)] = 4
    inline_fanout_max: Annotated[int, Field(ge=0, le=48)] = 40
    payload_max_bytes: Annotated[int, Field(ge=1, le=1_048_576)] = 262_144
    inline_max_bytes: Annotated[int, Field(ge=0, le=65_536)] = 4_096
    batch_max_bytes: Annotated[int, Field(ge=1, le=6_000_000)] = 4_194_304
    batch_max_events: Annotated[int, Field(ge=1, le=100)] = 100
    connect_timeout_secs: Annotated[int, Field(ge=1, le=30)] = 5
    read_timeout_secs: Annotated[int, Field(ge=1, le=60)] = 5
    total_timeout_secs: Annotated[int, Field(ge=1, le=60)] = 10
    response_max_bytes: Annotated[int, Field(ge=0, le=65_536)] = 2_048
    max_in_flight: Annotated[int, Field(ge=1, le=1_000)] = 64
    lease_secs: Annotated[int, Field(ge=2, le=900)] = 45
    function_timeout_secs: Annotated[int, Field(ge=5, le=900)] = 60
    breaker: bool = True
    breaker_threshold: Annotated[int, Field(ge=1, le=1_000)] = 20
    breaker_cooldown_secs: Seconds = 30
    breaker_max_cooldown_secs: Seconds = 300
    auto_disable: bool = True
    auto_disable_secs: Annotated[int, Field(ge=1, le=7_776_000)] = 259_200
    auto_disable_attempts: Annotated[int, Field(ge=2, le=1_000)] = 12
    rotation_overlap_secs: Annotated[int, Field(ge=0, le=OVERLAP_MAX_S)] = OVERLAP_S
    ramp_secs: Annotated[int, Field(ge=0, le=86_400)] = 300
    notice_window_secs: Seconds = 3_600
    notice_outage_secs: Seconds = 900
    outbound_proxy: Proxy = None
    node_url: NodeUrl = ""
    telegram_origin: Origin = OFFICIAL.telegram
    discord_origin: Origin = OFFICIAL.discord
    slack_origin: Origin = OFFICIAL.slack
    allow_private_endpoints: bool = False
    require_https: bool = True
    allowed_ports: Ports = frozenset({443})
    allow_keyless: bool = False
    key_cache_secs: Annotated[int, Field(ge=0, le=55)] = 30
    operator_key_sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    sweep_expired_rows: bool = False
    strict_aws: bool = False
    log_level: Annotated[str, Field(pattern="^(DEBUG|INFO|WARNING|ERROR)$")] = "INFO"
    log_format: Annotated[str, Field(pattern="^(json|text)$")] = "json"
    traces: Annotated[str, Field(pattern="^(off|xray)$")] = "off"
    traces_per_second: Annotated[int, Field(ge=1, le=1_000)] = 1
    real_aws: bool = True

    @model_validator(mode="before")
    @classmethod
    def _follow_the_switch(cls, given: dict[str, object]) -> dict[str, object]:
        if str(given.get("allow_private_endpoints", "")).lower() in _TRUE:
            return {"require_https": False, "allowed_ports": "*"} | given
        return given

    @model_validator(mode="after")
    def _agree(self) -> Self:
        needed = self.total_timeout_secs + START_MARGIN_SECS + SETTLE_MARGIN_SECS
        if self.lease_secs < needed:
            raise ValueError(
                f"RELAY_LEASE_SECS is {self.lease_secs}; with RELAY_TOTAL_TIMEOUT_SECS"
                f" {self.total_timeout_secs} it has to be at least {needed}"
            )
        if self.function_timeout_secs < self.lease_secs:
            raise ValueError(
                f"RELAY_FUNCTION_TIMEOUT_SECS is {self.function_timeout_secs}; it has to be at least"
                f" RELAY_LEASE_SECS, {self.lease_secs}"
            )
        if self.breaker_max_cooldown_secs < self.breaker_cooldown_secs:
            raise ValueError("RELAY_BREAKER_MAX_COOLDOWN_SECS is below RELAY_BREAKER_COOLDOWN_SECS")
        if self.allow_keyless and self.real_aws:
            raise ValueError(
                "RELAY_ALLOW_KEYLESS lets anyone in and works only with an emulator (AWS_ENDPOINT_URL)"
            )
        if self.operator_key_sha256 == digest(DEVELOPMENT_OPERATOR_KEY) and self.real_aws:
            raise ValueError(
                "RELAY_OPERATOR_KEY_SHA256 is that of the development key, which everybody knows; it"
                " works only with an emulator (AWS_ENDPOINT_URL)"
            )
        return self


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings; raises SettingsError with one sentence per fault."""
    source = os.environ if environment is None else environment
    derived = {"real_aws": _real_aws(source)}
    return read(Settings, source, Names(PREFIX, "docs/configuration.md"), derived)


@dataclass(frozen=True, slots=True)
class Names:
    """How the variables of a model begin, and the page that lists them."""

    prefix: str
    page: str


def read(
    model: type[Model], source: Mapping[str, str], names: Names, derived: Mapping[str, object] = _NOTHING
) -> Model:
    """Read a model's settings, and what is derived for it; raises SettingsError with a sentence per fault."""
    prefix = names.prefix
    given: dict[str, object] = {
        name.removeprefix(prefix).lower(): value for name, value in source.items() if name.startswith(prefix)
    }
    unknown = sorted(set(given) - (set(model.model_fields) - set(derived)))
    if unknown:
        told = ", ".join(prefix + name.upper() for name in unknown)
        raise SettingsError(f"unknown setting {told}; {names.page} lists those there are")
    try:
        return model.model_validate({**given, **derived})
    except ValidationError as error:
        raise SettingsError("; ".join(_sentence(each, prefix) for each in error.errors())) from None


def function(environment: Mapping[str, str] | None = None) -> str:
    """Name the function that Lambda runs in this process, as it is called in app.py; elsewhere nothing."""
    source = os.environ if environment is None else environment
    module, _, name = source.get(_HANDLER, "").rpartition(".")
    return name if module == "app" else ""


def trace_header(environment: Mapping[str, str] | None = None) -> str:
    """Give the trace header of the call that Lambda has this process answer; elsewhere nothing."""
    source = os.environ if environment is None else environment
    return source.get(_TRACE, "")


def xray_daemon(environment: Mapping[str, str] | None = None) -> tuple[str, int]:
    """Say where spans go by UDP: where Lambda says, in either of X-Ray's two forms, or to this machine."""
    source = os.environ if environment is None else environment
    said = source.get(_DAEMON) or _DAEMON_DEFAULT
    udp = next((each[len("udp:") :] for each in said.split() if each.startswith("udp:")), said)
    host, _, port = udp.rpartition(":")
    if not host or not port.isdecimal():
        raise SettingsError(f"{_DAEMON} has to be an address and a port, such as {_DAEMON_DEFAULT}")
    return host.strip("[]"), int(port)


def _real_aws(source: Mapping[str, str]) -> bool:
    """Say whether any call would reach Amazon: only an emulator's address for all of them rules it out."""
    if not source.get(_ENDPOINT) or source.get(_IGNORED, "").lower() == "true":
        return True
    addresses = [value for name, value in source.items() if name.startswith(_ENDPOINT) and value]
    return any((urlsplit(each).hostname or "").endswith(_AMAZON) for each in addresses)


def _sentence(fault: Mapping[str, object], prefix: str) -> str:
    location = fault["loc"]
    message = str(fault["msg"]).removeprefix("Value error, ")
    if not location or not isinstance(location, tuple):
        return message
    return f"{prefix}{str(location[0]).upper()}: {message}"
