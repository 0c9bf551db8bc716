"""The misbehaving receiver over real sockets: the other tests can only trust what these hold it to."""

import base64
import hashlib
import hmac
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from tests.receiver import Receiver
from tests.receiver.certificate import self_signed

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
DEADLINE_S = 10


@pytest.fixture(scope="module")
def running() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def receiver(running: Receiver) -> Receiver:
    running.reset()
    return running


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=DEADLINE_S, trust_env=False) as client:
        yield client


def connect(receiver: Receiver) -> socket.socket:
    return socket.create_connection(("127.0.0.1", receiver.port), DEADLINE_S)


def post(target: str, body: bytes = b"{}") -> bytes:
    return f"POST {target} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def read_to_end(sock: socket.socket) -> bytes:
    got = b""
    while piece := sock.recv(65536):
        got += piece
    return got


def wire(receiver: Receiver, target: str) -> bytes:
    """Give all that comes back on a connection that the receiver closes."""
    with connect(receiver) as sock:
        sock.sendall(post(target))
        return read_to_end(sock)


def signed(body: bytes, *, secret: str = SECRET, at: int | None = None) -> dict[str, str]:
    stamp = str(int(time.time()) if at is None else at)
    digest = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {
        "Relay-Delivery-Id": "d-1",
        "Relay-Event-Id": "evt_1",
        "Relay-Attempt": "2",
        "Relay-Timestamp": stamp,
        "Relay-Signature": f"v1={digest}",
    }


def test_a_signed_delivery_is_verified_and_seen(receiver: Receiver, client: httpx.Client) -> None:
    body = '{"t":"😊 café"}'.encode()
    client.post(receiver.url("/secret"), json={"secret": SECRET}).raise_for_status()
    assert client.post(receiver.url("/verify"), content=body, headers=signed(body)).status_code == 200
    (seen,) = client.get(receiver.url("/received?delivery_id=d-1")).json()
    assert (seen["verified"], seen["event_id"], seen["attempt"]) == (True, "evt_1", 2)
    assert base64.b64decode(seen["body_base64"]) == body
    assert seen["body_text"] == body.decode()
    assert seen["headers"]["relay-attempt"] == "2"
    assert "Relay-Attempt: 2" in seen["header_lines"]
    assert abs(seen["received_at"] - time.time() * 1000) < 60_000
    assert seen["answered_mono_ms"] >= seen["received_mono_ms"]


def test_an_unknown_secret_or_an_old_stamp_is_401_with_the_reason(
    receiver: Receiver, client: httpx.Client
) -> None:
    receiver.add_secret(SECRET)
    foreign = client.post(receiver.url("/verify"), content=b"{}", headers=signed(b"{}", secret="whsec_other"))
    old = client.post(receiver.url("/verify"), content=b"{}", headers=signed(b"{}", at=1))
    assert (foreign.status_code, old.status_code) == (401, 401)
    assert "none of the 1 registered secrets" in foreign.json()["reason"]
    assert "300 s are allowed" in old.json()["reason"]
    assert [seen["unverified_because"] for seen in receiver.received(verified=False)] == [
        foreign.json()["reason"],
        old.json()["reason"],
    ]


def test_secrets_are_many_and_can_be_dropped(receiver: Receiver, client: httpx.Client) -> None:
    url = receiver.url("/secret")
    client.post(url, json={"secret": SECRET, "endpoint": "a"})
    client.post(url, json={"secret": "whsec_other"})
    assert client.get(url).json() == {"secrets": 2, "endpoints": ["a"]}
    assert client.post(receiver.url("/verify/b"), content=b"{}", headers=signed(b"{}")).status_code == 401
    assert client.post(receiver.url("/verify/a"), content=b"{}", headers=signed(b"{}")).status_code == 200
    client.request("DELETE", url, json={"secret": SECRET})
    assert client.get(url).json() == {"secrets": 1, "endpoints": []}


@pytest.mark.parametrize(
    "body, said",
    [(b"x", "not JSON"), (b"[]", "JSON object"), (b"{}", "secret"), (b'{"secret":"s"}', "whsec_")],
)
def test_what_is_no_secret_is_400(receiver: Receiver, client: httpx.Client, body: bytes, said: str) -> None:
    refused = client.post(receiver.url("/secret"), content=body)
    assert refused.status_code == 400
    assert said in refused.text


