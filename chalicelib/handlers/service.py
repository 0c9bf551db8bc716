"""Routes about Relay itself: is it alive, can it work, what is its contract."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

from chalice.app import Request, Response

from chalicelib import bootstrap
from chalicelib.handlers import counted, http, problems
from chalicelib.handlers.http import Asked
from chalicelib.wire import answers, prometheus


def alive() -> Response:
    """Say that the function runs."""
    return http.reply({"status": "ok"})


def ready() -> Response:
    """Say whether Relay can work; 503 names what keeps it from that."""
    failing = bootstrap.readiness().failing()
    return http.reply(answers.ready(failing), 503 if failing else 200)


def metrics(_asked: Asked) -> Response:
    """Give every metric as Prometheus reads it, what this process has just counted among it."""
    counted.flush()
    return http.exact(prometheus.text(bootstrap.read_metrics().run()), prometheus.CONTENT_TYPE)


def egress_ranges() -> Response:
    """Give the address ranges that requests come from."""
    today = datetime.fromtimestamp(bootstrap.clock().now_ms() / 1000, UTC).date().isoformat()
    return http.reply(answers.egress_ranges(_announced(), today))


@cache
def _announced() -> Sequence[Mapping[str, Any]]:
    record = json.loads(resources.files("chalicelib").joinpath("egress_ranges.json").read_bytes())
    versions: Sequence[Mapping[str, Any]] = record["versions"]
    return versions


def contract(request: Request | None) -> Response:
    """Give the OpenAPI document, or 304 to whoever has it already."""
    body, etag = _contract()
    known = request.headers.get("if-none-match", "") if request is not None else ""
    headers = {"ETag": etag, "Cache-Control": "max-age=300"}
    if etag in known:
        return http.exact(b"", http.JSON, 304, headers)
    return http.exact(body, http.JSON, 200, headers)


@cache
def _contract() -> tuple[bytes, str]:
    from chalicelib.wire import openapi  # noqa: PLC0415 - no other request needs it

    body = json.dumps(openapi.document(problems.status_of)).encode()
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'
