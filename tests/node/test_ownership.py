"""Who owns a session when several nodes share a registry: real processes, paused, cut off and killed."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest

from tests.node.conftest import LEASE_S, ROOT, Running, StartNode, StartShared, sharing
from tests.node.cuttable import cuttable
from tests.node.paseo import Closed, Peer, RefusedError, request, ws_path


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _open(node: Running, ending: ExitStack, name: str = "s", role: str = "server") -> Peer:
    return ending.enter_context(Peer.open(node.port, ws_path(name, role, "2", "c")))


def _refused(node: Running, name: str = "s") -> tuple[int, str, str]:
    with pytest.raises(RefusedError) as refused:
        Peer.open(node.port, ws_path(name, "client", "2", "c"))
    answer = refused.value.answer
    return answer.status, answer.body, answer.headers.get("x-reroute-target", "")


def _opens(node: Running, name: str = "s") -> bool:
    try:
        Peer.open(node.port, ws_path(name, "client", "2", "c")).sock.close()
    except RefusedError:
        return False
    return True


def _together(start: StartShared, *names: str) -> list[Running]:
    with ThreadPoolExecutor(len(names)) as pool:
        return list(pool.map(lambda name: start(f"{name}:4000"), names))


def _clock_off(seconds: int) -> dict[str, str]:
    path = os.pathsep.join((str(Path(__file__).parent / "skewed"), str(ROOT)))
    return {"PYTHONPATH": path, "CLOCK_OFF_S": str(seconds)}


def _wait_until(true: Callable[[], bool], within_s: float) -> float:
    began = time.monotonic()
    while not true():
        assert time.monotonic() < began + within_s
        Event().wait(0.02)
    return time.monotonic() - began


@pytest.fixture(scope="module")
def trio(start_node: StartNode, store: str) -> list[Running]:
    """Three nodes for the tests that leave them as they were."""
    return _together(sharing(start_node, store), "one", "two", "three")


def test_a_session_of_another_node_is_answered_with_where_it_is(
    trio: list[Running], ending: ExitStack
) -> None:
    one, two, three = trio
    _open(one, ending)
    for other in (two, three):
        assert _refused(other) == (409, "", "one:4000")
    _open(two, ending, "t")
    assert _refused(one, "t") == (409, "", "two:4000")
    _open(one, ending, "s", "client")


def test_the_reroute_header_is_what_it_is_set_to(start_shared: StartShared, ending: ExitStack) -> None:
    one = start_shared("one:4000")
    two = start_shared("two:4000", reroute_header="x-elsewhere")
    _open(one, ending)
    with pytest.raises(RefusedError) as refused:
        Peer.open(two.port, ws_path("s", "client"))
    assert refused.value.answer.headers["x-elsewhere"] == "one:4000"


def test_of_many_that_race_all_get_to_the_same_node(trio: list[Running], ending: ExitStack) -> None:
    def ask(node: Running, name: str) -> str:
        try:
            ending.enter_context(Peer.open(node.port, ws_path(name, "client", "2", "c")))
        except RefusedError as refused:
            return refused.answer.headers.get("x-reroute-target", "nowhere")
        return f"{('one', 'two', 'three')[trio.index(node)]}:4000"

    with ThreadPoolExecutor(16) as pool:
        for round_ in range(8):
            name = f"race-{round_}"
            owners = list(pool.map(partial(ask, name=name), trio * 6))
            assert len(set(owners)) == 1
            assert owners[0] != "nowhere"


def test_an_idle_session_is_let_go_and_may_move(trio: list[Running]) -> None:
    one, two, _ = trio
    assert _opens(one, "idle")
    assert _refused(two, "idle") == (409, "", "one:4000")
    _wait_until(lambda: _opens(two, "idle"), 5)
    assert _refused(one, "idle") == (409, "", "two:4000")


def test_a_killed_nodes_sessions_are_taken_over_within_its_lease_and_a_second(
    start_shared: StartShared, ending: ExitStack
) -> None:
    one, two = _together(start_shared, "one", "two")
    _open(one, ending)
    one.process.kill()
    one.process.wait(10)
    assert _wait_until(lambda: _opens(two), LEASE_S + 5) < LEASE_S + 1


def test_a_node_that_ends_in_order_leaves_its_sessions_at_once(start_shared: StartShared) -> None:
    one, two = _together(start_shared, "one", "two")
    assert _opens(one)
    one.terminate()
    one.process.wait(10)
    assert _wait_until(lambda: _opens(two), 5) < LEASE_S


def test_a_paused_node_closes_its_sockets_before_it_serves_again(
    start_shared: StartShared, ending: ExitStack
) -> None:
    one, two = _together(start_shared, "one", "two")
    data, client = _open(one, ending), _open(one, ending, role="client")
    client.send("before")
    assert data.message().text == "before"
    one.process.send_signal(signal.SIGSTOP)
    _wait_until(lambda: _opens(two), LEASE_S + 5)
    client.send("while it was paused")
    data.send("while it was paused")
    one.process.send_signal(signal.SIGCONT)
    for each in (data, client):
        assert each.closed() == Closed(1012, "Session owner moved")


def test_a_paused_node_closes_its_sockets_also_when_a_message_is_under_way(
    start_shared: StartShared, ending: ExitStack
) -> None:
    one = start_shared("one:4000")
    path = ws_path("s", "server", "2", "c")
    ending.enter_context(Peer.open(one.port, path, receive_buffer=4_096))
    client, other = _open(one, ending, role="client"), _open(one, ending, "t")
    client.send(b"z" * (8 << 20))
    client.send("behind it")
    one.process.send_signal(signal.SIGSTOP)
    Event().wait(LEASE_S)
    one.process.send_signal(signal.SIGCONT)
    for each in (client, other):
        assert each.closed() == Closed(1012, "Session owner moved")
    _wait_until(lambda: _opens(one), 5)


def test_clocks_that_differ_by_ten_seconds_give_a_session_no_second_owner(
    start_shared: StartShared, store: str, ending: ExitStack
) -> None:
    """The leases are long here: what the store's `Date` says is a second's matter."""
    leases = {"lease_ms": 4_500, "lease_renewal_ms": 1_000, "clock_skew_ms": 2_000}
    with cuttable(urlsplit(store).port or 0) as way, ThreadPoolExecutor(2) as pool:
        slow, fast = _clock_off(-5), _clock_off(5)
        cut_off = [
            start_shared("cut:4000", store_port=way.port, also=also, **leases) for also in (slow, fast)
        ]
        others = [start_shared("other:4000", also=also, **leases) for also in (fast, slow)]
        sockets = [_open(node, ending, f"s{number}") for number, node in enumerate(cut_off)]
        for number, other in enumerate(others):
            assert _refused(other, f"s{number}") == (409, "", "cut:4000")
        way.cut()

        def moved_in_order(number: int) -> bool:
            with ThreadPoolExecutor(1) as own:
                taking = own.submit(_wait_until, lambda: _opens(others[number], f"s{number}"), 12)
                told = sockets[number].closed(12) == Closed(1012, "Session owner moved")
                return told and not taking.done() and taking.result(12) > 0

        assert list(pool.map(moved_in_order, range(2))) == [True, True]


def test_a_rush_of_claims_costs_no_lease(start_shared: StartShared, store: str, ending: ExitStack) -> None:
    with cuttable(urlsplit(store).port or 0) as way:
        one = start_shared(
            "one:4000", store_port=way.port, capacity_mutation_timeout_ms=3_000, lease_ms=2_500
        )
        data, client = _open(one, ending), _open(one, ending, role="client")
        way.slow(0.05)
        with ThreadPoolExecutor(60) as pool:
            list(pool.map(partial(_opens, one), [f"rush-{number}" for number in range(60)]))
        client.send("still here")
        assert data.message().text == "still here"
        assert request(one.port, "/ready").status == 200


def test_a_node_cut_off_from_the_store_closes_its_sockets_before_another_may_own_them(
    start_shared: StartShared, store: str, ending: ExitStack
) -> None:
    with cuttable(urlsplit(store).port or 0) as way:
        one = start_shared("one:4000", store_port=way.port)
        two = start_shared("two:4000")
        data = _open(one, ending)
        way.cut()
        moved: list[float] = []

        def watch() -> None:
            assert data.closed(LEASE_S + 5) == Closed(1012, "Session owner moved")
            moved.append(time.monotonic())

        with ThreadPoolExecutor(1) as pool:
            watching = pool.submit(watch)
            _wait_until(lambda: _opens(two), LEASE_S + 5)
            taken = time.monotonic()
            watching.result(10)
        assert moved[0] < taken
        assert request(one.port, "/ready").status == 503
        assert _refused(one, "new") == (503, "owner", "")
        way.mend()
        _wait_until(lambda: request(one.port, "/ready").status == 200, 10)
        assert _refused(one) == (409, "", "two:4000")


def test_below_its_floor_a_cluster_takes_no_new_session_but_keeps_those_it_has(
    start_shared: StartShared, ending: ExitStack
) -> None:
    one = start_shared("one:4000", min_cluster_size=2)
    assert _refused(one) == (503, "cluster", "")
    assert request(one.port, "/ready").status == 503
    two = start_shared("two:4000")
    _wait_until(lambda: request(one.port, "/ready").status == 200, 5)
    data, client = _open(one, ending), _open(one, ending, role="client")
    two.process.kill()
    _wait_until(lambda: request(one.port, "/ready").status == 503, LEASE_S + 5)
    assert _refused(one, "new") == (503, "cluster", "")
    client.send("still here")
    assert data.message().text == "still here"
    _open(one, ending, role="client")


def test_a_node_that_is_told_to_stop_lets_sessions_finish_and_takes_no_new_one(
    start_shared: StartShared, ending: ExitStack
) -> None:
    one = start_shared("one:4000", drain_timeout_ms=1_500)
    data, client = _open(one, ending), _open(one, ending, role="client")
    one.terminate()
    _wait_until(lambda: request(one.port, "/ready").status == 503, 5)
    assert _refused(one, "new") == (503, "draining", "")
    client.send("last words")
    assert data.message().text == "last words"
    for each in (data, client):
        assert each.closed(5) == Closed(1012, "Session expired")
        each.sock.close()
    assert one.process.wait(10) == 0
