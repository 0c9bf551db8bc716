"""The gateway gives the app what API Gateway gives a Lambda, and the caller what API Gateway would answer."""

import base64
import io
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from chalice.app import Chalice, Response

from infra.local.gateway import BODY_LIMIT, PAYLOAD_LIMIT, RAW_HEADERS, Gateway

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

EVERY_BYTE = bytes(range(256))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @property
    def document(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


class Api:
    """An app with a handful of routes, behind a gateway, called without a socket."""

    def __init__(self, binary_types: tuple[str, ...] = ("*/*",)) -> None:
        self.app = Chalice(app_name="stub", configure_logs=False)
        self.app.api.binary_types = list(binary_types)
        self.events: list[dict[str, Any]] = []
        self.contexts: list[Any] = []
        self.returns: Any = Response(b"ok", headers={"Content-Type": "text/plain"})
        every = ["*/*"]
        self.app.route("/things", methods=["GET", "POST", "HEAD"], content_types=every)(self.see)
        self.app.route("/things/{thing}", methods=["GET", "PUT"], content_types=every)(self.see_one)
        self.gateway = Gateway(self.app)

    def see(self) -> object:
        request: Any = self.app.current_request
        self.events.append(request.to_original_event())
        self.contexts.append(request.lambda_context)
        return self.returns

    def see_one(self, thing: str) -> object:
        return self.see()

    def call(
        self, method: str, target: str, body: bytes = b"", headers: tuple[tuple[str, str], ...] = ()
    ) -> Answer:
        path, _, query = target.partition("?")
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": method,
            "REQUEST_URI": target,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(body)) if body else "",
            "REMOTE_ADDR": "127.0.0.9",
            "wsgi.input": io.BytesIO(body),
            RAW_HEADERS: (("Host", "localhost:8080"), ("Accept", "*/*"), *headers),
        }
        noted: list[Any] = []
        sent = b"".join(self.gateway(environ, lambda *given: noted.extend(given)))  # type: ignore[arg-type]
        return Answer(int(noted[0].split()[0]), noted[1], sent)


@pytest.fixture
def api() -> Api:
    return Api()


def test_the_event_is_a_full_proxy_event(api: Api) -> None:
    sent = (
        ("X-One", "1"),
        ("x-one", "2"),
        ("User-Agent", "me"),
        ("Content-Type", "a/b"),
        ("Connection", "x"),
    )
    api.call("PUT", "/things/a%2Fb?q=1&q=2&empty=&plus=a+b%21", b"body", sent)
    (event,) = api.events
    assert event["resource"] == "/things/{thing}"
    assert (event["path"], event["httpMethod"]) == ("/things/a%2Fb", "PUT")
    assert event["pathParameters"] == {"thing": "a%2Fb"}
    assert event["queryStringParameters"] == {"q": "2", "empty": "", "plus": "a b!"}
    assert event["multiValueQueryStringParameters"] == {"q": ["1", "2"], "empty": [""], "plus": ["a b!"]}
    assert event["headers"]["X-One"] == "2"
    assert event["multiValueHeaders"]["X-One"] == ["1", "2"]
    assert "Connection" not in event["headers"]
    assert event["multiValueHeaders"]["X-Forwarded-For"] == ["127.0.0.9"]
    assert event["stageVariables"] is None
    context = event["requestContext"]
    assert (context["resourcePath"], context["httpMethod"], context["stage"]) == (
        "/things/{thing}",
        "PUT",
        "api",
    )
    assert context["identity"]["sourceIp"] == "127.0.0.9"
    assert context["identity"]["userAgent"] == "me"
    assert context["requestId"] == api.contexts[0].aws_request_id


def test_what_is_absent_is_null_as_on_aws(api: Api) -> None:
    api.call("GET", "/things")
    (event,) = api.events
    for key in ("queryStringParameters", "multiValueQueryStringParameters", "pathParameters", "body"):
        assert event[key] is None
    assert event["isBase64Encoded"] is False


def test_the_context_counts_down_a_minute(api: Api) -> None:
    api.call("GET", "/things")
    (context,) = api.contexts
    assert context.function_name == "stub-local"
    assert 59_000 < context.get_remaining_time_in_millis() <= 60_000
    assert context.invoked_function_arn.endswith(":function:stub-local")


def test_every_byte_comes_in_and_goes_out_as_it_is(api: Api) -> None:
    api.returns = Response(EVERY_BYTE, headers={"Content-Type": "application/octet-stream"})
    answer = api.call("POST", "/things", EVERY_BYTE, (("Content-Type", "application/json"),))
    assert base64.b64decode(api.events[0]["body"]) == EVERY_BYTE
    assert api.events[0]["isBase64Encoded"] is True
    assert answer.body == EVERY_BYTE


