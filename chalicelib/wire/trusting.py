"""The shapes of API bodies that say who may do what: of tenants, keys and steps up."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints, WithJsonSchema

from chalicelib.domain import api_key
from chalicelib.domain import tenant as tenants
from chalicelib.domain.api_key import GIVEN, ApiKey, Role
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.sensitive import PATHS_MAX, valid_paths
from chalicelib.domain.step_up import ElevatedAction
from chalicelib.domain.tenant import QUOTAS_MAX, Quotas, Tenant
from chalicelib.wire.bodies import Choice, Moment
from chalicelib.wire.parsing import STRICT, choice, moment_ms, one_of

_CONTACT = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")
_CODE = r"^[0-9]{3} ?[0-9]{3}$"
OF_OPERATORS = frozenset({"name", "quotas", "contacts"})
OF_ADMINS = frozenset({"contacts", "sensitive_paths"})
"""Which fields of a tenant each may change. Nobody but itself takes a mask off what it calls sensitive."""

TenantName = Annotated[str, StringConstraints(min_length=1, max_length=tenants.NAME_MAX)]
Contact = Annotated[
    str,
    StringConstraints(max_length=tenants.CONTACT_MAX),
    WithJsonSchema({"type": "string", "format": "email", "maxLength": tenants.CONTACT_MAX}),
]
Contacts = Annotated[list[Contact], Field(max_length=tenants.CONTACTS_MAX)]
SensitivePaths = Annotated[list[str], Field(max_length=PATHS_MAX)]
KeyName = Annotated[str, StringConstraints(max_length=api_key.NAME_MAX)]
RoleChoice = Annotated[Choice, one_of(GIVEN)]
ActionChoice = Annotated[Choice, one_of(ElevatedAction)]


class QuotasBody(BaseModel):
    """Some or all quotas; what is left out stays as it is, or is the default."""

    model_config = STRICT

    endpoints: Annotated[int, Field(ge=1, le=QUOTAS_MAX.endpoints)] | None = None
    events_per_second: Annotated[int, Field(ge=1, le=QUOTAS_MAX.events_per_second)] | None = None
    fan_out_per_second: Annotated[int, Field(ge=1, le=QUOTAS_MAX.fan_out_per_second)] | None = None
    requests_per_second: Annotated[int, Field(ge=1, le=QUOTAS_MAX.requests_per_second)] | None = None


class TenantBody(BaseModel):
    """What `POST /v1/tenants` takes."""

    model_config = STRICT

    name: TenantName
    contacts: Contacts = []
    quotas: QuotasBody = QuotasBody()
    sensitive_paths: SensitivePaths = []


class TenantPatch(BaseModel):
    """What `PATCH /v1/tenants/{id}` takes; what is left out stays as it is."""

    model_config = STRICT

    name: TenantName | None = None
    contacts: Contacts | None = None
    quotas: QuotasBody | None = None
    sensitive_paths: SensitivePaths | None = None


class KeyBody(BaseModel):
    """What `POST /v1/keys` takes."""

    model_config = STRICT

    role: RoleChoice
    name: KeyName = ""
    expires_at: Moment | None = None


class StepUpBody(BaseModel):
    """What `POST /v1/step-up` takes; a code is good once, so all that is to be done is named at once."""

    model_config = STRICT

    code: Annotated[str, StringConstraints(pattern=_CODE)]
    actions: Annotated[list[ActionChoice], Field(min_length=1, max_length=len(ElevatedAction))]


def tenant_of(body: TenantBody) -> Tenant:
    """Make the draft of a tenant; its id and time are still to come."""
    return Tenant(
        id="",
        name=body.name,
        contacts=_contacts(body.contacts),
        quotas=_quotas(Quotas(), body.quotas),
        sensitive_paths=valid_paths(body.sensitive_paths),
    )


def patched(old: Tenant, body: TenantPatch, allowed: frozenset[str]) -> Tenant:
    """Lay a patch over a tenant, of which the caller may change these fields; raises RelayError."""
    for name in body.model_fields_set:
        if name not in allowed and getattr(body, name) is not None:
            raise RelayError(
                ErrorCode.FORBIDDEN,
                f"`{name}` is not this key's to change.",
                field=name,
                expected="any of: " + ", ".join(sorted(allowed)),
            )
    return replace(
        old,
        name=old.name if body.name is None else body.name,
        contacts=old.contacts if body.contacts is None else _contacts(body.contacts),
        quotas=old.quotas if body.quotas is None else _quotas(old.quotas, body.quotas),
        sensitive_paths=old.sensitive_paths
        if body.sensitive_paths is None
        else valid_paths(body.sensitive_paths),
    )


def key_of(tenant: str, body: KeyBody) -> ApiKey:
    """Make the draft of a key; its id, hash and time are still to come."""
    role = choice(Role, body.role, "role", GIVEN)
    expires_ms = moment_ms(body.expires_at, "expires_at") if body.expires_at is not None else 0
    return ApiKey(tenant, "", "", role, body.name, expires_ms=expires_ms)


def actions_of(body: StepUpBody) -> tuple[ElevatedAction, ...]:
    """Read which actions an assertion is to be for; each counts once."""
    return tuple(dict.fromkeys(choice(ElevatedAction, each, "actions") for each in body.actions))


def _quotas(old: Quotas, body: QuotasBody) -> Quotas:
    return replace(old, **body.model_dump(exclude_none=True))


def _contacts(given: Sequence[str]) -> tuple[str, ...]:
    for each in given:
        if not _CONTACT.fullmatch(each) or not each.isprintable():
            raise RelayError(
                ErrorCode.FIELD_INVALID,
                "A contact is no e-mail address.",
                field="contacts",
                expected="addresses such as oncall@example.com",
            )
    return tuple(dict.fromkeys(given))
