"""The fan-out function: does what ingest left to be fanned out later."""

from typing import Any

from chalicelib import bootstrap
from chalicelib.wire import bell as bells
from chalicelib.wire.bell import NotABellError


def handle(event: dict[str, Any]) -> dict[str, Any]:
    """Fan out each event that a message names; those that failed are named in the answer."""
    failed = []
    for record in event["Records"]:
        try:
            tenant, event_id = bells.load_fan_out(record["body"])
        except NotABellError:
            bootstrap.log().warning("fan_out.refused", extra={"message_id": record["messageId"]})
            continue
        try:
            bootstrap.fan_out().run(tenant, event_id)
        except Exception as error:  # noqa: BLE001 - the handler's border
            bootstrap.log().exception("fan_out.failed", exc_info=error)
            failed.append(record["messageId"])
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}
