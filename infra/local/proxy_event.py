"""HTTP requests as API Gateway's REST proxy events (version 1), and the functions' answers as HTTP again.

Values to values: nothing here reads a socket or calls the app.
"""

import base64
import binascii
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from infra.local.invocation import ACCOUNT
from infra.local.routing import Match

STAGE = "api"
Headers = tuple[tuple[str, str], ...]

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_ANSWERED = _HOP_BY_HOP | {"content-length"}
_DROPPED = _HOP_BY_HOP | {
    "content-length",
    "expect",
    "x-amzn-trace-id",
    "x-forwarded-for",
    "x-forwarded-port",
    "x-forwarded-proto",
}
_NOBODY = dict.fromkeys(
    (
        "accessKey",
        "accountId",
        "apiKey",
        "apiKeyId",
        "caller",
        "cognitoAuthenticationProvider",
        "cognitoAuthenticationType",
        "cognitoIdentityId",
        "cognitoIdentityPoolId",
        "principalOrgId",
        "user",
        "userArn",
    )
)


class MalformedAnswerError(Exception):
    """The function answered something API Gateway cannot turn into HTTP."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request as it came in: path and query still percent-encoded, headers in order with their case."""

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    source_ip: str
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    named: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Index the last value of each header by its lower-case name."""
        object.__setattr__(self, "named", {name.lower(): value for name, value in self.headers})


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One answer: the exact body, and headers that may repeat."""

    status: int
    headers: Headers
    body: bytes


def event_of(request: HttpRequest, match: Match, binary_types: Sequence[str]) -> dict[str, Any]:
    """Build the full event that the function of a REST API gets for this request."""
    headers = _forwarded_headers(request)
    query = _grouped_query(request.query)
    binary = is_binary(request.named.get("content-type"), binary_types)
    return {
        "resource": match.resource,
        "path": request.path,
        "httpMethod": request.method,
        "headers": _last(headers),
        "multiValueHeaders": headers,
        "queryStringParameters": _last(query) or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": dict(match.params) or None,
        "stageVariables": None,
        "requestContext": _request_context(request, match),
        "body": _body_text(request.body, binary=binary),
        "isBase64Encoded": binary and bool(request.body),
    }


def is_binary(content_type: str | None, binary_types: Sequence[str]) -> bool:
    """Say whether API Gateway hands a body of this type over in base64; no type counts as JSON."""
    media_type = (content_type or "application/json").split(";")[0].strip().lower()
    return "*/*" in binary_types or media_type in {kind.lower() for kind in binary_types}


def response_of(answer: Any, request: HttpRequest, binary_types: Sequence[str]) -> HttpResponse:  # noqa: ANN401 - whatever a function returns
    """Turn a function's answer into HTTP; MalformedAnswerError says what API Gateway would not take."""
    if not isinstance(answer, dict) or "statusCode" not in answer:
        raise MalformedAnswerError("the function's answer is not an object with a statusCode")
    headers = _answer_headers(answer)
    if not any(name.lower() == "content-type" for name, _ in headers):
        headers = (*headers, ("Content-Type", "application/json"))
    return HttpResponse(
        status=_status(answer["statusCode"]),
        headers=(*headers, ("x-amzn-RequestId", request.request_id)),
        body=_answer_body(answer, request, binary_types),
    )


def status_line(status: int) -> str:
    """Write a status as `404 Not Found`; unknown codes get an empty phrase."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} "


def _forwarded_headers(request: HttpRequest) -> dict[str, list[str]]:
    """Group the headers the function gets under the first spelling of each name."""
    spelling: dict[str, str] = {}
    grouped: dict[str, list[str]] = {}
    for name, value in request.headers:
        lower = name.lower()
        if lower not in _DROPPED:
            grouped.setdefault(spelling.setdefault(lower, name), []).append(value)
    grouped.update((name, [value]) for name, value in _added_headers(request))
    return grouped


def _added_headers(request: HttpRequest) -> Headers:
    already = request.named.get("x-forwarded-for")
    trace = f"Root=1-{int(time.time()):08x}-{request.request_id.replace('-', '')[:24]}"
    return (
        ("X-Amzn-Trace-Id", trace),
        ("X-Forwarded-For", f"{already}, {request.source_ip}" if already else request.source_ip),
        ("X-Forwarded-Port", request.named.get("host", "").partition(":")[2] or "80"),
        ("X-Forwarded-Proto", "http"),
    )


def _grouped_query(query: str) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        grouped.setdefault(name, []).append(value)
    return grouped


def _last(grouped: Mapping[str, list[str]]) -> dict[str, str]:
    return {name: values[-1] for name, values in grouped.items()}


def _body_text(body: bytes, *, binary: bool) -> str | None:
    if not body:
        return None
    return base64.b64encode(body).decode("ascii") if binary else body.decode("utf-8", errors="replace")


def _request_context(request: HttpRequest, match: Match) -> dict[str, Any]:
    now = time.time()
    return {
        "accountId": ACCOUNT,
        "apiId": "local",
        "domainName": request.named.get("host", "localhost"),
        "domainPrefix": "local",
        "extendedRequestId": request.request_id,
        "httpMethod": request.method,
        "identity": {**_NOBODY, "sourceIp": request.source_ip, "userAgent": request.named.get("user-agent")},
        "path": request.path,
        "protocol": "HTTP/1.1",
        "requestId": request.request_id,
        "requestTime": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
        "requestTimeEpoch": int(now * 1000),
        "resourceId": "local",
        "resourcePath": match.resource,
        "stage": STAGE,
    }


def _status(given: object) -> int:
    try:
        status = int(str(given))
    except ValueError:
        status = 0
    if not 100 <= status <= 599:  # noqa: PLR2004 - the range of HTTP
        raise MalformedAnswerError(f"{given!r} is not an HTTP status")
    return status


def _answer_headers(answer: Mapping[str, Any]) -> Headers:
    repeated = answer.get("multiValueHeaders") or {}
    named = {str(name).lower() for name in repeated}
    single = answer.get("headers") or {}
    pairs = [(str(name), value) for name, value in single.items() if str(name).lower() not in named]
    pairs += [(str(name), value) for name, values in repeated.items() for value in values]
    return tuple((name, _header_text(value)) for name, value in pairs if name.lower() not in _NOT_ANSWERED)


def _header_text(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if _CONTROL.search(text):
        raise MalformedAnswerError("a header value has control characters")
    return text.encode("utf-8").decode("latin-1")


def _answer_body(answer: Mapping[str, Any], request: HttpRequest, binary_types: Sequence[str]) -> bytes:
    body = answer.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise MalformedAnswerError("the function's body is not text")
    accepted = request.named.get("accept", "*/*").split(",")[0]
    if answer.get("isBase64Encoded") and is_binary(accepted, binary_types):
        return _decoded(body)
    return body.encode("utf-8")


def _decoded(body: str) -> bytes:
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedAnswerError("the function's body is not base64") from error
