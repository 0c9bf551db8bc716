"""Endpoints: which headers they may add, which secrets sign, how many lanes they have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.endpoint import Limits, Ordering, WrappedSecret, header_fault
from chalicelib.domain.secret import Secret
from tests.unit.domain.examples import FEW, endpoint


@pytest.mark.parametrize(
    "name, value",
    [
        ("Authorization", "Bearer abc.def"),
        ("X-Api-Key", "k"),
        ("x_team", "a\tb  c"),
        ("X-Relay", "1"),
        ("X-" + "a" * 126, "!~"),
        ("X-Long", "x" * 2_048),
    ],
)
def test_ordinary_custom_headers_may_be_sent(name: str, value: str) -> None:
    assert header_fault(name, value) is None


@pytest.mark.parametrize(
    "value",
    [
        "a\r\nX-Evil: 1",
        "a\n b",
        "a\x00b",
        "a\r",
        "a\n",
        "\x7f",
        "caf\xe9",
        "😱",
        " a",
        "a ",
        "a\t",
        "",
        "x" * 2_049,
    ],
)
def test_f039_a_value_that_would_break_a_request_is_refused_when_it_is_set(value: str) -> None:
    fault = header_fault("X-Team", value)
    assert fault is not None
    assert "value" in fault


@pytest.mark.parametrize("name", ["bad name", "", "X:Y", "X\r\nY", "X\n", "caf\xe9", "X-" + "a" * 127, "x;y"])
def test_f039_a_name_that_is_no_header_name_is_refused(name: str) -> None:
    fault = header_fault(name, "1")
    assert fault is not None
    assert "name" in fault


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-LENGTH",
        "Transfer-Encoding",
        "Content-Encoding",
        "Connection",
        "Upgrade",
        "TE",
        "Trailer",
        "Expect",
        "Keep-Alive",
        "Cookie",
        "Proxy-Authorization",
        "Relay-Anything",
        "WEBHOOK-ID",
        "webhook-anything",
    ],
)
def test_f039_headers_that_frame_the_request_or_are_ours_are_refused(name: str) -> None:
    fault = header_fault(name, "1")
    assert fault is not None
    assert "does not set itself" in fault


@FEW
@given(st.text(max_size=30), st.text(max_size=30))
def test_f039_what_is_allowed_can_always_be_written_on_one_line(name: str, value: str) -> None:
    if header_fault(name, value) is None:
        line = f"{name}: {value}"
        assert line.isascii()
        assert len(line.splitlines()) == 1
        assert line.split(": ", 1) == [name.strip(), value.strip()]


def test_a_secret_signs_until_the_second_it_expires_in() -> None:
    newest, previous = WrappedSecret(b"new"), WrappedSecret(b"old", expires_at=1_000)
    rotated = endpoint(secrets=(newest, previous))
    assert rotated.live_secrets(999) == (newest, previous)
    assert rotated.live_secrets(1_000) == (newest,)


@pytest.mark.parametrize("cap, lanes", [(1, 1), (8, 1), (10, 1), (11, 2), (20, 2), (21, 3), (1_000, 100)])
def test_ten_requests_at_once_share_a_lane(cap: int, lanes: int) -> None:
    assert Limits(max_concurrency=cap).lanes == lanes


def test_an_endpoint_shown_in_an_error_has_no_secret_and_no_header_value() -> None:
    shown = repr(
        endpoint(secrets=(WrappedSecret(b"c1pher"),), headers=(("Authorization", Secret("Bearer s3cr3t")),))
    )
    assert "c1pher" not in shown
    assert "s3cr3t" not in shown


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert Limits() == Limits(rate_per_second=10, burst=20, max_concurrency=8)


@pytest.mark.parametrize("cap, lanes", [(8, ("0",)), (25, ("0", "1", "2"))])
def test_an_ordered_endpoint_has_one_lane_whatever_its_cap(cap: int, lanes: tuple[str, ...]) -> None:
    of = endpoint(limits=Limits(max_concurrency=cap))
    assert (of.ordered, of.lanes) == (False, lanes)
    ordered = endpoint(limits=Limits(max_concurrency=cap), ordering=Ordering.ENDPOINT)
    assert (ordered.ordered, ordered.lanes) == (True, ("o0",))
