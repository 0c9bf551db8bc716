"""What functions called by plain messages share: each message worked off by itself, and what failed told."""

from collections.abc import Callable, Mapping
from typing import Any

from chalicelib import bootstrap
from chalicelib.wire.bell import NotABellError

Named = tuple[str, str] | tuple[str, str, int]


def work_off(
    event: dict[str, Any],
    what: str,
    read: Callable[[str], Named],
    work: Callable[..., Mapping[str, Any] | None],
) -> dict[str, Any]:
    """Work off what each message names; those that failed are named in the answer.

    A message that nobody of Relay wrote is logged and let go: it can never become one. What `work` tells of
    itself is logged.
    """
    failed = []
    for record in event["Records"]:
        try:
            named = read(record["body"])
        except NotABellError:
            bootstrap.log().warning(f"{what}.refused", extra={"message_id": record["messageId"]})
            continue
        try:
            told = work(*named)
        except Exception as error:  # noqa: BLE001 - the handler's border
            bootstrap.log().exception(f"{what}.failed", exc_info=error)
            failed.append(record["messageId"])
        else:
            if told is not None:
                bootstrap.log().info(f"{what}.worked_off", extra=dict(told))
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}
