"""What a queue or bus is told of an event, as the parameters of AWS's own calls.

A queue gets the event's bytes, and Relay's headers as attributes; a bus its JSON as the detail.
"""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from chalicelib.domain import request as requests
from chalicelib.domain.cloud.address import external_id, parts
from chalicelib.domain.delivery import Owed
from chalicelib.domain.endpoint import Endpoint, Transport
from chalicelib.domain.event import Event
from chalicelib.domain.request import VERSION, Errand, Request

SOURCE = "relay"
MAX_BYTES: Mapping[Transport, int] = {Transport.SQS: 1_048_576, Transport.EVENTBRIDGE: 262_144}
ENCODING = "Relay-Body-Encoding"
_TIME_BYTES = 14
_UNSAID = frozenset({"Content-Length", "Accept", "Accept-Encoding", "User-Agent"})
_NOT_OF_A_QUEUE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that SQS takes in no message."""


def build(endpoint: Endpoint, event: Event, owed: Owed) -> Request:
    """Build the call that tells a queue or bus of an event."""
    write = _message if endpoint.transport is Transport.SQS else _entry
    parameters = write(endpoint.url, event, owed)
    errand = Errand(
        endpoint.transport,
        endpoint.role,
        external_id(endpoint.tenant),
        parameters,
        size=size(endpoint.transport, parameters),
    )
    headers = (("User-Agent", f"Relay/{VERSION}"),)
    return Request(endpoint.url, headers, event.body, address=endpoint.url, errand=errand)


def again(url: str, transport: Transport, event: Event, owed: Owed) -> tuple[tuple[str, str], ...]:
    """Give what a queue or bus was told beside the event itself, by name, from what was kept of it."""
    if transport is Transport.SQS:
        return tuple((name, of["StringValue"]) for name, of in _attributes(event, owed).items())
    entry = _entry(url, event, owed)
    parted = (each.partition(":") for each in entry["Resources"])
    named = ((name, value) for name, _, value in parted)
    return (("source", SOURCE), ("detail-type", entry["DetailType"]), *named)


def size(transport: Transport, parameters: Mapping[str, Any]) -> int:
    """Count the bytes of a call as its service does."""
    if transport is Transport.SQS:
        attributes = parameters["MessageAttributes"].items()
        said = (name + of["DataType"] + of["StringValue"] for name, of in attributes)
        return len(parameters["MessageBody"].encode()) + sum(len(each.encode()) for each in said)
    texts = (parameters[name] for name in ("Source", "DetailType", "Detail"))
    return _TIME_BYTES + sum(len(each.encode()) for each in (*texts, *parameters["Resources"]))


def _message(url: str, event: Event, owed: Owed) -> dict[str, Any]:
    text = _queue_text(event.body)
    message: dict[str, Any] = {
        "MessageBody": base64.b64encode(event.body).decode("ascii") if text is None else text,
        "MessageAttributes": _attributes(event, owed),
    }
    if parts(url).name.endswith(".fifo"):
        group = owed.lane.endpoint_id if owed.lane.ordered or owed.sequence else event.id
        message |= {"MessageGroupId": group, "MessageDeduplicationId": _once(owed)}
    return message


def _attributes(event: Event, owed: Owed) -> dict[str, dict[str, str]]:
    coded = {} if _queue_text(event.body) is not None else {ENCODING: "base64"}
    said = {**_said(event, owed), **coded}
    return {name: {"DataType": "String", "StringValue": value} for name, value in said.items() if value}


def _entry(url: str, event: Event, owed: Owed) -> dict[str, Any]:
    said = _said(event, owed)
    return {
        "EventBusName": url,
        "Source": SOURCE,
        "DetailType": event.type,
        "Time": event.received_ms / 1000,
        "Resources": [f"{name}:{value}" for name, value in said.items() if name != "Relay-Event-Type"],
        "Detail": _detail(event),
    }


def _said(event: Event, owed: Owed) -> dict[str, str]:
    """Give Relay's headers as they mean something to who reads a queue."""
    identity = {"Relay-Delivery-Id": owed.delivery_id}
    headers = requests.headers(identity, event, owed, "")
    return {name: value for name, value in headers.items() if name not in _UNSAID}


def _detail(event: Event) -> str:
    """Give a JSON object as it was posted; anything else has one made around it."""
    try:
        text = event.body.decode()
    except UnicodeDecodeError:
        return json.dumps({"body_base64": base64.b64encode(event.body).decode("ascii")})
    try:
        value = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        value = None
    return text if isinstance(value, dict) else json.dumps({"body": text})


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _queue_text(body: bytes) -> str | None:
    """Give a body as the text it is, or None where a queue would not take that."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return None if not text or _NOT_OF_A_QUEUE.search(text) else text


def _once(owed: Owed) -> str:
    """Name a delivery, and its replay anew: what a FIFO queue takes once within five minutes."""
    return f"{owed.delivery_id}.{owed.generation}" if owed.generation else owed.delivery_id
