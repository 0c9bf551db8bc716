"""A small Chalice app for tests of the one-machine runtime: what it is called with, it remembers."""

import base64
import json
import os
from functools import lru_cache
from typing import Any

import boto3
from chalice.app import Chalice, CloudWatchEvent, Rate, Response, SQSEvent

PREFIX = os.environ.get("RELAY_RESOURCE_PREFIX", "relay-")

app = Chalice(app_name="stub", configure_logs=False)
app.api.binary_types = ["*/*"]


@lru_cache
def client(service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
    """Make each client once."""
    session: Any = boto3.Session()
    return session.client(service)


def remember(key: str, what: object) -> None:
    """Put one fact where a test finds it."""
    item = {"pk": {"S": key}, "what": {"S": json.dumps(what)}}
    client("dynamodb").put_item(TableName=f"{PREFIX}idempotency", Item=item)


@app.route("/healthz")
def healthz() -> dict[str, int]:
    return {"pid": os.getpid()}


@app.route("/send/{group}", methods=["POST"], content_types=["*/*"])
def send(group: str) -> Response:
    """Send one message to the first shard, its body the request's."""
    request = app.current_request
    assert request is not None
    queue = client("sqs").get_queue_url(QueueName=f"{PREFIX}shard-0.fifo")["QueueUrl"]
    client("sqs").send_message(
        QueueUrl=queue,
        MessageBody=base64.b64decode(request.to_original_event()["body"]).decode(),
        MessageGroupId=group,
        MessageDeduplicationId=request.context["requestId"],
    )
    return Response({"sent": group}, status_code=202)


@app.route("/remembered/{key}")
def remembered(key: str) -> Response:
    found = client("dynamodb").get_item(
        TableName=f"{PREFIX}idempotency", Key={"pk": {"S": key}}, ConsistentRead=True
    )
    if "Item" not in found:
        return Response({}, status_code=404)
    return Response(found["Item"]["what"]["S"], headers={"Content-Type": "application/json"})


@app.on_sqs_message(queue=f"{PREFIX}shard-0.fifo", batch_size=10)
def deliver(event: SQSEvent) -> dict[str, list[str]]:
    for record in event.to_dict()["Records"]:
        remember(record["body"], {"group": record["attributes"]["MessageGroupId"], "pid": os.getpid()})
    return {"batchItemFailures": []}


@app.on_sqs_message(queue=f"{PREFIX}delayed", batch_size=10)
def delayed_bells(event: SQSEvent) -> None:
    for record in event.to_dict()["Records"]:
        remember(record["body"], {"pid": os.getpid()})


@app.schedule(Rate(1, unit=Rate.MINUTES))
def reconcile(event: CloudWatchEvent) -> None:
    remember("schedule", {"time": event.to_dict()["time"]})
