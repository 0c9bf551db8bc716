"""Relay as this tier sees it: the app called with full events, and what it left in the emulator."""

import base64
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
from botocore.exceptions import ClientError

import app as lambdas
from chalicelib import bootstrap
from chalicelib.adapters.aws_limits.call_counter import CallCounter
from chalicelib.adapters.dynamodb.trusting import DynamoSecondFactors
from chalicelib.domain.api_key import DEVELOPMENT_KEY, ApiKey, Role, digest, names_in
from chalicelib.domain.audit import Actor, ActorKind
from chalicelib.domain.step_up import ASSERTION_SECS, Assertion, ElevatedAction
from chalicelib.domain.tenant import QUOTAS_MAX, Tenant
from infra.local.invocation import LambdaContext
from infra.local.provision import Provisioned
from infra.local.proxy_event import Headers, HttpRequest, event_of, response_of
from infra.local.routing import RouteTable
from infra.local.sqs_event import event_of as batch_of
from infra.local.sqs_event import queue_arn
from tests.handlers.contract import hold_to_contract
from tests.leaks.watch import WATCH

EVENTS = Path(__file__).parents[2] / "events"
SHARDS = 4
DEADLINE_S = 20
ROUTES = RouteTable(lambdas.app.routes)
BINARY = tuple(lambdas.app.api.binary_types)
_KEPT = (
    "events", "owed", "history", "idempotency", "fanouts", "dead-letters", "endpoints", "subs", "gates",
)  # fmt: skip
_READS = frozenset({"BatchGetItem", "Decrypt", "GetItem", "GetObject", "GetQueueUrl", "Query"})
COUNTS = "counts"
"""Under this name the calls are counted again that change nothing but what is counted."""
_CHANGED = re.compile(r'"TableName": ?"([^"]+)"|UPDATE \\"([^"\\]+)|INTO \\"([^"\\]+)|FROM \\"([^"\\]+)')
SHARED = frozenset({"client", "client_in", "json_service", "sender", "cloud_sender"})
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a caller gets: status, headers by lower-case name, and the exact body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever was answered
        return json.loads(self.body)

    def is_problem(self, status: int, code: str, field_name: str = "") -> bool:
        """Hold a refusal to its form, and say whether it is the one expected."""
        said = self.json
        assert self.headers["content-type"] == "application/problem+json"
        assert said["status"] == self.status
        assert said["type"].endswith(f"#{said['code']}")
        assert said["detail"].endswith(".")
        assert all(isinstance(each, str | int) and each != "" for each in said.values())
        return (self.status, said["code"], said.get("field", "")) == (status, code, field_name)


def proxy_event(
    method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | Headers = ()
) -> dict[str, Any]:
    """Build the full event API Gateway would send; a path that it would refuse is the test's fault."""
    path, _, query = target.partition("?")
    given = tuple(headers.items()) if isinstance(headers, Mapping) else headers
    named = (("Host", "api.example"), ("User-Agent", "tests"), *given)
    request = HttpRequest(method, path, query, named, body, "192.0.2.7")
    match = ROUTES.match(path)
    assert match is not None, f"nothing is at {path}"
    assert method in match.methods, f"{path} does not take {method}"
    return event_of(request, match, BINARY)


def invoke(event: dict[str, Any]) -> Answer:
    """Call the API's function and read its answer as API Gateway does; it is one that the contract has."""
    named = tuple((name, value) for name, values in event["multiValueHeaders"].items() for value in values)
    request_id = event["requestContext"]["requestId"]
    request = HttpRequest(event["httpMethod"], event["path"], "", named, b"", "192.0.2.7", request_id)
    answer = lambdas.app(event, LambdaContext("relay-api", aws_request_id=request_id))
    response = response_of(json.loads(json.dumps(answer)), request, BINARY)
    headers = {name.lower(): value for name, value in response.headers}
    hold_to_contract(event["httpMethod"], event["resource"], response.status, headers, response.body)
    asked = {name.lower(): value for name, value in named}
    WATCH.exchange(asked, _body_of(event), response.body, f"{event['httpMethod']} {event['resource']}")
    return Answer(response.status, headers, response.body)


