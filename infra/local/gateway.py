"""Plays API Gateway and the Lambda behind it: a WSGI application that gives a Chalice app full proxy events.

What API Gateway answers by itself (no such path, no such method, too large, a broken function) is answered
here, as RFC 9457 problem documents. It serves any Chalice app and knows nothing of Relay.
"""

import json
import logging
import traceback
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from chalice.app import Chalice

from infra.local.invocation import LambdaContext, keep_threads_apart
from infra.local.logs import log_line
from infra.local.proxy_event import (
    HttpRequest,
    HttpResponse,
    MalformedAnswerError,
    event_of,
    response_of,
    status_line,
)
from infra.local.routing import Match, RouteTable

# API Gateway's limits on a request, and Lambda's on what it is given and what it answers.
BODY_LIMIT = 10 * 1024 * 1024
HEADER_LIMIT = 10_240
PAYLOAD_LIMIT = 6 * 1024 * 1024

RAW_HEADERS = "infra.local.raw_headers"


class Gateway:
    """Serves a Chalice app the way a REST API with a Lambda proxy integration does."""

    def __init__(self, app: Chalice, function_name: str | None = None) -> None:
        """Take the app; its routes and binary types are read once, here."""
        self._app = keep_threads_apart(app)
        self._routes = RouteTable(app.routes)
        self._binary_types = tuple(app.api.binary_types)
        self._function_name = function_name or f"{app.app_name}-local"

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one WSGI request."""
        response = self._answer(environ)
        headers = [*response.headers, ("Content-Length", str(len(response.body)))]
        start_response(status_line(response.status), headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [response.body]

    def _answer(self, environ: WSGIEnvironment) -> HttpResponse:
        if int(environ.get("CONTENT_LENGTH") or 0) > BODY_LIMIT:
            return too_large()
        request = _request_of(environ)
        if sum(len(name) + len(value) for name, value in request.headers) > HEADER_LIMIT:
            return problem(431, "headers_too_large", "The headers are larger than API Gateway takes.")
        match = self._routes.match(request.path)
        if match is None:
            return problem(404, "not_found", f"There is nothing at {request.path}.")
        if request.method not in match.methods:
            return _not_allowed(request, match)
        return self._invoke(request, match)

    def _invoke(self, request: HttpRequest, match: Match) -> HttpResponse:
        event = event_of(request, match, self._binary_types)
        if len(event["body"] or "") > PAYLOAD_LIMIT:
            return too_large()
        context = LambdaContext(self._function_name, aws_request_id=request.request_id)
        try:
            return _checked(response_of(self._app(event, context), request, self._binary_types))
        except Exception as error:  # noqa: BLE001 - the border of the function: API Gateway answers 502 for it
            _log_failure(context, error)
            return problem(502, "bad_gateway", "The function behind this path failed.")


def problem(status: int, code: str, detail: str, headers: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
    """Write one of the gateway's own answers as a problem document."""
    title = status_line(status).partition(" ")[2]
    document = {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail}
    body = json.dumps(document).encode()
    return HttpResponse(status, (("Content-Type", "application/problem+json"), *headers), body)


def too_large() -> HttpResponse:
    """Refuse a body that would not get through API Gateway and Lambda."""
    return problem(413, "body_too_large", "The request is larger than API Gateway and Lambda take.")


def _not_allowed(request: HttpRequest, match: Match) -> HttpResponse:
    allowed = ", ".join(sorted(match.methods))
    detail = f"{request.path} takes {allowed}, not {request.method}."
    return problem(405, "method_not_allowed", detail, (("Allow", allowed),))


def _checked(response: HttpResponse) -> HttpResponse:
    if len(response.body) > PAYLOAD_LIMIT:
        raise MalformedAnswerError("the function's answer is larger than the 6 MiB Lambda takes")
    return response


def _request_of(environ: WSGIEnvironment) -> HttpRequest:
    path, query = _target(environ)
    return HttpRequest(
        method=environ["REQUEST_METHOD"],
        path=path,
        query=query,
        headers=environ.get(RAW_HEADERS) or tuple(_cgi_headers(environ)),
        body=environ["wsgi.input"].read() if environ.get("CONTENT_LENGTH") not in {None, "", "0"} else b"",
        source_ip=environ.get("REMOTE_ADDR", "127.0.0.1"),
    )


def _target(environ: WSGIEnvironment) -> tuple[str, str]:
    target: str = environ.get("REQUEST_URI") or environ.get("PATH_INFO", "/")
    path = target.partition("?")[0]
    if "://" in path:
        path = "/" + path.partition("://")[2].partition("/")[2]
    return "/" + path.lstrip("/"), environ.get("QUERY_STRING", "")


def _cgi_headers(environ: WSGIEnvironment) -> Iterable[tuple[str, str]]:
    for key, value in environ.items():
        name = key.removeprefix("HTTP_") if key.startswith("HTTP_") else ""
        if name or key in {"CONTENT_TYPE", "CONTENT_LENGTH"}:
            yield "-".join(part.capitalize() for part in (name or key).split("_")), value


def _log_failure(context: LambdaContext, error: Exception) -> None:
    log_line(
        logging.ERROR,
        "function.failed",
        function=context.function_name,
        request_id=context.aws_request_id,
        error=type(error).__name__,
        detail=str(error),
        traceback=traceback.format_exc(),
    )
