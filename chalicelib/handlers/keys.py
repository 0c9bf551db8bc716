"""Routes of API keys."""

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.domain import ids
from chalicelib.domain.api_key import DEVELOPMENT_ID
from chalicelib.domain.step_up import ElevatedAction
from chalicelib.handlers import http
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, parsing, trusting


def create(asked: Asked) -> Response:
    """Make a key; the answer shows it, this once."""
    draft = trusting.key_of(asked.caller.tenant, parsing.parse(trusting.KeyBody, asked.body))
    asked.elevated(ElevatedAction.KEY_CREATION)
    key, text = bootstrap.manage_keys().create(draft, asked.actor)
    return http.reply(answers.created_key(key, text), 201)


def page(asked: Asked) -> Response:
    """List keys, newest first; for admins, as they tell who uses Relay and when."""
    after, limit = asked.page("keys", is_place=_is_key)
    found = bootstrap.manage_keys().page(asked.caller.tenant, after, limit)
    return asked.listed([answers.key(each) for each in found.items], "keys", found.after)


def revoke(asked: Asked, key_id: str) -> Response:
    """Revoke a key, also the one that asks; it has no version, as nothing of it changes."""
    bootstrap.manage_keys().revoke(asked.caller.tenant, key_id, asked.actor)
    return http.exact(b"", http.JSON, 204)


def _is_key(place: str) -> bool:
    return ids.is_id(place, "key") or place == DEVELOPMENT_ID
