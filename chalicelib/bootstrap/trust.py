"""Who asks: keys, second factors and tenants."""

from functools import cache
from typing import TYPE_CHECKING

from chalicelib import bootstrap
from chalicelib import settings as configuration

if TYPE_CHECKING:
    from chalicelib.adapters.totp import PyotpCodes
    from chalicelib.application.api_keys import ManageKeys
    from chalicelib.application.authenticate import Authenticate, KnownKeys
    from chalicelib.application.step_up import StepUp
    from chalicelib.application.tenants import ManageTenants
    from chalicelib.domain.api_key import ApiKey
    from chalicelib.domain.tenant import Tenant


@cache
def authenticate() -> "Authenticate":
    """Give the use case that says who asks."""
    from chalicelib.application.authenticate import Authenticate

    of = bootstrap.settings()
    return Authenticate(
        bootstrap.api_keys(),
        bootstrap.known_keys(),
        bootstrap.clock(),
        of.allow_keyless,
        of.operator_key_sha256,
    )


@cache
def known_keys() -> "KnownKeys":
    """Give what this process remembers of keys."""
    from chalicelib.application.authenticate import KnownKeys

    return KnownKeys(bootstrap.settings().key_cache_secs * 1000)


@cache
def manage_keys() -> "ManageKeys":
    """Give the use case behind the routes of keys."""
    from chalicelib.application.api_keys import ManageKeys

    return ManageKeys(bootstrap.api_keys(), bootstrap.known_keys(), bootstrap.clock(), bootstrap.dice())


@cache
def codes() -> "PyotpCodes":
    """Give what knows one-time codes."""
    from chalicelib.adapters.totp import PyotpCodes

    return PyotpCodes()


@cache
def step_up() -> "StepUp":
    """Give the use case that stands before elevated actions."""
    from chalicelib.adapters.dynamodb.trusting import DynamoSecondFactors
    from chalicelib.application.step_up import StepUp

    return StepUp(
        DynamoSecondFactors(bootstrap.tables()),
        bootstrap.sealer(),
        bootstrap.codes(),
        bootstrap.clock(),
        bootstrap.dice(),
    )


@cache
def manage_tenants() -> "ManageTenants":
    """Give the use case behind the routes of tenants."""
    from chalicelib.application.tenants import ManageTenants

    return ManageTenants(
        bootstrap.tenants(), bootstrap.sealer(), bootstrap.codes(), bootstrap.clock(), bootstrap.dice()
    )


def seed(tenant: "Tenant", key: "ApiKey") -> None:
    """Write a tenant with a known second factor, unless it is there, and a key; for emulators alone."""
    from chalicelib.domain.secret import Secret
    from chalicelib.domain.step_up import DEVELOPMENT_SECRET

    if bootstrap.settings().real_aws:
        raise configuration.SettingsError("a development key is for emulators (AWS_ENDPOINT_URL)")
    bootstrap.manage_tenants().seed(tenant, key, Secret(DEVELOPMENT_SECRET))
    bootstrap.api_keys().put(key)


def seed_development() -> None:
    """Write the default tenant with its fixed key and second factor; only an emulator gets one."""
    from chalicelib.domain.api_key import development_key
    from chalicelib.domain.tenant import development_tenant

    bootstrap.seed(development_tenant(bootstrap.clock().now_ms()), development_key())
