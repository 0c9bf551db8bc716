"""Routes of tenants: the operator's, and what a tenant sees and sets of itself."""

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.application.endpoints import not_found
from chalicelib.application.tenants import Opened
from chalicelib.domain import ids
from chalicelib.domain.tenant import DEFAULT_TENANT, Tenant
from chalicelib.handlers import http
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, parsing, trusting


def create(asked: Asked) -> Response:
    """Open a tenant; the answer shows its first key and its second factor, this once."""
    draft = trusting.tenant_of(parsing.parse(trusting.TenantBody, asked.body))
    made = bootstrap.manage_tenants().open(draft, asked.actor)
    return http.reply(
        _opened(made), 201, {**http.etag(made.tenant.version), "Location": f"/v1/tenants/{made.tenant.id}"}
    )


def recover(asked: Asked, tenant_id: str) -> Response:
    """Give a tenant that has lost them a new key and a new second factor, shown this once."""
    asked.has_nothing_to_say()
    made = bootstrap.manage_tenants().recover(of(asked, tenant_id).id, asked.actor)
    return http.reply(_opened(made), 200, http.etag(made.tenant.version))


def page(asked: Asked) -> Response:
    """List tenants, newest first; a tenant's key finds its own."""
    after, limit = asked.page("tenants", "tn")
    if not asked.caller.is_operator:
        return asked.listed([answers.tenant(of(asked, asked.caller.tenant))], "tenants", "")
    found = bootstrap.manage_tenants().page(after, limit)
    return asked.listed([answers.tenant(each) for each in found.items], "tenants", found.after)


def get(asked: Asked, tenant_id: str) -> Response:
    """Show a tenant; its ETag is what a change must name."""
    found = of(asked, tenant_id)
    return http.reply(answers.tenant(found), 200, http.etag(found.version))


def patch(asked: Asked, tenant_id: str) -> Response:
    """Change a tenant that is still as it was read, as far as the caller may."""
    old = of(asked, tenant_id)
    asked.as_read(old.version, "tenant")
    allowed = trusting.OF_OPERATORS if asked.caller.is_operator else trusting.OF_ADMINS
    new = trusting.patched(old, parsing.parse(trusting.TenantPatch, asked.body), allowed)
    changed = bootstrap.manage_tenants().change(old, new, asked.actor)
    return http.reply(answers.tenant(changed), 200, http.etag(changed.version))


def _opened(made: Opened) -> answers.CreatedTenantAnswer:
    key = answers.created_key(made.key, made.key_text)
    return answers.created_tenant(made.tenant, key, made.totp, made.totp_uri)


def of(asked: Asked, tenant_id: str) -> Tenant:
    """Read a tenant that the caller may see: the operator any, others their own."""
    named = ids.is_id(tenant_id, "tn") or tenant_id == DEFAULT_TENANT
    if tenant_id != asked.caller.tenant and not (asked.caller.is_operator and named):
        raise not_found("tenant", tenant_id)
    return bootstrap.manage_tenants().get(tenant_id)
