"""The shapes of `auth` in the bodies of endpoints, and how they are read."""

from typing import Annotated

from pydantic import BaseModel, StringConstraints, WithJsonSchema

from chalicelib.domain.auth import (
    AUTHORITIES_MAX,
    CHAIN_MAX,
    KEY_MAX,
    WORD_MAX,
    Auth,
    Basic,
    ClientCertificate,
    CredentialsIn,
    OAuth2,
    secret_fault,
    username_fault,
    word_fault,
)
from chalicelib.domain.certificate import certificates, private_key, written
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import MASK, Secret
from chalicelib.wire.parsing import STRICT, one_of

_PEM_MAX = 65_536
Pem = Annotated[str, StringConstraints(min_length=1, max_length=_PEM_MAX)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=WORD_MAX)]


class BasicBody(BaseModel):
    """A user name and a password."""

    model_config = STRICT

    username: Word
    password: Word


class OAuth2Body(BaseModel):
    """Client credentials, and the URL that gives access tokens for them."""

    model_config = STRICT

    token_url: Annotated[
        str, WithJsonSchema({"type": "string", "examples": ["https://id.example.com/token"]})
    ]
    client_id: Word
    client_secret: Word
    scope: Annotated[str, StringConstraints(max_length=WORD_MAX)] = ""
    audience: Annotated[str, StringConstraints(max_length=WORD_MAX)] = ""
    credentials_in: Annotated[str, one_of(CredentialsIn)] = CredentialsIn.HEADER.value


class ClientCertificateBody(BaseModel):
    """A client certificate in PEM, those that lead to its issuer after it, and its key."""

    model_config = STRICT

    certificate: Pem
    key: Annotated[str, StringConstraints(min_length=1, max_length=KEY_MAX)]


class AuthBody(BaseModel):
    """What an endpoint is authenticated with; it takes the place of all that was given before."""

    model_config = STRICT

    basic: BasicBody | None = None
    oauth2: OAuth2Body | None = None
    client_certificate: ClientCertificateBody | None = None
    trusted_authorities: Pem | None = None


def given(body: AuthBody | None) -> Auth[Secret] | None:
    """Read what an endpoint is to be authenticated with; raises RelayError, which never repeats a secret."""
    if body is None:
        return None
    found = Auth(
        _basic(body.basic) if body.basic else None,
        _certificate(body.client_certificate) if body.client_certificate else None,
        _pem("auth.trusted_authorities", body.trusted_authorities, AUTHORITIES_MAX)
        if body.trusted_authorities
        else "",
        _oauth2(body.oauth2) if body.oauth2 else None,
    )
    if found == Auth():
        raise _invalid("auth", "one of its members, or null for none")
    return found


def _basic(body: BasicBody) -> Basic[Secret]:
    _check("auth.basic.username", username_fault(body.username))
    _check("auth.basic.password", secret_fault(body.password))
    return Basic(body.username, Secret(body.password))


def _oauth2(body: OAuth2Body) -> OAuth2[Secret]:
    words = {"client_id": body.client_id, "scope": body.scope, "audience": body.audience}
    for name, text in words.items():
        _check(f"auth.oauth2.{name}", word_fault(text))
    _check("auth.oauth2.client_secret", secret_fault(body.client_secret))
    if MASK in body.token_url:
        raise _invalid("auth.oauth2.token_url", "the whole URL; what is masked cannot be read back")
    if body.credentials_in not in set(CredentialsIn):
        raise _invalid("auth.oauth2.credentials_in", "one of: " + ", ".join(CredentialsIn))
    secret, in_body = Secret(body.client_secret), body.credentials_in == CredentialsIn.BODY
    return OAuth2(body.token_url, body.client_id, secret, body.scope, body.audience, in_body)


def _certificate(body: ClientCertificateBody) -> ClientCertificate[Secret]:
    chain = _pem("auth.client_certificate.certificate", body.certificate, CHAIN_MAX)
    key = private_key(body.key)
    if key is None:
        raise _invalid("auth.client_certificate.key", "one private key in PEM, without a passphrase")
    return ClientCertificate(chain, Secret(key))


def _pem(field: str, text: str, at_most: int) -> str:
    """Read certificates, and give them as PEM without whatever stood around them."""
    try:
        pem = written(certificates(text))
    except ValueError:
        pem = ""
    if not pem or len(pem) > at_most:
        raise _invalid(field, f"certificates in PEM, at most {at_most} characters of it")
    return pem


def _check(field: str, expected: str | None) -> None:
    if expected is not None:
        raise _invalid(field, expected)


def _invalid(field: str, expected: str) -> RelayError:
    return RelayError(ErrorCode.FIELD_INVALID, f"`{field}` is not valid.", field=field, expected=expected)
