"""The deliver functions: bells in, a partial batch answer out."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from chalicelib import bootstrap
from chalicelib.application.batch import AFTER_FAILURE_S
from chalicelib.application.deliver import Deliver, calls_of
from chalicelib.application.ports import Bell, Unavailable
from chalicelib.application.visit import Attempted
from chalicelib.handlers import counted
from chalicelib.telemetry import log_attempt
from chalicelib.wire import bell as bells
from chalicelib.wire.bell import NotABellError


def handle(
    event: dict[str, Any],
    context: Any,  # noqa: ANN401 - Lambda's context has no type
    use: Callable[[], Deliver] | None = None,
) -> dict[str, Any]:
    """Work off a batch of bells; those that stay in the queue are named in the answer.

    What is no bell is logged and deleted: it can never become one. When our own infrastructure
    fails, the bells of the lanes it concerns come back within seconds.
    """
    records = event["Records"]
    queue_arn = records[0]["eventSourceARN"]
    rung = _bells(records)
    try:
        receipts = bootstrap.receipts(queue_arn)
        deliver = (use or bootstrap.deliver)()
        _note_canaries(queue_arn, records)
        report = deliver.run(calls_of(rung), receipts, context.get_remaining_time_in_millis)
    except Exception as error:  # noqa: BLE001 - the handler's border
        bootstrap.log().exception("deliver.failed", exc_info=error)
        undone = [receipt for _, receipt in rung]
        _hide(queue_arn, undone)
        return _answer(records, undone)
    log = bootstrap.log()
    for failure in report.failures:
        log.error("deliver.lanes_failed", exc_info=failure)
    for attempted in report.attempted:
        log_attempt(log, attempted, _traced(attempted))
    counted.flush()
    return _answer(records, report.kept)


def handle_cloud(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    """Work off a batch of bells of endpoints that are in AWS."""
    return handle(event, context, bootstrap.deliver_cloud)


def _traced(attempted: Attempted) -> str:
    """Write the span of an attempt, if one is wanted, and give the id of its trace."""
    tracer = bootstrap.tracer()
    return tracer.tell(attempted, bootstrap.trace_header()) if tracer else ""


def _bells(records: list[dict[str, Any]]) -> list[tuple[Bell, str]]:
    found = []
    for record in records:
        if bells.rung_canary(record["body"]) is not None:
            continue
        try:
            found.append((_as_received(record), record["receiptHandle"]))
        except NotABellError:
            bootstrap.log().warning("bell.refused", extra={"message_id": record["messageId"]})
    return found


def _note_canaries(queue_arn: str, records: list[dict[str, Any]]) -> None:
    """Note that a canary came through to a function that can deliver; one that cannot be noted is let go."""
    rung = [moment for each in records if (moment := bells.rung_canary(each["body"])) is not None]
    if rung:
        queue = queue_arn.rpartition(":")[2].removeprefix(bootstrap.settings().resource_prefix)
        try:
            bootstrap.gauging().came_through(queue, max(rung))
        except Unavailable as error:
            bootstrap.log().warning("canary.not_noted", exc_info=error)


def _as_received(record: dict[str, Any]) -> Bell:
    """Read a bell; one that was given back stands for its whole lane, as the others were deleted."""
    bell = bells.load(record["body"])
    attributes = record["attributes"]
    if "AWSTraceHeader" in attributes:
        bell = replace(bell, rung_in=attributes["AWSTraceHeader"])
    came_back = int(attributes["ApproximateReceiveCount"]) > 1
    return replace(bell, hints=(), came_back=True) if came_back else bell


def _answer(records: list[dict[str, Any]], kept: Collection[str]) -> dict[str, Any]:
    ids = [each["messageId"] for each in records if each["receiptHandle"] in kept]
    return {"batchItemFailures": [{"itemIdentifier": each} for each in ids]}


def _hide(queue_arn: str, undone: list[str]) -> None:
    try:
        bootstrap.receipts(queue_arn).hide(undone, AFTER_FAILURE_S)
    except Exception as error:  # noqa: BLE001 - the bells come back by themselves, only later
        bootstrap.log().exception("deliver.bells_not_hidden", exc_info=error)