def _body_of(event: Mapping[str, Any]) -> bytes:
    body = event["body"] or ""
    return base64.b64decode(body) if event["isBase64Encoded"] else str(body).encode()


@dataclass(frozen=True, slots=True)
class Relay:
    """One Relay with tables, queues and a bucket of its own; `key` goes with every request."""

    made: Provisioned
    clients: dict[str, Any] = field(repr=False)
    counters: tuple[CallCounter, ...] = field(default=(), repr=False)
    key: str | None = None

    def call(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Ask the API."""
        named = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        return invoke(proxy_event(method, target, body, {**named, **(headers or {})}))

    def get(self, target: str) -> Answer:
        return self.call("GET", target)

    def post(self, target: str, value: object, headers: Mapping[str, str] | None = None) -> Answer:
        """Post a value as JSON."""
        return self.call("POST", target, json.dumps(value).encode(), {**JSON, **(headers or {})})

    def patch(self, endpoint: Mapping[str, Any], value: object, etag: str | None = None) -> Answer:
        """Change an endpoint as it was read, or as another ETag says."""
        headers = {**JSON, "If-Match": etag or f'"{endpoint["version"]}"', **self.elevated()}
        return self.call("PATCH", f"/v1/endpoints/{endpoint['id']}", json.dumps(value).encode(), headers)

    def delete(self, endpoint: Mapping[str, Any], etag: str | None = None) -> Answer:
        """Delete an endpoint as it was read, or as another ETag says."""
        headers = {"If-Match": etag or f'"{endpoint["version"]}"'}
        return self.call("DELETE", f"/v1/endpoints/{endpoint['id']}", b"", headers)

    def event(self, body: bytes = b'{"type":"order.paid"}', headers: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - the answer's JSON
        """Post an event that is accepted, and give the answer's JSON."""
        answer = self.call("POST", "/v1/events", body, headers)
        assert answer.status == 202, answer.body
        return answer.json

    def batch(self, *items: object) -> list[Any]:
        """Post a batch and give the results."""
        answer = self.post("/v1/events/batch", {"events": list(items)})
        assert answer.status == 207, answer.body
        results = answer.json["results"]
        assert len(results) == len(items)
        return list(results)

    def endpoint(self, **fields: object) -> Any:  # noqa: ANN401 - the answer's JSON
        """Register an endpoint and give the answer's JSON."""
        answer = self.post("/v1/endpoints", {"url": URL, "event_types": ["*"], **fields})
        assert answer.status == 201, answer.body
        return answer.json

    def pages(self, target: str) -> Iterator[list[Any]]:
        """Walk a list to its end, page by page."""
        cursor = None
        joint = "&" if "?" in target else "?"
        for _ in range(50):
            answer = self.get(target + (f"{joint}cursor={quote(cursor)}" if cursor else ""))
            assert answer.status == 200, answer.body
            yield answer.json["items"]
            cursor = answer.json["cursor"]
            if cursor is None:
                return
        raise AssertionError(f"{target} does not end")

    def another(self, tenant: str, role: Role = Role.ADMIN) -> "Relay":
        """Give the same Relay as somebody with a new key of a tenant sees it."""
        key_id = f"key{next(_NUMBERS)}"
        key = f"relay_{tenant}.{key_id}.secret-{tenant}"
        now_ms = bootstrap.clock().now_ms()
        made = ApiKey(tenant, key_id, digest(key), role, created_ms=now_ms, used_ms=now_ms)
        bootstrap.seed(Tenant(tenant, quotas=QUOTAS_MAX, created_ms=now_ms), made)
        for counter in self.counters:
            counter.reset()
        return replace(self, key=key)

    def elevated(self, *actions: ElevatedAction) -> dict[str, str]:
        """Give the header of an assertion for these actions, or for all, as a right code would bring it."""
        if self.key is None:
            bootstrap.seed_development()
        tenant, key_id = names_in(self.key or DEVELOPMENT_KEY) or ("", "")
        factor = DynamoSecondFactors(bootstrap.tables()).get(tenant, key_id)
        assert factor is not None
        signing = bootstrap.sealer().unseal(tenant, factor.signing)
        until_s = bootstrap.clock().now_ms() // 1000 + ASSERTION_SECS
        asserted = Assertion(tenant, key_id, actions or tuple(ElevatedAction), until_s)
        return {"Relay-Step-Up": asserted.signed(signing)}

    def aws(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
        """Give a client of the tests' own, which refuses nothing."""
        return self.clients[service]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Read a whole table."""
        scanned = self.aws("dynamodb").scan(TableName=self.made.tables[table], ConsistentRead=True)
        assert "LastEvaluatedKey" not in scanned
        return list(scanned["Items"])

    def change(self, table: str, row: Mapping[str, Any], **sets: object) -> None:
        """Write a row again with some attributes changed (None takes one away)."""
        changed = {name: value for name, value in {**row, **sets}.items() if value is not None}
        self.aws("dynamodb").put_item(TableName=self.made.tables[table], Item=changed)

    def drop_table(self, table: str) -> None:
        """Make a part of the store fail."""
        self.aws("dynamodb").delete_table(TableName=self.made.tables[table])

    def drop_queue(self, queue: str) -> None:
        """Make a queue fail."""
        self.aws("sqs").delete_queue(QueueUrl=self.made.queues[queue])

    def stored_events(self) -> list[str]:
        """Name the events that are stored."""
        return sorted(row["sk"]["S"] for row in self.rows("events") if not row["pk"]["S"].endswith("#hours"))

    def stored_payloads(self) -> list[str]:
        """Name the bodies that are kept apart."""
        listed = self.aws("s3").list_objects_v2(Bucket=self.made.bucket)
        return [each["Key"] for each in listed.get("Contents", [])]

    def nothing_is_stored(self) -> bool:
        """Say whether no event or endpoint, no part of one and no bell is anywhere."""
        stored = [table for table in _KEPT if self.rows(table)]
        rung = [queue for queue in self.made.queues if self.messages(queue)]
        return (stored, rung, self.stored_payloads()) == ([], [], [])

    def wrote_nothing(self) -> bool:
        """Say whether since its start no call of the app went out that can have changed more than counts."""
        calls: Counter[str] = Counter()
        for counter in self.counters:
            for (service, operation), count in counter.calls().items():
                calls[operation] += -count if service == COUNTS else count
        return {operation for operation, count in calls.items() if count} <= _READS

    def messages(self, queue: str) -> list[dict[str, Any]]:
        """Receive all that can be received of a queue, at most ten."""
        received = self.aws("sqs").receive_message(
            QueueUrl=self.made.queues[queue],
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["All"],
            WaitTimeSeconds=0,
        )
        return list(received.get("Messages", []))

    def bells(self) -> dict[str, list[dict[str, Any]]]:
        """Receive the bells of every shard that has some."""
        found = {f"shard-{number}": self.messages(f"shard-{number}") for number in range(SHARDS)}
        return {queue: messages for queue, messages in found.items() if messages}

    def rung(self) -> dict[str, list[dict[str, Any]]]:
        """Receive the bells of every shard that has some, as soon as one has."""
        deadline = time.monotonic() + DEADLINE_S
        while not (found := self.bells()):
            assert time.monotonic() < deadline, "no bell has rung"
        return found

    def waiting(self, queue: str) -> tuple[int, int, int]:
        """Count the messages of a queue: visible, in flight, delayed."""
        names = ["", "NotVisible", "Delayed"]
        attributes = [f"ApproximateNumberOfMessages{name}" for name in names]
        told = self.aws("sqs").get_queue_attributes(
            QueueUrl=self.made.queues[queue], AttributeNames=attributes
        )["Attributes"]
        visible, hidden, delayed = (int(told[each]) for each in attributes)
        return visible, hidden, delayed

    def arn(self, queue: str) -> str:
        """Name a queue as its events do."""
        return queue_arn(self.made.queues[queue].rpartition("/")[2])

    def deliver(self, queue: str, messages: Sequence[Mapping[str, Any]]) -> list[str]:
        """Hand messages to the queue's function; the ids of those it gives back. The others are deleted."""
        function = getattr(lambdas, f"deliver_{queue.replace('-', '_')}")
        failed = self.run(function, batch_of(messages, self.arn(queue)))
        for each in messages:
            if each["MessageId"] not in failed:
                with suppress(ClientError):
                    self.aws("sqs").delete_message(
                        QueueUrl=self.made.queues[queue], ReceiptHandle=each["ReceiptHandle"]
                    )
        return failed

    def deliver_all(self) -> None:
        """Receive every bell once and hand it to its function; none is given back."""
        for queue, messages in self.rung().items():
            assert self.deliver(queue, messages) == []

    def run(self, function: Any, event: dict[str, Any]) -> list[str]:  # noqa: ANN401 - Chalice's wrapped functions
        """Run a queue's function on an event; the ids of the messages it gives back."""
        answer = json.loads(json.dumps(function(event, LambdaContext("relay-worker"))))
        assert answer.keys() == {"batchItemFailures"}
        failed = [each["itemIdentifier"] for each in answer["batchItemFailures"]]
        assert set(failed) <= {each["messageId"] for each in event["Records"]}
        return failed

    def sample(self, name: str) -> dict[str, Any]:
        """Read one of events/*.json, its queue being this Relay's."""
        text = (EVENTS / f"{name}.json").read_text(encoding="utf-8")
        parsed: dict[str, Any] = json.loads(text.replace(":relay-", f":{self.made.prefix}"))
        return parsed


BY = Actor(ActorKind.KEY, "key_1", "203.0.113.9")
URL = "https://receiver.example/hook"
JSON = {"Content-Type": "application/json"}


def typed(event_type: str, content_type: str = "application/json") -> dict[str, str]:
    """Name an event's type and media type in headers."""
    return {"Relay-Event-Type": event_type, "Content-Type": content_type}


def message(body: str, number: int = 1, **attributes: str) -> dict[str, Any]:
    """Make a message that nobody received, as ReceiveMessage would answer it."""
    return {
        "MessageId": f"059f36b4-87a3-44ab-83d2-{number:012d}",
        "ReceiptHandle": base64.b64encode(f"receipt {number}".encode()).decode(),
        "Body": body,
        "Attributes": {"ApproximateReceiveCount": "1", **attributes},
    }


def count_counting(client: Any) -> CallCounter:  # noqa: ANN401 - boto3's clients have no common type
    """Count, from now on, the writes of a client that change nothing but what is counted."""
    counter = CallCounter()

    def look(event_name: str, request: Any, **_: object) -> None:  # noqa: ANN401 - a request of botocore's
        operation = event_name.split(".")[2]
        body = getattr(request, "body", None) or request.data
        text = body.decode() if isinstance(body, bytes) else str(body)
        tables = {name for found in _CHANGED.findall(text) for name in found if name}
        if operation not in _READS and tables and all(name.endswith("-metrics") for name in tables):
            counter.add_call(COUNTS, operation)

    client.meta.events.register_first("before-send.dynamodb", look)
    return counter


def clients_of(endpoint_url: str) -> dict[str, Any]:
    """Make the tests' own clients."""
    session: Any = boto3.Session(
        aws_access_key_id="test",
        aws_secret_access_key="test",
        region_name="us-east-1",
    )
    return {
        service: session.client(service, endpoint_url=endpoint_url)
        for service in ("dynamodb", "sqs", "s3", "sns")
    }


def forget(*shared: str) -> None:
    """Make bootstrap build everything anew, as a new process would, and of what tests share only this."""
    for name, made in vars(bootstrap).items():
        if hasattr(made, "cache_clear") and (name not in SHARED or name in shared):
            made.cache_clear()
