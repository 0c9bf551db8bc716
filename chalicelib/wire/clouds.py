"""What the fields of an API body are where the endpoint is a queue or bus of AWS."""

from collections.abc import Mapping

from chalicelib.domain.cloud.address import SERVICES, in_cloud
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.errors import ErrorCode, RelayError

_NOT_IN_THE_CLOUD = {
    "secret": "no `secret`: Relay assumes the `role`, and keeps no credential of yours",
    "auth": "no `auth`: Relay assumes the `role`",
    "headers": "no custom headers: AWS takes none",
    "signature": "no `signature`: only who may assume the role can send there",
    "signature_key": "no `signature_key`: only who may assume the role can send there",
    "overlap_s": "nothing to rotate: Relay assumes the `role`, and keeps no credential of yours",
}


def check_fields(transport: Transport, given: Mapping[str, object]) -> None:
    """Raise RelayError naming the first given field that is for endpoints of other transports, or no role."""
    if not in_cloud(transport):
        _check_elsewhere(transport, given)
        return
    unfit = next((name for name in given if name in _NOT_IN_THE_CLOUD), None)
    if unfit:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`{unfit}` cannot be given for an {transport.value} endpoint.",
            field=unfit,
            expected=_NOT_IN_THE_CLOUD[unfit],
        )


def _check_elsewhere(transport: Transport, given: Mapping[str, object]) -> None:
    if str(given.get("url", "")).lower().startswith("arn:"):
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"The URL is an ARN, and `transport` is `{transport.value}`.",
            field="transport",
            expected="one of: " + ", ".join(SERVICES),
        )
    if "role" in given:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "`role` can only be given for a queue or bus of AWS.",
            field="role",
            expected="no `role`, or a `transport` among: " + ", ".join(SERVICES),
        )


def no_rotation() -> RelayError:
    """Make the answer to rotating what is not there."""
    return RelayError(
        ErrorCode.FIELD_INVALID,
        "This endpoint has no secret to rotate.",
        field="id",
        expected=_NOT_IN_THE_CLOUD["overlap_s"],
    )
