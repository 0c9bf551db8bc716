"""Routes of endpoints: create, read, change, delete, and their deliveries."""

import re

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.domain.delivery import is_attempt_key
from chalicelib.domain.endpoint import Backlog, Endpoint
from chalicelib.domain.step_up import ElevatedAction
from chalicelib.handlers import http
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, auths, bodies, meaning, parsing

_NO_HOUR_YET = 9_999_999
_STATS_BACKLOG = 1_000
_VERSION = re.compile(r'"([0-9]{1,15})"', re.ASCII)


def create(asked: Asked) -> Response:
    """Register an endpoint; the answer shows its secret, this once."""
    given = parsing.parse(bodies.EndpointBody, asked.body)
    draft, key = meaning.endpoint_of(asked.caller.tenant, given), meaning.new_key(given)
    at_most = asked.caller.account.quotas.endpoints
    draft = bootstrap.authorize().endpoint(draft, auths.given(given.auth))
    made = bootstrap.manage_endpoints().register(draft, asked.actor, key, at_most)
    body = answers.created_endpoint(made.endpoint, made.key, made.beside)
    return http.reply(
        body, 201, {**http.etag(made.endpoint.version), "Location": f"/v1/endpoints/{made.endpoint.id}"}
    )


def page(asked: Asked) -> Response:
    """List endpoints, newest first."""
    after, limit = asked.page("endpoints", "ep")
    found = bootstrap.manage_endpoints().page(asked.caller.tenant, after, limit)
    return asked.listed([answers.endpoint(each) for each in found.items], "endpoints", found.after)


def get(asked: Asked, endpoint_id: str) -> Response:
    """Show one endpoint; its ETag is what a change must name."""
    found = bootstrap.manage_endpoints().get(asked.caller.tenant, endpoint_id)
    return http.reply(answers.endpoint(found), 200, http.etag(found.version))


def patch(asked: Asked, endpoint_id: str) -> Response:
    """Change an endpoint that is still as it was read."""
    manage = bootstrap.manage_endpoints()
    old = _as_read(asked, manage.get_to_change(asked.caller.tenant, endpoint_id))
    given = parsing.parse(bodies.EndpointPatch, asked.body)
    new = manage.checked(meaning.patched(old, given))
    credential = meaning.moved_credential(old, given)
    if (new.url, new.role) != (old.url, old.role):
        asked.elevated(ElevatedAction.URL_CHANGE)
    if credential:
        new = manage.entrusted(new, credential)
    if "auth" in given.model_fields_set:
        new = bootstrap.authorize().endpoint(new, auths.given(given.auth))
    changed = manage.change(old, new, asked.actor)
    return http.reply(answers.endpoint(changed), 200, http.etag(changed.version))


def delete(asked: Asked, endpoint_id: str) -> Response:
    """Delete an endpoint that is still as it was read."""
    manage = bootstrap.manage_endpoints()
    manage.delete(_as_read(asked, manage.get_to_change(asked.caller.tenant, endpoint_id)), asked.actor)
    return http.exact(b"", http.JSON, 204)


def disable(asked: Asked, endpoint_id: str) -> Response:
    """Disable an endpoint; one that is disabled stays as it is."""
    asked.has_nothing_to_say()
    found = bootstrap.manage_endpoints().disable(asked.caller.tenant, endpoint_id, asked.actor)
    return http.reply(answers.endpoint(found), 200, http.etag(found.version))


def enable(asked: Asked, endpoint_id: str) -> Response:
    """Enable an endpoint, as its owner chooses what becomes of what waited; to send it is elevated."""
    manage = bootstrap.manage_endpoints()
    manage.get_to_change(asked.caller.tenant, endpoint_id)
    resumption = meaning.resumption(parsing.parse(bodies.EnableBody, asked.body))
    if resumption[0] is not Backlog.SKIP:
        asked.elevated(ElevatedAction.ENABLE_DELIVER)
    found = manage.enable(asked.caller.tenant, endpoint_id, resumption, asked.actor)
    return http.reply(answers.endpoint(found), 200, http.etag(found.version))


def rotate_secret(asked: Asked, endpoint_id: str) -> Response:
    """Give an endpoint a new signing key, the one before signing a while longer; a chat what it is given."""
    of = (asked.caller.tenant, endpoint_id)
    old = bootstrap.manage_endpoints().get_to_change(*of)
    asked.elevated(ElevatedAction.SECRET_ROTATION)
    body, version = parsing.parse(bodies.RotateBody, asked.body or b"{}"), _version_read(asked)
    rotate, credential = bootstrap.rotate_keys(), meaning.replacement(old.transport, body)
    if credential:
        made = rotate.replace(of, credential, version, asked.actor)
    else:
        wanted = meaning.rotation(body, bootstrap.settings().rotation_overlap_secs, version)
        made = rotate.rotate(of, wanted, asked.actor)
    return http.reply(answers.rotated(made), 200, http.etag(made.endpoint.version))


