"""Routes of the audit."""

from chalice.app import Response

from chalicelib import bootstrap
from chalicelib.application.endpoints import not_found
from chalicelib.application.ports import Asking
from chalicelib.domain import audit, ids
from chalicelib.domain.audit import Action
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, parsing
from chalicelib.wire.operations.audit import SUBJECT_MAX

_FILTERS = ("action", "subject", "since", "until", "tenant")


def page(asked: Asked) -> Response:
    """List who changed what of a tenant's, newest first; for admins, as addresses and keys are named."""
    tenant, asking = _tenant(asked), _asking(asked)
    listing = " ".join(["audit", *(asked.query.get(each, "-") for each in _FILTERS)])
    after, limit = asked.page(listing, is_place=lambda place: ids.is_id(place, audit.PREFIX))
    now_ms = bootstrap.clock().now_ms()
    found = bootstrap.auditing().page(tenant, asking, after, limit, now_ms)
    return asked.listed([answers.audited(each) for each in found.items], listing, found.after)


def _tenant(asked: Asked) -> str:
    """Say whose audit is asked for: the operator names a tenant, also one that was purged."""
    named = asked.query.get("tenant", asked.caller.tenant)
    if asked.caller.is_operator:
        if not 0 < len(named) <= SUBJECT_MAX:
            raise _wrong("tenant", "the id of a tenant")
    elif named != asked.caller.tenant:
        raise not_found("tenant", named)
    return named


def _asking(asked: Asked) -> Asking:
    given = asked.query
    since, until = (
        parsing.queried_ms(given[each], each) if each in given else None for each in ("since", "until")
    )
    subject = given.get("subject", "")
    if len(subject) > SUBJECT_MAX:
        raise _wrong("subject", "the id of a thing")
    return Asking(_action(given.get("action")), subject, since or 0, until)


def _action(text: str | None) -> Action | None:
    if text is None:
        return None
    try:
        return Action(text)
    except ValueError:
        raise _wrong("action", "one of: " + ", ".join(Action)) from None


def _wrong(field: str, expected: str) -> RelayError:
    return RelayError(ErrorCode.FIELD_INVALID, f"`{field}` is not valid.", field=field, expected=expected)
