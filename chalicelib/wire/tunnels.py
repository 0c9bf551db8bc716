"""What the fields of an API body are where the endpoint is a tunnel to a developer's machine."""

from collections.abc import Mapping

from chalicelib.domain import tunnel
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.errors import ErrorCode, RelayError

_NOT_OF_TUNNELS = {"auth": "no `auth`: whoever listens is authenticated by a ticket"}


def check_fields(transport: Transport, given: Mapping[str, object]) -> None:
    """Raise RelayError naming the first given field that a tunnel cannot have, or only a tunnel."""
    tunnels = transport is Transport.TUNNEL
    url = given.get("url")
    if not tunnels:
        if url == tunnel.URL:
            raise RelayError(
                ErrorCode.FIELD_INVALID,
                f"The URL is that of a tunnel, and `transport` is `{transport.value}`.",
                field="transport",
                expected="`tunnel`",
            )
        return
    if url is not None and url != tunnel.URL:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "A tunnel has no address: its listener comes to Relay.",
            field="url",
            expected=f"`{tunnel.URL}`",
        )
    unfit = next((name for name in given if name in _NOT_OF_TUNNELS), None)
    if unfit:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`{unfit}` cannot be given for a tunnel.",
            field=unfit,
            expected=_NOT_OF_TUNNELS[unfit],
        )
