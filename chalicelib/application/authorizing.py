"""What endpoints are authenticated with: checked and sealed when an owner gives it, opened for a request."""

from dataclasses import dataclass, replace
from functools import partial

from chalicelib.application.signing_keys import SigningKeys
from chalicelib.domain.auth import AUTHORIZATION, Auth
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret


@dataclass(frozen=True, slots=True)
class Authorize:
    """Gives endpoints what they are authenticated with."""

    keys: SigningKeys

    def endpoint(self, of: Endpoint, auth: Auth[Secret] | None) -> Endpoint:
        """Give an endpoint with this, sealed, in place of what it had; raises RelayError."""
        if auth is None:
            return replace(of, auth=None)
        return replace(of, auth=auth.turned(partial(self.keys.sealed, of.tenant)))


def opened(keys: SigningKeys, of: Endpoint) -> Auth[Secret] | None:
    """Open what an endpoint is authenticated with."""
    return of.auth.turned(partial(keys.credential, of.tenant)) if of.auth else None


def check_auth(of: Endpoint) -> None:
    """Raise RelayError when an endpoint is authenticated in two ways that exclude each other."""
    if of.auth is None:
        return
    named = [name for name, _ in of.headers if name.lower() == AUTHORIZATION.lower()]
    if named and of.auth.by_header:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "`auth` and a custom header both set `Authorization`.",
            field="headers",
            expected="no `Authorization` among the custom headers, or no such `auth`",
        )
