"""Tenants, keys and assertions as the API shows them; what is secret is shown once, when it is made."""

from typing_extensions import TypedDict

from chalicelib.domain.api_key import ApiKey, Role
from chalicelib.domain.request import event_time
from chalicelib.domain.secret import Secret
from chalicelib.domain.step_up import Assertion, ElevatedAction
from chalicelib.domain.tenant import Tenant, TenantState
from chalicelib.wire.answers.plain import Time, time_or_none


class QuotasAnswer(TypedDict):
    """What a tenant may have and do."""

    endpoints: int
    events_per_second: int
    fan_out_per_second: int
    requests_per_second: int


class TenantAnswer(TypedDict):
    """A tenant; its ETag is what a change must name."""

    id: str
    name: str
    state: TenantState
    contacts: list[str]
    quotas: QuotasAnswer
    sensitive_paths: list[str]
    created_at: Time
    version: int


class KeyAnswer(TypedDict):
    """An API key, by which the key itself cannot be made out; `last_used_at` may be some minutes late."""

    id: str
    role: Role
    name: str
    created_at: Time
    expires_at: Time | None
    last_used_at: Time | None


class CreatedKeyAnswer(KeyAnswer):
    """A new API key with itself, this once."""

    key: str


class SecondFactorAnswer(TypedDict):
    """A second factor as an authenticator takes it, this once: by hand, or as a QR code of the URI."""

    secret: str
    otpauth_uri: str


class CreatedTenantAnswer(TenantAnswer):
    """A new tenant with its first admin's key and its second factor, this once."""

    admin_key: CreatedKeyAnswer
    second_factor: SecondFactorAnswer


class StepUpAnswer(TypedDict):
    """An assertion, to be sent as `Relay-Step-Up` with the actions it is for."""

    assertion: str
    actions: list[ElevatedAction]
    expires_at: Time


def tenant(of: Tenant) -> TenantAnswer:
    """Show a tenant."""
    quotas = of.quotas
    return {
        "id": of.id,
        "name": of.name,
        "state": of.state,
        "contacts": list(of.contacts),
        "quotas": {
            "endpoints": quotas.endpoints,
            "events_per_second": quotas.events_per_second,
            "fan_out_per_second": quotas.fan_out_per_second,
            "requests_per_second": quotas.requests_per_second,
        },
        "sensitive_paths": list(of.sensitive_paths),
        "created_at": event_time(of.created_ms),
        "version": of.version,
    }


def key(of: ApiKey) -> KeyAnswer:
    """Show an API key; its hash neither."""
    return {
        "id": of.id,
        "role": of.role,
        "name": of.name,
        "created_at": event_time(of.created_ms),
        "expires_at": time_or_none(of.expires_ms),
        "last_used_at": time_or_none(of.used_ms),
    }


def created_key(of: ApiKey, text: Secret) -> CreatedKeyAnswer:
    """Show a new API key with itself, this once."""
    return {**key(of), "key": text.reveal()}


def created_tenant(of: Tenant, admin_key: CreatedKeyAnswer, totp: Secret, uri: Secret) -> CreatedTenantAnswer:
    """Show a new tenant with what opens it, this once."""
    factor: SecondFactorAnswer = {"secret": totp.reveal(), "otpauth_uri": uri.reveal()}
    return {**tenant(of), "admin_key": admin_key, "second_factor": factor}


def stepped_up(of: Assertion, text: Secret) -> StepUpAnswer:
    """Show an assertion, this once."""
    return {
        "assertion": text.reveal(),
        "actions": list(of.actions),
        "expires_at": event_time(of.expires_s * 1000),
    }
