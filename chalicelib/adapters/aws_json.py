"""AWS's JSON services by their wire protocol: botocore's credentials and hooks, without its per-field work.

A boto3 call costs about a millisecond of CPU, most of it spent walking the shapes of what goes in
and out; on the hot path that is more than everything else together (docs/decisions/0003). The
client's own hooks are kept: what is registered on it sees every request and answer.
"""

import base64
import http.client
import json
import math
import random
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.awsrequest import AWSRequest
from botocore.client import BaseClient
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from chalicelib.adapters.sigv4 import Scope, signed

TRIES = 3
TIMEOUT_S = 10.0
HEAR_EVERY_S = 1.0
HEARD_WITHIN_S = 1.0
"""An answer that took longer tells the time that was."""
_PAUSE_S = 0.05
_ERRORS_FROM, _SERVER_ERRORS_FROM = 300, 500
_THROTTLED = frozenset(
    (
        "ThrottlingException ProvisionedThroughputExceededException RequestLimitExceeded RequestThrottled"
        " TooManyRequestsException InternalServerError ServiceUnavailable"
    ).split()
)


class JsonService:
    """One JSON service (DynamoDB, SQS), called by the names and parameters that boto3 uses.

    Binary values go in as bytes and come back as base64 text, as the wire has them. Raises
    botocore's ClientError for an answer that is an error, after bounded retries of throttles,
    5xx and broken connections.
    """

    def __init__(
        self,
        client: BaseClient,
        hear: Callable[[str], None] | None = None,
        *,
        tries: int = TRIES,
        timeout_s: float = TIMEOUT_S,
        idle_s: float = math.inf,
    ) -> None:
        """Take endpoint, region, hooks and protocol from a client of the service.

        `hear` is told the `Date` of a quick answer, about once a second. The timeout is that of connecting,
        and of each wait for an answer. A connection that was idle for longer is not used again.
        """
        self._tries = tries
        self._timeout_s = timeout_s
        self._idle_s = idle_s
        self._hear = hear
        self._hear_next_s = 0.0
        meta = client.meta
        self._events: Any = meta.events
        self._model = meta.service_model
        self._name = self._model.service_id.hyphenize()
        self._scope = Scope(meta.region_name, self._model.signing_name)
        self._url = meta.endpoint_url
        parts = urlsplit(meta.endpoint_url)
        self._secure = parts.scheme == "https"
        self._host = parts.netloc
        self._address = (parts.hostname or "", parts.port or (443 if self._secure else 80))
        metadata: Any = self._model.metadata
        self._target = metadata["targetPrefix"]
        self._content_type = f"application/x-amz-json-{metadata['jsonVersion']}"
        self._idle: deque[tuple[http.client.HTTPConnection, float]] = deque()

    def close(self) -> None:
        """Close the connections that no call is using."""
        with suppress(IndexError):
            while True:
                self._idle.pop()[0].close()

    def call(self, operation: str, **params: Any) -> Any:  # noqa: ANN401 - a service's JSON
        """Make one call and give its answer."""
        return self.call_as(_credentials(), operation, **params)

    @property
    def url(self) -> str:
        """Say where the service is."""
        return str(self._url)

    def call_as(self, credentials: ReadOnlyCredentials, operation: str, **params: Any) -> Any:  # noqa: ANN401 - a service's JSON
        """Make one call as somebody, and give its answer."""
        context: dict[str, Any] = {}
        model = self._model.operation_model(operation)
        hook = f"{self._name}.{operation}"
        self._events.emit(f"before-parameter-build.{hook}", params=params, model=model, context=context)
        body = json.dumps(params, default=_base64, separators=(",", ":")).encode()
        for attempt in range(1, self._tries + 1):
            try:
                status, answer = self._exchange(operation, hook, body, credentials)
            except (OSError, http.client.HTTPException) as error:
                self.close()  # What rested beside a broken connection has rested as long.
                if attempt == self._tries:
                    raise EndpointConnectionError(endpoint_url=self._url, error=error) from error
            else:
                if status < _ERRORS_FROM:
                    self._events.emit(
                        f"after-call.{hook}", http_response=None, parsed=answer, model=model, context=context
                    )
                    return answer
                error_code = str(answer.get("__type", "")).rpartition("#")[2]
                passing = status >= _SERVER_ERRORS_FROM or error_code in _THROTTLED
                if attempt == self._tries or not passing:
                    raise _client_error(answer, error_code or str(status), operation, status)
            time.sleep(_PAUSE_S * 2**attempt * random.random())  # noqa: S311 - jitter, not a secret
        raise AssertionError("the last try answers or raises")

    def _exchange(
        self, operation: str, hook: str, body: bytes, credentials: ReadOnlyCredentials
    ) -> tuple[int, dict[str, Any]]:
        headers = {
            "Host": self._host,
            "X-Amz-Target": f"{self._target}.{operation}",
            "Content-Type": self._content_type,
        }
        headers = signed(headers, body, self._scope, credentials, datetime.now(UTC))
        request = AWSRequest("POST", self._url, headers=headers, data=body)
        for _, response in self._events.emit(f"before-send.{hook}", request=request):
            if response is not None:
                return response.status_code, _document(response.content)
        connection = self._connection()
        began_s = time.monotonic()
        try:
            reply = _post(connection, headers.items(), body)
            answer = _document(reply.read())
        except BaseException:
            connection.close()
            raise
        if reply.will_close:
            connection.close()
        else:
            self._idle.append((connection, time.time()))
        self._tell(reply, began_s)
        return reply.status, answer

    def _tell(self, reply: http.client.HTTPResponse, began_s: float) -> None:
        now_s = time.monotonic()
        if self._hear is not None and now_s >= self._hear_next_s and now_s - began_s <= HEARD_WITHIN_S:
            self._hear_next_s = now_s + HEAR_EVERY_S
            self._hear(reply.getheader("Date", ""))

    def _connection(self) -> http.client.HTTPConnection:
        """Give an idle connection, the one used last, or a new one."""
        try:
            while True:
                connection, since_s = self._idle.pop()
                if time.time() - since_s <= self._idle_s:
                    return connection
                connection.close()
        except IndexError:
            host, port = self._address
            if self._secure:
                return http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=_tls())
            return http.client.HTTPConnection(host, port, timeout=self._timeout_s)