def test_types_that_are_not_binary_come_as_text_with_bad_bytes_replaced() -> None:
    api = Api(("application/octet-stream",))
    api.returns = Response("text")
    api.call("POST", "/things", b"caf\xc3\xa9\xff", (("Content-Type", "application/json"),))
    api.call("POST", "/things", b"\xff", (("Content-Type", "application/octet-stream; x=y"),))
    api.call("POST", "/things", b"no type at all")
    assert [event["body"] for event in api.events] == ["café\ufffd", "/w==", "no type at all"]
    assert [event["isBase64Encoded"] for event in api.events] == [False, True, False]


def test_headers_of_the_answer_may_repeat_and_say_their_request(api: Api) -> None:
    api.returns = Response(b"", headers={"Set-Cookie": ["a=1", "b=2"], "X-One": "1"}, status_code=201)
    answer = api.call("GET", "/things")
    assert answer.status == 201
    assert answer.header("Set-Cookie") == ["a=1", "b=2"]
    assert answer.header("X-One") == ["1"]
    assert answer.header("Content-Type") == ["application/json"]
    assert answer.header("x-amzn-RequestId") == [api.contexts[0].aws_request_id]


def test_an_unknown_path_is_a_404_problem(api: Api) -> None:
    answer = api.call("GET", "/nothing?secret=1")
    assert answer.header("Content-Type") == ["application/problem+json"]
    assert (answer.status, answer.document["status"], answer.document["code"]) == (404, 404, "not_found")
    assert "secret" not in answer.document["detail"]


def test_an_unknown_method_is_a_405_problem_that_names_the_others(api: Api) -> None:
    answer = api.call("DELETE", "/things/1")
    assert (answer.status, answer.document["code"]) == (405, "method_not_allowed")
    assert answer.header("Allow") == ["GET, PUT"]
    assert not api.events


def test_a_head_answer_has_the_headers_and_no_body(api: Api) -> None:
    answer = api.call("HEAD", "/things")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.header("Content-Length") == ["2"]
    assert api.call("HEAD", "/things/1").status == 405


def test_a_body_over_ten_megabytes_is_refused_before_it_is_read(api: Api) -> None:
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": "POST", "REQUEST_URI": "/things", "CONTENT_LENGTH": str(BODY_LIMIT + 1),
    }  # fmt: skip
    noted: list[Any] = []
    (body,) = api.gateway(environ, lambda *given: noted.extend(given))  # type: ignore[arg-type]
    assert noted[0].startswith("413 ")
    assert json.loads(body)["code"] == "body_too_large"


def test_what_lambda_would_not_take_is_refused(api: Api) -> None:
    fits = PAYLOAD_LIMIT * 3 // 4
    assert api.call("POST", "/things", bytes(fits)).status == 200
    assert api.call("POST", "/things", bytes(fits + 1)).status == 413
    api.returns = Response(bytes(PAYLOAD_LIMIT + 1), headers={"Content-Type": "a/b"})
    assert api.call("GET", "/things").status == 502


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"body": "no status"},
        {"statusCode": "many", "body": ""},
        {"statusCode": 200, "body": {"not": "text"}},
        {"statusCode": 200, "body": "***", "isBase64Encoded": True},
        {"statusCode": 200, "body": "", "headers": {"X": "a\r\nSet-Cookie: b"}},
    ],
)
def test_a_malformed_answer_is_a_502_problem(
    api: Api, monkeypatch: pytest.MonkeyPatch, answer: object, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(type(api.app), "__call__", lambda *_: answer)
    assert api.call("GET", "/things").document["code"] == "bad_gateway"
    line = json.loads(capsys.readouterr().err)
    assert (line["message"], line["error"]) == ("function.failed", "MalformedAnswerError")


def test_an_exception_out_of_the_function_is_logged_once_and_answered(
    api: Api, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(type(api.app), "__call__", lambda *_: 1 / 0)
    answer = api.call("GET", "/things")
    assert (answer.status, answer.document["code"]) == (502, "bad_gateway")
    line = json.loads(capsys.readouterr().err)
    assert (line["error"], line["function"], line["level"]) == ("ZeroDivisionError", "stub-local", "ERROR")
    assert "Traceback" in line["traceback"]
    assert "ZeroDivision" not in answer.document["detail"]


def test_requests_at_once_each_see_their_own() -> None:
    app = Chalice(app_name="stub", configure_logs=False)
    app.api.binary_types = ["*/*"]
    together = threading.Barrier(8)

    def mine(name: str) -> Response:
        together.wait(5)
        request: Any = app.current_request
        return Response(request.uri_params["name"].encode(), headers={"Content-Type": "a/b"})

    app.route("/{name}")(mine)
    api = Api()
    api.gateway = Gateway(app)
    seen: dict[int, bytes] = {}
    threads = [
        threading.Thread(target=lambda n=number: seen.update({n: api.call("GET", f"/{n}").body}))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {number: str(number).encode() for number in range(8)}
