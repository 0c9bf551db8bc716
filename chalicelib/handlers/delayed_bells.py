"""The function behind the delay queue: a delayed bell is rung on its lane's queue."""

from typing import Any

from chalicelib import bootstrap
from chalicelib.application.ports import Bell
from chalicelib.wire import bell as bells
from chalicelib.wire.bell import NotABellError


def handle(event: dict[str, Any]) -> dict[str, Any]:
    """Ring each lane whose delay is over; those that could not be rung are named in the answer."""
    failed = []
    for record in event["Records"]:
        try:
            lane, queue = bells.load_delayed(record["body"])
        except NotABellError:
            bootstrap.log().warning("bell.refused", extra={"message_id": record["messageId"]})
            continue
        if bootstrap.bells().ring([Bell(lane, bootstrap.clock().now_ms(), queue=queue)]):
            failed.append(record["messageId"])
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}
