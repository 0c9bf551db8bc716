"""OAuth2 client credentials (RFC 6749 §4.4): the request for a token, and what an answer to it means.

Nothing of an answer is told but a status and the error words that the RFC lists: it may repeat the secret.
"""

import base64
import json
import re
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote_plus, urlencode

from chalicelib.domain.auth import AUTHORIZATION, Auth, OAuth2
from chalicelib.domain.request import VERSION, Request
from chalicelib.domain.secret import Secret

ANSWER_MAX = 65_536
"""Bytes: a longer answer holds no token."""
LIFE_S, LIFE_MAX_S = 300, 86_400
"""How long a token is taken to be good whose answer does not say, and how long any is kept at most."""
_EARLY_S, _EARLY_PART = 60, 10
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{1,8192}=*", re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)
_ERRORS = frozenset(
    (
        "invalid_request invalid_client invalid_grant unauthorized_client unsupported_grant_type"
        " invalid_scope server_error temporarily_unavailable"
    ).split()
)


class NoToken(Exception):  # noqa: N818 - a recorded outcome of the endpoint, not our error
    """An answer that holds no token; its text is in plain words for the endpoint's owner."""


@dataclass(frozen=True, slots=True)
class Token:
    """An access token, and the Unix ms until which it is used: shortly before it expires."""

    value: Secret
    until_ms: int


def asking(of: OAuth2[Secret], authorities: str) -> Request:
    """Build the request for a token; its endpoint's authorities are trusted there too."""
    parameters = {"grant_type": "client_credentials", "scope": of.scope, "audience": of.audience}
    form = {name: value for name, value in parameters.items() if value}
    if of.in_body:
        form |= {"client_id": of.client_id, "client_secret": of.client_secret.reveal()}
    body = urlencode(form).encode("ascii")
    headers = (
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Length", str(len(body))),
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("User-Agent", f"Relay/{VERSION}"),
    )
    custom = () if of.in_body else ((AUTHORIZATION, _credentials(of)),)
    return Request(of.token_url, headers, body, custom, auth=Auth(authorities=authorities))


def token_of(status: int, body: bytes, now_ms: int) -> Token:
    """Read the answer to the request for a token; raises NoToken."""
    answer = _object(body)
    if status != HTTPStatus.OK:
        error = answer.get("error")
        known = f" ({error})" if isinstance(error, str) and error in _ERRORS else ""
        raise NoToken(f"the token URL answered {status}{known}")
    value, kind = answer.get("access_token"), answer.get("token_type", "bearer")
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise NoToken("the token URL's answer holds no access token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise NoToken("the token URL's answer holds a token of another type than bearer")
    life_s = _life_s(answer.get("expires_in"))
    return Token(Secret(value), now_ms + (life_s - min(_EARLY_S, life_s // _EARLY_PART)) * 1000)


def bearing(request: Request, token: Token) -> Request:
    """Give a request with a token."""
    own = (AUTHORIZATION, Secret(f"Bearer {token.value.reveal()}"))
    return replace(request, custom=(*request.custom, own))


def _credentials(of: OAuth2[Secret]) -> Secret:
    pair = f"{quote_plus(of.client_id)}:{quote_plus(of.client_secret.reveal())}"
    return Secret("Basic " + base64.b64encode(pair.encode()).decode())


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _life_s(given: object) -> int:
    """Read `expires_in`; some write the number as a text."""
    if isinstance(given, bool) or not isinstance(given, int | str) or not _SECONDS.fullmatch(str(given)):
        return LIFE_S
    return min(int(given), LIFE_MAX_S)
