"""What endpoints are authenticated with: checked and sealed when an owner gives it, opened for a request."""

from dataclasses import dataclass, replace
from functools import partial

from chalicelib.application.ports import Certificates, Clock
from chalicelib.application.signing_keys import SigningKeys
from chalicelib.domain.auth import AUTHORIZATION, Auth, ClientCertificate, OAuth2
from chalicelib.domain.certificate import certificates
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret
from chalicelib.domain.target import Policy, parse_target


@dataclass(frozen=True, slots=True)
class Authorize:
    """Gives endpoints what they are authenticated with."""

    keys: SigningKeys
    certificates: Certificates
    clock: Clock
    policy: Policy

    def endpoint(self, of: Endpoint, auth: Auth[Secret] | None) -> Endpoint:
        """Give an endpoint with this, sealed, in place of what it had; raises RelayError."""
        if auth is None:
            return replace(of, auth=None)
        if auth.certificate:
            self._check_certificate(auth.certificate)
        if auth.authorities:
            self._check_authorities(auth.authorities)
        if auth.oauth2:
            auth = replace(auth, oauth2=self._checked(auth.oauth2))
        return replace(of, auth=auth.turned(partial(self.keys.sealed, of.tenant)))

    def _checked(self, of: OAuth2[Secret]) -> OAuth2[Secret]:
        """Give it with its URL as it is kept, which the policy of every URL is for."""
        try:
            return replace(of, token_url=parse_target(of.token_url, self.policy).url)
        except RelayError as error:
            field = "auth.oauth2.token_url"
            raise RelayError(error.code, error.detail, field=field, expected=error.expected) from error

    def _check_certificate(self, of: ClientCertificate[Secret]) -> None:
        expected = self.certificates.certificate_fault(of)
        if expected is not None:
            raise _invalid("auth.client_certificate", expected)
        if certificates(of.chain)[0].expires_s * 1000 <= self.clock.now_ms():
            raise _invalid("auth.client_certificate.certificate", "a certificate that has not expired")

    def _check_authorities(self, pem: str) -> None:
        expected = self.certificates.authorities_fault(pem)
        if expected is not None:
            raise _invalid("auth.trusted_authorities", expected)


def opened(keys: SigningKeys, of: Endpoint) -> Auth[Secret] | None:
    """Open what an endpoint is authenticated with."""
    return of.auth.turned(partial(keys.credential, of.tenant)) if of.auth else None


def check_auth(of: Endpoint) -> None:
    """Raise RelayError when an endpoint cannot be authenticated with what it has, as its other fields are."""
    if of.auth is None:
        return
    named = [name for name, _ in of.headers if name.lower() == AUTHORIZATION.lower()]
    if of.auth.basic and of.auth.oauth2:
        raise _invalid("auth", "either `basic` or `oauth2`: there is one header for both")
    if named and of.auth.by_header:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "`auth` and a custom header both set `Authorization`.",
            field="headers",
            expected="no `Authorization` among the custom headers, or no such `auth`",
        )
    if of.auth.by_tls and not of.url.lower().startswith("https:"):
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "Certificates mean nothing without TLS.",
            field="auth",
            expected="a `url` with https, or `auth` without certificates",
        )


def _invalid(field: str, expected: str) -> RelayError:
    return RelayError(ErrorCode.FIELD_INVALID, f"`{field}` cannot be used.", field=field, expected=expected)