def _post(
    connection: http.client.HTTPConnection, headers: Iterable[tuple[str, str]], body: bytes
) -> http.client.HTTPResponse:
    """Write a request in one piece, head and body: two writes are two packets and two wake-ups."""
    if connection.sock is None:
        connection.connect()
    lines = [f"{name}: {value}\r\n" for name, value in headers]
    head = f"POST / HTTP/1.1\r\n{''.join(lines)}Content-Length: {len(body)}\r\n\r\n"
    connection.sock.sendall(head.encode("ascii") + body)
    reply = http.client.HTTPResponse(connection.sock, method="POST")
    reply.begin()
    return reply


@cache
def _session() -> boto3.Session:
    return boto3.DEFAULT_SESSION or boto3.Session()


def _credentials() -> ReadOnlyCredentials:
    credentials = _session().get_credentials()
    if credentials is None:
        raise NoCredentialsError
    return credentials.get_frozen_credentials()


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _document(body: bytes) -> dict[str, Any]:
    """Read an answer; what a proxy on the way says in a page of its own is a broken exchange."""
    try:
        answer: dict[str, Any] = json.loads(body or b"{}")
    except ValueError as error:
        raise http.client.HTTPException("the answer is not JSON") from error
    return answer


def _base64(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} is not JSON")


def _client_error(answer: dict[str, Any], code: str, operation: str, status: int) -> ClientError:
    message = answer.get("message") or answer.get("Message") or ""
    metadata = {"HTTPStatusCode": status}
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata, **answer}
    return ClientError(response, operation)
