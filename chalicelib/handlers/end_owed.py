"""The functions of long ends: one ends deliveries in pages when called, the other calls it each minute."""

from typing import Any

from chalicelib import bootstrap
from chalicelib.wire import bell as bells
from chalicelib.wire.bell import NotABellError


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - Lambda's context has no type
    """End what each named endpoint is owed and shall not get; those that failed are named in the answer."""
    failed = []
    for record in event["Records"]:
        try:
            tenant, endpoint_id = bells.load_ending(record["body"])
        except NotABellError:
            bootstrap.log().warning("ending.refused", extra={"message_id": record["messageId"]})
            continue
        try:
            ended = bootstrap.end_owed().run(tenant, endpoint_id, context.get_remaining_time_in_millis)
            told = {"tenant": tenant, "endpoint_id": endpoint_id, "ended": ended}
            bootstrap.log().info("ending.worked_off", extra=told)
        except Exception as error:  # noqa: BLE001 - the handler's border
            bootstrap.log().exception("ending.failed", exc_info=error)
            failed.append(record["messageId"])
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}


def call() -> None:
    """Call once for every endpoint that has something due to be ended, and log how many there are."""
    bootstrap.log().info("endings.called", extra={"endpoints": bootstrap.end_owed().call_waiting()})
