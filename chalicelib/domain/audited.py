"""What the audit shows of a thing: what an API answer shows of it, and what an owner decides beyond that.

A test holds it to the answers. Secrets, the values of custom headers and the tokens of URLs are in neither.
"""

from dataclasses import asdict
from typing import Any

from chalicelib.domain import pattern
from chalicelib.domain.api_key import ApiKey
from chalicelib.domain.audit import Difference, difference
from chalicelib.domain.auth import Auth, CredentialsIn, OAuth2
from chalicelib.domain.bulk_replay import BulkReplay
from chalicelib.domain.certificate import certificates
from chalicelib.domain.display import displayed_url
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.request import event_time
from chalicelib.domain.secret import MASK
from chalicelib.domain.tenant import Tenant


def endpoint(of: Endpoint) -> dict[str, object]:
    """Show an endpoint; of its secrets, how long each signs."""
    return {
        "url": displayed_url(of.url),
        "transport": of.transport.value,
        "event_types": list(of.event_types),
        "description": of.description,
        "rate_per_second": of.limits.rate_per_second,
        "burst": of.limits.burst,
        "max_concurrency": of.limits.max_concurrency,
        "ordering": of.ordering.value,
        "retry_profile": of.retry_profile.value,
        "signature": of.signature.value,
        "signature_key": of.signature_key.value if of.signed else None,
        "headers": {name: MASK for name, _ in of.headers},
        "auth": _auth(of.auth),
        "filter": pattern.written(of.filter),
        "role": of.role or None,
        "state": of.state.value,
        "state_reason": of.state_reason or None,
        "skipped_before": event_time(of.skip_before_ms) if of.skip_before_ms else None,
        "secrets": [_until(each.expires_at) if of.signed else "in use" for each in of.secrets],
    }


def endpoint_change(old: Endpoint, new: Endpoint) -> Difference:
    """Show what a change of an endpoint changed; what changed in nothing that is shown is named as well."""
    before, after = endpoint(old), endpoint(new)
    found = difference(before, after)
    changed = {
        "url": old.url != new.url,
        "headers": old.headers != new.headers,
        "auth": old.auth != new.auth,
        "secrets": old.secrets != new.secrets,
    }
    names = [name for name, is_changed in changed.items() if is_changed]
    return Difference(
        {**found.before, **{name: before[name] for name in names}},
        {**found.after, **{name: after[name] for name in names}},
    )


def bulk_replay_begun(of: BulkReplay) -> Difference:
    """Show what a bulk replay takes."""
    wanted = of.wanted
    return Difference(
        {},
        {
            "endpoint_id": of.endpoint_id,
            "since": event_time(wanted.since_ms),
            "until": event_time(wanted.until_ms),
            "status": wanted.status.value,
            "event_types": list(wanted.event_types),
            "matched": of.matched,
            "state": of.state.value,
        },
    )


def tenant(of: Tenant) -> dict[str, object]:
    """Show a tenant."""
    return {
        "name": of.name,
        "state": of.state.value,
        "contacts": list(of.contacts),
        "quotas": asdict(of.quotas),
        "sensitive_paths": list(of.sensitive_paths),
    }


def api_key(of: ApiKey) -> dict[str, object]:
    """Show an API key, of which nothing ever changes."""
    return {
        "role": of.role.value,
        "name": of.name,
        "expires_at": event_time(of.expires_ms) if of.expires_ms else None,
    }


def letters_purged(before_ms: int, count: int, *, exact: bool) -> Difference:
    """Show how many dead letters go: those given up on before a moment."""
    return Difference({}, {"before": event_time(before_ms), "dead_letters": count, "counted_exactly": exact})


def _auth(of: Auth[Any] | None) -> dict[str, object] | None:
    if of is None:
        return None
    certificate = of.certificate
    return {
        "basic": {"username": of.basic.username, "password": MASK} if of.basic else None,
        "oauth2": _oauth2(of.oauth2) if of.oauth2 else None,
        "client_certificate": {**_told(certificate.chain)[0], "key": MASK} if certificate else None,
        "trusted_authorities": _told(of.authorities),
    }


def _oauth2(of: OAuth2[Any]) -> dict[str, object]:
    return {
        "token_url": displayed_url(of.token_url),
        "client_id": of.client_id,
        "client_secret": MASK,
        "scope": of.scope,
        "audience": of.audience,
        "credentials_in": (CredentialsIn.BODY if of.in_body else CredentialsIn.HEADER).value,
    }


def _told(pem: str) -> list[dict[str, str]]:
    return [
        {"fingerprint": each.fingerprint, "expires_at": event_time(each.expires_s * 1000)}
        for each in certificates(pem)
    ]


def _until(expires_s: int | None) -> str:
    return "signs" if expires_s is None else f"signs until {event_time(expires_s * 1000)}"