@pytest.mark.parametrize(
    "target, status, header",
    [
        ("/sink/any/suffix", 200, ("content-length", "3")),
        ("/always500", 500, ("content-length", "11")),
        ("/gone", 410, ("content-length", "5")),
        ("/429?retry_after=1m0s", 429, ("retry-after", "1m0s")),
        ("/status/503?retry_after=7&body=x", 503, ("retry-after", "7")),
        ("/status/999", 999, ("content-length", "0")),
        ("/status/204", 204, ("content-length", None)),
        ("/redirect?to=http://127.0.0.1:1/&code=302", 302, ("location", "http://127.0.0.1:1/")),
        ("/redirect?to=/sink", 307, ("location", "/sink")),
        ("/flaky?pct=100", 500, ("content-length", "6")),
        ("/flaky?pct=0", 200, ("content-length", "3")),
        ("/slow?ms=1", 200, ("content-length", "3")),
    ],
)
def test_plain_routes(
    receiver: Receiver, client: httpx.Client, target: str, status: int, header: tuple[str, str | None]
) -> None:
    answer = client.post(receiver.url(target), content=b"{}")
    assert (answer.status_code, answer.headers.get(header[0])) == (status, header[1])
    (seen,) = receiver.received()
    assert (seen["target"], seen["status"], seen["outcome"]) == (target, status, "answered")


def test_retry_after_can_be_a_date(receiver: Receiver, client: httpx.Client) -> None:
    answer = client.post(receiver.url("/429?retry_after_date=3600"))
    assert answer.headers["retry-after"].endswith(" GMT")


def test_flaky_fails_the_same_deliveries_in_every_run(client: httpx.Client) -> None:
    def run(seed: int) -> list[int]:
        with Receiver(seed=seed) as receiver:
            return [client.post(receiver.url("/flaky?pct=50")).status_code for _ in range(40)]

    first = run(1)
    assert 5 < first.count(500) < 35
    assert run(1) == first
    assert run(2) != first


def test_toggles_are_switched_apart(receiver: Receiver, client: httpx.Client) -> None:
    client.post(receiver.url("/toggle/a?to=down")).raise_for_status()
    statuses = [client.post(receiver.url(f"/toggle{key}")).status_code for key in ("", "/a", "/b")]
    assert statuses == [200, 503, 200]
    receiver.toggle("flip", "a")
    receiver.toggle("418", "b")
    assert [client.post(receiver.url(f"/toggle/{key}")).status_code for key in "ab"] == [200, 418]
    assert client.post(receiver.url("/toggle?to=sideways")).status_code == 400
    assert len(receiver.received()) == 5


def test_a_script_is_answered_in_turn(receiver: Receiver, client: httpx.Client) -> None:
    url = receiver.script(
        "a/b", {"status": 500}, {"status": 503, "headers": {"Retry-After": "2"}}, {"status": 200}
    )
    assert [client.post(url).status_code for _ in range(4)] == [500, 503, 200, 200]
    posted = {"key": "c", "answers": [{"raw_b64": base64.b64encode(b"HTTP/1.0 600 Odd\r\n\r\n").decode()}]}
    client.post(receiver.url("/script"), json=posted).raise_for_status()
    assert wire(receiver, "/script/c") == b"HTTP/1.0 600 Odd\r\n\r\n"
    assert client.post(receiver.url("/script/none")).status_code == 404
    assert client.post(receiver.url("/script"), json={"key": "c", "answers": [{}, 1]}).status_code == 400


def test_a_hanging_delivery_is_in_flight_until_the_client_leaves(receiver: Receiver) -> None:
    with connect(receiver) as sock:
        sock.sendall(post("/hang"))
        receiver.wait_for(path="/hang", outcome="open")
        assert receiver.stats()["paths"]["/hang"]["in_flight"] == 1
    (left,) = receiver.wait_for(path="/hang", outcome="left")
    assert (left["status"], left["bytes_written"]) == (None, 0)
    assert receiver.stats()["paths"]["/hang"]["in_flight"] == 0


