"""The operations of tenants, keys and steps up."""

from chalicelib.domain.api_key import Role
from chalicelib.domain.errors import ErrorCode
from chalicelib.wire import answers, bodies, trusting
from chalicelib.wire.operations.operation import (
    ADMINS_ONLY,
    ETAG,
    IF_MATCH,
    LOCATION,
    OPERATOR_ONLY,
    PAGED,
    STEP_UP,
    Answer,
    ListOf,
    Operation,
)

_SHOWN = {200: Answer("The tenant.", answers.TenantAnswer, (ETAG,))}

TRUST = (
    Operation(
        method="POST",
        path="/v1/tenants",
        id="create_tenant",
        says="Open a tenant; the answer shows its first admin's key and its second factor, this once.",
        roles=OPERATOR_ONLY,
        body=trusting.TenantBody,
        answers={201: Answer("The tenant.", answers.CreatedTenantAnswer, (ETAG, LOCATION))},
    ),
    Operation(
        method="GET",
        path="/v1/tenants",
        id="list_tenants",
        says="List tenants, newest first; a tenant's key finds its own.",
        roles=frozenset({Role.OPERATOR, Role.ADMIN, Role.VIEWER}),
        query=PAGED,
        answers={200: Answer("A page of tenants.", ListOf(answers.TenantAnswer))},
    ),
    Operation(
        method="GET",
        path="/v1/tenants/{tenant_id}",
        id="get_tenant",
        says="Show a tenant.",
        roles=frozenset({Role.OPERATOR, Role.ADMIN, Role.VIEWER}),
        answers=_SHOWN,
    ),
    Operation(
        method="PATCH",
        path="/v1/tenants/{tenant_id}",
        id="patch_tenant",
        says="Change a tenant that is still as it was read: its admins `contacts` and `sensitive_paths`,"
        " the operator `name`, `quotas` and `contacts`.",
        roles=frozenset({Role.OPERATOR, Role.ADMIN}),
        body=trusting.TenantPatch,
        headers=(IF_MATCH,),
        answers=_SHOWN,
    ),
    Operation(
        method="DELETE",
        path="/v1/tenants/{tenant_id}",
        id="purge_tenant",
        says="Remove a tenant that is still as it was read, with all that is its own, for good; from now on"
        " nothing of it can be changed. Its admins need a second factor.",
        roles=frozenset({Role.OPERATOR, Role.ADMIN}),
        headers=(IF_MATCH, STEP_UP),
        answers={202: Answer("It is being removed.", answers.TenantAnswer)},
    ),
    Operation(
        method="POST",
        path="/v1/tenants/{tenant_id}/recover",
        id="recover_tenant",
        says="Give a tenant that has lost them a new admin's key and second factor; the old factor is void.",
        roles=OPERATOR_ONLY,
        body=bodies.EmptyBody,
        body_optional=True,
        answers={200: Answer("The tenant, with what opens it.", answers.CreatedTenantAnswer, (ETAG,))},
    ),
    Operation(
        method="POST",
        path="/v1/keys",
        id="create_key",
        says="Make an API key; the answer shows it, this once.",
        roles=ADMINS_ONLY,
        body=trusting.KeyBody,
        headers=(STEP_UP,),
        answers={201: Answer("The key.", answers.CreatedKeyAnswer)},
    ),
    Operation(
        method="GET",
        path="/v1/keys",
        id="list_keys",
        says="List API keys, newest first, with when each was last used.",
        roles=ADMINS_ONLY,
        query=PAGED,
        answers={200: Answer("A page of keys.", ListOf(answers.KeyAnswer))},
    ),
    Operation(
        method="DELETE",
        path="/v1/keys/{key_id}",
        id="revoke_key",
        says="Revoke an API key; within a minute it is refused everywhere.",
        roles=ADMINS_ONLY,
        answers={204: Answer("It is revoked.")},
        errors=frozenset({ErrorCode.LAST_ADMIN_KEY}),
    ),
    Operation(
        method="POST",
        path="/v1/step-up",
        id="step_up",
        says="Show the second factor, for an assertion that is good for five minutes, this key and the"
        " actions it names.",
        roles=ADMINS_ONLY,
        body=trusting.StepUpBody,
        answers={200: Answer("The assertion.", answers.StepUpAnswer)},
        errors=frozenset({ErrorCode.STEP_UP_CODE_WRONG, ErrorCode.STEP_UP_LOCKED}),
    ),
)
