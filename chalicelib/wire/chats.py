"""What the fields of an API body are where the endpoint is a chat: which it must have and may not have."""

from collections.abc import Mapping

from chalicelib.domain.chat import platform
from chalicelib.domain.chat.platform import PLATFORMS, is_chat
from chalicelib.domain.endpoint import Endpoint, Transport
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret

_NOT_OF_CHATS = {
    "auth": "no `auth`: the credential is all that the platform asks for",
    "headers": "no custom headers: the platform reads none",
    "signature": "no `signature`: messages to a chat are not signed",
    "signature_key": "no `signature_key`: messages to a chat are not signed",
    "overlap_s": "no overlap: the platform takes one credential at a time",
}


def check_fields(transport: Transport, given: Mapping[str, object]) -> None:
    """Raise RelayError naming the first given field that is for endpoints of other transports."""
    chat = is_chat(transport)
    scheme = str(given.get("url", "")).partition("://")[0].lower()
    if not chat and scheme in PLATFORMS:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"The URL is the address of a chat, and `transport` is `{transport.value}`.",
            field="transport",
            expected=f"`{scheme}`",
        )
    unfit = [name for name in given if name in (_NOT_OF_CHATS if chat else ("secret",))]
    if unfit:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`{unfit[0]}` cannot be given for {_article(transport)} endpoint.",
            field=unfit[0],
            expected=_NOT_OF_CHATS[unfit[0]]
            if chat
            else "no `secret`: Relay makes the signing secret itself",
        )


def credential(transport: Transport, given: str | None) -> Secret:
    """Take the credential of a chat; raises RelayError, which never repeats it."""
    if given is None:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`secret` is missing: {_article(transport)} endpoint needs its platform's credential.",
            field="secret",
            expected=PLATFORMS[transport].credential_is,
        )
    return platform.credential(transport, given)


def moved_credential(old: Endpoint, given: Mapping[str, object]) -> Secret | None:
    """Take the credential that a change of a chat's address needs; None where nothing moves.

    Another address never takes over the credential of the one before; raises RelayError.
    """
    if not is_chat(old.transport):
        return None
    secret = given.get("secret")
    if "url" in given and platform.address(old.transport, str(given["url"])) != old.url:
        return credential(old.transport, None if secret is None else str(secret))
    if secret is not None:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "A credential alone is changed by its own route.",
            field="secret",
            expected="`POST …/rotate-secret` with it, or a new `url` beside it",
        )
    return None


def _article(transport: Transport) -> str:
    return f"an {transport.value}" if transport is Transport.HTTP else f"a {transport.value}"