def test_a_reset_forgets_all_and_lets_go_of_who_hangs(receiver: Receiver, client: httpx.Client) -> None:
    receiver.add_secret(SECRET)
    with connect(receiver) as sock:
        sock.sendall(post("/hang"))
        receiver.wait_for(path="/hang")
        client.post(receiver.url("/reset?keep=secrets")).raise_for_status()
        assert sock.recv(1) == b""
    assert receiver.received() == []
    assert client.get(receiver.url("/secret")).json()["secrets"] == 1
    client.post(receiver.url("/reset")).raise_for_status()
    assert client.get(receiver.url("/secret")).json()["secrets"] == 0
    assert receiver.stats()["paths"] == {}


@pytest.mark.parametrize("mode", ["length", "chunked"])
def test_a_big_body_is_counted_as_the_socket_took_it(
    receiver: Receiver, client: httpx.Client, mode: str
) -> None:
    whole = client.post(receiver.url(f"/bigbody?kb=300&mode={mode}"))
    assert whole.content == b"x" * 300 * 1024
    assert receiver.wait_for(outcome="answered")[0]["bytes_written"] > 300 * 1024
    receiver.reset()
    with connect(receiver) as sock:
        sock.sendall(post(f"/bigbody?kb=8192&mode={mode}"))
        assert sock.recv(2048).startswith(b"HTTP/1.1 200 OK")
    (left,) = receiver.wait_for(outcome="left")
    assert 0 < left["bytes_written"] < 1024 * 1024


@pytest.mark.parametrize(
    "where, start",
    [
        ("status", b"HTTP/1.1 200 xx"),
        ("headers", b"HTTP/1.1 200 OK\r\nX-Drip: xx"),
        ("body", b"HTTP/1.1 200 OK\r\n"),
    ],
)
def test_a_trickle_comes_byte_by_byte_and_never_ends(receiver: Receiver, where: str, start: bytes) -> None:
    with connect(receiver) as sock:
        sock.sendall(post(f"/trickle?ms=1&in={where}"))
        got = b""
        while len(got) < 100:
            got += sock.recv(4096)
    assert got.startswith(start)
    assert receiver.wait_for(outcome="left")[0]["bytes_written"] >= 100


def test_wrong_ends_of_a_connection(receiver: Receiver) -> None:
    with connect(receiver) as sock:
        sock.sendall(post("/rst"))
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    assert wire(receiver, "/close") == b""
    assert wire(receiver, "/cut") == b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nok"
    assert wire(receiver, "/cut?mode=chunked").endswith(b"\r\n\r\n32\r\nok")
    assert wire(receiver, "/stale?ms=1").endswith(b"\r\n\r\nok\n")
    assert [seen["outcome"] for seen in receiver.received()] == ["cut", "cut", "cut", "cut", "answered"]


def test_raw_answers_exactly_the_bytes_given(receiver: Receiver) -> None:
    odd = b"HTTP/1.1 200\r\nX-A: a\x01b\r\nX-B: caf\xe9\r\nContent-Encoding: gzip\r\n\r\nok"
    query = urlencode({"b64": base64.b64encode(odd).decode()})
    assert wire(receiver, f"/raw?{query}") == odd


def test_requests_on_one_connection_are_answered_in_turn(receiver: Receiver) -> None:
    with connect(receiver) as sock:
        sock.sendall(post("/slow?ms=20") + post("/status/418") + post("/close"))
        got = read_to_end(sock)
    assert got.index(b"HTTP/1.1 200") < got.index(b"HTTP/1.1 418")
    assert [seen["in_flight"] for seen in receiver.received()] == [1, 1, 1]
    assert receiver.stats()["accepts"] == 1


def test_connections_are_counted_apart_for_each_path(receiver: Receiver, client: httpx.Client) -> None:
    for _ in range(3):
        client.post(receiver.url("/sink/a"))
    wire(receiver, "/cut")
    stats = client.get(receiver.url("/stats")).json()
    assert stats["accepts"] == 2
    assert (stats["paths"]["/sink/a"]["count"], stats["paths"]["/sink/a"]["connections"]) == (3, 1)


