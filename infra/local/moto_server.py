"""moto as an emulator that keeps its promises: one request at a time, and PartiQL batches understood.

Under threads moto loses updates and lets two consumers into one message group, so a lock stands around all
of it. Its BatchExecuteStatement knows no conditional writes, so these are put to it as single-item requests,
under the same lock. `python -m infra.local.moto_server --port 4566`; all is forgotten when it ends.
"""

import argparse
import io
import json
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from infra.local.partiql import Statement, StatementError, parse
from infra.local.partiql_requests import Request, error_of, request_of
from infra.local.readiness import say_ready
from infra.local.wsgi_server import Server

_BATCH = "DynamoDB_20120810.BatchExecuteStatement"
_LARGEST_BATCH = 25
_OK = "200 OK"
_BAD = "400 Bad Request"
_JSON = [("Content-Type", "application/x-amz-json-1.0")]


class OneAtATime:
    """Lets one request at a time into an application."""

    def __init__(self, application: WSGIApplication) -> None:
        """Take the application to guard."""
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request, from its first byte to its last."""
        with self._lock:
            return [b"".join(self._application(environ, start_response))]


class PartiqlBatches:
    """Answers BatchExecuteStatement as DynamoDB does, by single-item requests to what is behind it."""

    def __init__(self, application: WSGIApplication) -> None:
        """Take the application that knows PutItem, UpdateItem, DeleteItem and DescribeTable."""
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer batches of writes; everything else goes through untouched."""
        if environ.get("HTTP_X_AMZ_TARGET") != _BATCH:
            return self._application(environ, start_response)
        body = environ["wsgi.input"].read()
        statements = json.loads(body)["Statements"]
        if all(entry["Statement"].lstrip().upper().startswith("SELECT") for entry in statements):
            return self._application({**environ, "wsgi.input": io.BytesIO(body)}, start_response)
        if len(statements) > _LARGEST_BATCH:
            message = "Member must have length less than or equal to 25"
            return _answer(start_response, _BAD, {"__type": "ValidationException", "message": message})
        responses = [self._run(environ, entry) for entry in statements]
        return _answer(start_response, _OK, {"Responses": responses})

    def _run(self, environ: WSGIEnvironment, entry: Mapping[str, Any]) -> dict[str, Any]:
        on_failure = entry.get("ReturnValuesOnConditionCheckFailure", "NONE")
        try:
            statement = parse(entry["Statement"], entry.get("Parameters") or ())
            request = request_of(statement, self._keys(environ, statement), on_failure)
        except StatementError as error:
            return {"Error": {"Code": "ValidationError", "Message": str(error)}}
        except LookupError:
            return {"Error": {"Code": "ResourceNotFound", "Message": "Requested resource not found"}}
        status, answer = self._call(environ, request)
        if status != _OK:
            return {"Error": error_of(statement, answer), "TableName": statement.table}
        item = {"Item": answer["Attributes"]} if answer.get("Attributes") else {}
        return {"TableName": statement.table, **item}

    def _keys(self, environ: WSGIEnvironment, statement: Statement) -> list[str]:
        _, answer = self._call(environ, Request("DescribeTable", {"TableName": statement.table}))
        schema = answer["Table"]["KeySchema"]
        return [key["AttributeName"] for key in sorted(schema, key=lambda key: key["KeyType"] != "HASH")]

    def _call(self, environ: WSGIEnvironment, request: Request) -> tuple[str, dict[str, Any]]:
        body = json.dumps(request.body).encode()
        statuses: list[str] = []
        inner = {
            **environ,
            "HTTP_X_AMZ_TARGET": f"DynamoDB_20120810.{request.action}",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
        }
        answer = b"".join(self._application(inner, lambda status, *_: _noted(statuses, status)))
        return statuses[-1].upper(), json.loads(answer or b"{}")


def moto() -> WSGIApplication:
    """Make moto's application, guarded and with batches understood."""
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415 - half a second, and only this process pays it
        DomainDispatcherApplication,
        create_backend_app,
    )

    return OneAtATime(PartiqlBatches(DomainDispatcherApplication(create_backend_app)))


def _noted(statuses: list[str], status: str) -> Any:  # noqa: ANN401 - WSGI's old write callable, which nobody uses
    statuses.append(status)
    return lambda _: None


def _answer(start_response: StartResponse, status: str, document: Mapping[str, Any]) -> list[bytes]:
    body = json.dumps(document).encode()
    start_response(status, [*_JSON, ("Content-Length", str(len(body)))])
    return [body]


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m infra.local.moto_server", description=__doc__)
    parser.add_argument("--port", type=int, default=4566)
    parser.add_argument("--ready-fd", type=int, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        server = Server(moto(), options.port, threads=8)
    except OSError as error:
        sys.stderr.write(f"moto cannot listen on port {options.port}: {error.strerror}.\n")
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    say_ready(options.ready_fd)
    server.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