def end_overlap(asked: Asked, endpoint_id: str) -> Response:
    """Let the signing key before the newest stop signing, at once or within a time."""
    of = (asked.caller.tenant, endpoint_id)
    within_s = parsing.parse(bodies.EndOverlapBody, asked.body or b"{}").within_s
    found = bootstrap.rotate_keys().end_overlap(of, within_s, _version_read(asked), asked.actor)
    return http.reply(answers.endpoint(found), 200, http.etag(found.version))


def tunnel_token(asked: Asked, endpoint_id: str) -> Response:
    """Let a machine listen at a tunnel: 201 with a token for its connection, shown this once."""
    asked.has_nothing_to_say()
    ticket, text = bootstrap.listen_at().run(asked.caller.tenant, endpoint_id, asked.actor)
    return http.reply(answers.tunnel_token(ticket, text, bootstrap.settings().node_url), 201)


def public_keys(asked: Asked, endpoint_id: str) -> Response:
    """Show the public keys that verify what an endpoint is sent now."""
    found = bootstrap.manage_endpoints().get(asked.caller.tenant, endpoint_id)
    return http.reply(answers.public_keys(found, bootstrap.clock().now_ms() // 1000))


def test(asked: Asked, endpoint_id: str) -> Response:
    """Send a sample event to an endpoint: 200 with its attempt, or 202 and why it still waits."""
    asked.has_nothing_to_say()
    bootstrap.admit_requests().admit_test(asked.caller)
    tenant = asked.caller.tenant
    (found,) = bootstrap.showing().deliveries(tenant, [bootstrap.try_endpoint().run(tenant, endpoint_id)])
    status = 202 if found.waits else 200
    return http.reply(answers.tested(found), status, {"Location": f"/v1/deliveries/{found.delivery_id}"})


def backlog(asked: Asked, endpoint_id: str) -> Response:
    """Show how much waits for an endpoint, since when, and how long it takes to be sent."""
    found = bootstrap.measure_backlog().of(asked.caller.tenant, endpoint_id)
    return http.reply(answers.backlog(endpoint_id, found))


def deliveries(asked: Asked, endpoint_id: str) -> Response:
    """List an endpoint's deliveries, newest event first."""
    status = asked.status()
    listing, extent = asked.extent(f"deliveries of {endpoint_id} {status or 'all'}")
    found = bootstrap.questions().deliveries(asked.caller.tenant, endpoint_id, extent, status)
    shown = bootstrap.showing().deliveries(asked.caller.tenant, found.items)
    return asked.listed([answers.delivery(each) for each in shown], listing, found.after)


def attempts(asked: Asked, endpoint_id: str) -> Response:
    """List an endpoint's attempts, newest event first."""
    listing, extent = asked.extent(f"attempts of {endpoint_id}", is_place=is_attempt_key)
    found = bootstrap.questions().attempts(asked.caller.tenant, endpoint_id, extent)
    shown = bootstrap.showing().attempts(asked.caller.tenant, found.items)
    return asked.listed([answers.listed_attempt(each) for each in shown], listing, found.after)


def dead_letters(asked: Asked, endpoint_id: str) -> Response:
    """List an endpoint's dead letters, newest event first."""
    listing, extent = asked.extent(f"dead letters of {endpoint_id}")
    found = bootstrap.questions().dead_letters(asked.caller.tenant, endpoint_id, extent)
    return asked.listed([answers.dead_letter(each) for each in found.items], listing, found.after)


def health(asked: Asked, endpoint_id: str) -> Response:
    """Show how an endpoint does: its breaker, whether and why it is held, its last holds."""
    endpoint, found = bootstrap.questions().health(asked.caller.tenant, endpoint_id)
    return http.reply(answers.health(endpoint, found, bootstrap.clock().now_us()))


def stats(asked: Asked, endpoint_id: str) -> Response:
    """List what an endpoint's hours came to, newest first."""
    listing = f"hours of {endpoint_id}"
    after, limit = asked.page(listing, is_place=_is_hour)
    before = int(after) if after else _NO_HOUR_YET
    found = bootstrap.questions().hours(asked.caller.tenant, endpoint_id, before, limit)
    measure = bootstrap.measure_backlog()
    waits = None if after else measure.of(asked.caller.tenant, endpoint_id, _STATS_BACKLOG)
    return http.reply(answers.stats(endpoint_id, found.items, asked.cursor(listing, found.after), waits))


def _is_hour(place: str) -> bool:
    return place.isascii() and place.isdigit() and 0 < int(place[:8]) < _NO_HOUR_YET


def _as_read(asked: Asked, endpoint: Endpoint) -> Endpoint:
    asked.as_read(endpoint.version, "endpoint")
    return endpoint


def _version_read(asked: Asked) -> int | None:
    """Read the version that a change is to be of, if that was said; what is none fits no endpoint."""
    given = asked.headers.get("if-match")
    if given is None:
        return None
    version = _VERSION.fullmatch(given.strip())
    return int(version[1]) if version else -1