def test_the_log_is_counted_limited_and_paged(receiver: Receiver, client: httpx.Client) -> None:
    for index in range(5):
        client.post(receiver.url(f"/sink/{index % 2}"), headers={"Relay-Event-Id": str(index)})
    assert client.get(receiver.url("/received?count=1&path=/sink/0")).json() == {"count": 3}
    last = client.get(receiver.url("/received?limit=2&brief=1")).json()
    assert [seen["event_id"] for seen in last] == ["3", "4"]
    assert "headers" not in last[0]
    page = client.get(receiver.url(f"/received?limit=1&after={last[0]['number']}")).json()
    assert [seen["event_id"] for seen in page] == ["4"]


@pytest.mark.parametrize(
    "target, status, said",
    [
        ("/nowhere", 404, "GET / lists them"),
        ("/slow?ms=soon", 400, "ms must be a number"),
        ("/trickle?in=tail", 400, "body, headers, status"),
        ("/status/1000", 400, "100 to 999"),
        ("/redirect", 400, "to="),
        ("/received?verified=perhaps", 400, "true, false"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(
    receiver: Receiver, client: httpx.Client, target: str, status: int, said: str
) -> None:
    answer = client.post(receiver.url(target))
    assert answer.status_code == status
    assert said in answer.text


def test_the_first_page_lists_every_route(receiver: Receiver, client: httpx.Client) -> None:
    page = client.get(receiver.url("/")).text
    assert "/verify[/<endpoint>]" in page
    assert "POST /secret" in page


def test_what_is_not_http_is_told_so_and_closed(receiver: Receiver) -> None:
    with connect(receiver) as sock:
        sock.sendall(b"SSH-2.0-x\r\n\r\n")
        assert read_to_end(sock).startswith(b"HTTP/1.1 400 ")


def test_a_client_that_asks_for_continue_gets_it(receiver: Receiver) -> None:
    with connect(receiver) as sock:
        sock.sendall(
            b"POST /sink HTTP/1.1\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"
        )
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"hi")
        assert read_to_end(sock).startswith(b"HTTP/1.1 200 OK")


def test_waiting_in_vain_says_how_many_came(receiver: Receiver) -> None:
    with pytest.raises(TimeoutError, match="0 of 2 deliveries"):
        receiver.wait_for(2, timeout_s=0.01)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Give a certificate of 127.0.0.1, signed by itself, and its key."""
    return self_signed(tmp_path)


def test_tls_is_served_with_the_given_context(certificate: tuple[Path, Path]) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    trust = ssl.create_default_context(cafile=str(certificate[0]))
    with Receiver(ssl_context=server) as receiver, httpx.Client(verify=trust, trust_env=False) as client:
        for target, status in (("/sink", 200), ("/slow?ms=1", 200), ("/bigbody?kb=64", 200), ("/gone", 410)):
            assert client.post(receiver.url(target), content=b"{}").status_code == status
        with pytest.raises(httpx.TransportError):
            client.post(receiver.url("/rst"))
        assert receiver.stats()["accepts"] == 1


@pytest.fixture
def program(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    log = tmp_path / "deliveries.jsonl"
    command = [sys.executable, "-m", "tests.receiver", "--port", "0", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()[2], log
        process.kill()


def test_the_file_survives_a_kill_and_holds_what_was_answered(
    program: tuple[subprocess.Popen[str], str, Path], client: httpx.Client
) -> None:
    process, address, log = program
    client.post(f"{address}/verify", content=b"{}", headers=signed(b"{}"))
    client.post(f"{address}/slow?ms=1", content=b"{}")
    process.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["target"], line["status"]) for line in lines] == [("/verify", 401), ("/slow?ms=1", None)]
    assert lines[0]["body_sha256"] == hashlib.sha256(b"{}").hexdigest()


def test_the_program_ends_quietly_when_asked(program: tuple[subprocess.Popen[str], str, Path]) -> None:
    process, _, _ = program
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_S) == 0


def test_a_taken_port_is_one_sentence(receiver: Receiver) -> None:
    command = [sys.executable, "-m", "tests.receiver", "--port", str(receiver.port)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert ended.returncode == 1
    assert ended.stderr == f"The receiver cannot start on 127.0.0.1:{receiver.port}: the port is taken.\n"
    with pytest.raises(OSError, match="address already in use"), Receiver(port=receiver.port):
        pass
