"""The fan-out function: does what ingest left to be fanned out later."""

import json
from typing import Any

from chalicelib import bootstrap
from chalicelib.domain import ids


def handle(event: dict[str, Any]) -> dict[str, Any]:
    """Fan out each event that a message names; those that failed are named in the answer."""
    failed = []
    for record in event["Records"]:
        try:
            body = json.loads(record["body"])
            tenant, event_id = str(body["tenant"]), str(body["event_id"])
        except (ValueError, TypeError, KeyError):
            tenant, event_id = "", ""
        if not ids.is_id(event_id, "evt"):
            bootstrap.log().warning("fan_out.refused", extra={"message_id": record["messageId"]})
            continue
        try:
            bootstrap.fan_out().run(tenant, event_id)
        except Exception as error:  # noqa: BLE001 - the handler's border
            bootstrap.log().exception("fan_out.failed", exc_info=error)
            failed.append(record["messageId"])
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}
