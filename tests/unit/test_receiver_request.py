"""The receiver's request reader: bytes in, requests out."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.receiver.request import (
    BadQueryError,
    MalformedRequestError,
    Request,
    RequestReader,
    parse_target,
)

POST = b"POST /verify/a?ms=5 HTTP/1.1\r\nHost: x\r\nRelay-Attempt: 2\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED_HEAD = b"POST /sink HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = CHUNKED_HEAD + b"5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nTrailer: a\r\n\r\n"


def read_all(stream: bytes, cuts: list[int]) -> list[Request]:
    reader, found, edges = RequestReader(), [], [0, *sorted(cuts), len(stream)]
    for start, end in pairwise(edges):
        reader.feed(stream[start:end])
        while (request := reader.next()) is not None:
            found.append(request)
    return found


def test_a_request_is_given_with_its_exact_head_and_body() -> None:
    (request,) = read_all(POST, [])
    assert (request.method, request.body, request.keep_alive) == ("POST", b"hello", True)
    assert request.headers == {"host": "x", "relay-attempt": "2", "content-length": "5"}
    assert request.head == POST.partition(b"\r\n\r\n")[0]
    assert (request.target.family, request.target.rest, request.target.query) == ("verify", "a", {"ms": "5"})


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2 * len(POST) + len(CHUNKED)), max_size=8))
def test_it_does_not_matter_where_the_stream_is_cut(cuts: list[int]) -> None:
    bodies = [request.body for request in read_all(POST + CHUNKED + POST, cuts)]
    assert bodies == [b"hello", b"hello!", b"hello"]


@pytest.mark.parametrize(
    "head, status",
    [
        (b"SSH-2.0-x", 400),
        (b"GET / HTTP/2.0", 400),
        (b"GET / HTTP/1.1\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\nbad name: x", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: +5", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff", 413),
        (b"GET / HTTP/1.1\r\nContent-Length: 99999999999", 413),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 140_000, 431),
    ],
)
def test_what_is_no_request_is_refused_with_a_status(head: bytes, status: int) -> None:
    with pytest.raises(MalformedRequestError) as refused:
        read_all(head + b"\r\n\r\n", [])
    assert refused.value.status == status


def test_an_endless_head_is_refused_before_it_ends() -> None:
    reader = RequestReader()
    reader.feed(b"GET / HTTP/1.1\r\nX: " + b"a" * 140_000)
    with pytest.raises(MalformedRequestError, match="at most"):
        reader.next()


def test_a_client_that_waits_for_continue_is_noticed_once() -> None:
    reader = RequestReader()
    reader.feed(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert reader.next() is None
    assert reader.wants_continue
    reader.feed(b"a")
    assert reader.next() is None
    assert not reader.wants_continue


@pytest.mark.parametrize(
    "line, headers, keep_alive",
    [
        (b"GET / HTTP/1.1", b"", True),
        (b"GET / HTTP/1.1", b"\r\nConnection: Close", False),
        (b"GET / HTTP/1.0", b"", False),
        (b"GET / HTTP/1.0", b"\r\nConnection: keep-alive", True),
        (b"HEAD / HTTP/1.1", b"", False),
    ],
)
def test_the_connection_stays_when_the_client_can_keep_it(
    line: bytes, headers: bytes, *, keep_alive: bool
) -> None:
    (request,) = read_all(line + headers + b"\r\n\r\n", [])
    assert request.keep_alive is keep_alive


def test_an_absolute_target_means_its_path() -> None:
    assert parse_target("http://127.0.0.1:9099/slow/a%20b?ms=1").path == "/slow/a b"


@pytest.mark.parametrize("text", ["x", "-1", "nan", "inf"])
def test_a_parameter_that_is_no_number_is_named(text: str) -> None:
    with pytest.raises(BadQueryError, match="ms must be a number"):
        parse_target(f"/slow?ms={text}").number("ms", 0)
