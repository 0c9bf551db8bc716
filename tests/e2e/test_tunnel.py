"""Tunnels on the whole stack: an endpoint's webhooks brought to a developer's machine by `relay listen`."""

import base64
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import pytest

from infra.local.emulator import free_port
from tests.e2e.customer import Customer, Hook
from tests.e2e.stack import Ports, RelayStack
from tests.receiver.verify import check, make_secret

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayStack]:
    with RelayStack(tmp_path_factory.mktemp("tunnels"), ports=Ports(node=free_port())) as stack:
        yield stack


@pytest.fixture
def customer(stack: RelayStack) -> Iterator[Customer]:
    with Customer(stack) as customer:
        yield customer


class Listening:
    """`relay listen` as a process; its lines are read as they come."""

    def __init__(self, stack: RelayStack, forward: str, *options: str) -> None:
        command = [
            sys.executable,
            "-m",
            "chalicelib.cli",
            "listen",
            "--api",
            stack.api_url,
            "--forward",
            forward,
        ]
        self.process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(10)
        for each in (self.process.stdout, self.process.stderr):
            assert each is not None
            each.close()

    def line(self, having: str) -> str:
        """Wait for a line that has these words."""
        while True:
            line = self._lines.get(timeout=PATIENCE_S)
            if having in line:
                return line

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)


@contextmanager
def _listening(stack: RelayStack, hook: Hook, path: str = "/verify", *options: str) -> Iterator[Listening]:
    with Listening(stack, stack.receiver_url + path, "--endpoint", hook.id, *options) as listening:
        listening.line("Listening at")
        yield listening


def _held_for(customer: Customer, hook: Hook) -> str:
    health = customer.api.get(f"/v1/endpoints/{hook.id}/health").json()
    return health["hold"]["reason"] if health["hold"] else ""


@pytest.fixture
def tunnel(customer: Customer) -> Hook:
    return customer.hook("tunnel:", transport="tunnel")


def test_a_delivery_comes_to_the_local_server_as_it_was_signed_and_its_answer_goes_back(
    stack: RelayStack, customer: Customer, tunnel: Hook
) -> None:
    body = b'{"amount": "30,40 \xe2\x82\xac", "n":   1}'
    with _listening(stack, tunnel) as listening:
        delivery_id = customer.post(tunnel.type, body).delivery_id
        line = listening.line(delivery_id)
        ended = customer.ended(delivery_id)
    for words in (tunnel.type, "attempt 1", "200", "ms"):
        assert words in line
    assert ended["status"] == "succeeded"
    (attempt,) = ended["attempts"]
    assert (attempt["outcome"], attempt["status"]) == ("success", 200)
    (seen,) = customer.received(delivery_id=delivery_id)
    assert base64.b64decode(seen["body_base64"]) == body
    assert check(
        seen["headers"], body, [make_secret(tunnel.secret)], int(seen["received_at"] / 1000)
    ).verified
    shown = customer.api.get(f"/v1/deliveries/{delivery_id}/request").json()
    arrived = {name.lower(): value for name, value in dict(seen["headers"]).items()}
    assert arrived.pop("host").startswith("127.0.0.1:")
    assert arrived == {each["name"].lower(): each["value"] for each in shown["request"]["headers"]}


def test_where_nobody_listens_a_delivery_is_held_and_goes_when_somebody_comes(
    stack: RelayStack, customer: Customer, tunnel: Hook
) -> None:
    delivery_id = customer.post(tunnel.type).delivery_id
    stack.until(lambda: _held_for(customer, tunnel) == "no_listener", PATIENCE_S)
    assert customer.delivery(delivery_id)["attempts"] == []
    with _listening(stack, tunnel, "/verify", "--json") as listening:
        told = json.loads(listening.line(delivery_id))
        (attempt,) = customer.ended(delivery_id)["attempts"]
    assert (told["attempt"], told["status"], told["fault"]) == (1, 200, None)
    assert attempt["held_for"] == "no_listener"


def test_an_ordered_tunnel_keeps_its_order_also_of_what_was_held_and_takes_replays_and_tests(
    stack: RelayStack, customer: Customer
) -> None:
    tunnel = customer.hook("tunnel:", transport="tunnel", ordering="endpoint")
    ids = [customer.post(tunnel.type).delivery_id for _ in range(5)]
    stack.until(lambda: _held_for(customer, tunnel) == "no_listener", PATIENCE_S)
    health = customer.api.get(f"/v1/endpoints/{tunnel.id}/health").json()
    assert health["breaker"]["state"] == "closed"
    with _listening(stack, tunnel, "/verify", "--json") as listening:
        told = [json.loads(listening.line('"attempt"')) for _ in ids]
        assert [(each["delivery_id"], each["attempt"]) for each in told] == [(each, 1) for each in ids]
        customer.all_ended(tunnel.id, 5)
        customer.api.post(f"/v1/deliveries/{ids[0]}/replay", json={}).raise_for_status()
        assert json.loads(listening.line('"attempt"'))["delivery_id"] == ids[0]
        tested = customer.api.post(f"/v1/endpoints/{tunnel.id}/test", json={}).json()
        assert json.loads(listening.line('"attempt"'))["delivery_id"] == tested["delivery_id"]


def test_what_the_local_server_does_is_the_attempts_outcome(
    stack: RelayStack, customer: Customer, tunnel: Hook
) -> None:
    with _listening(stack, tunnel, "/status/422") as listening:
        refused = customer.post(tunnel.type).delivery_id
        assert "422" in listening.line(refused)
        assert customer.ended(refused)["attempts"][0]["outcome"] == "permanent"
    with Listening(stack, "http://127.0.0.1:9/", "--endpoint", tunnel.id) as listening:
        listening.line("Listening at")
        nowhere = customer.post(tunnel.type).delivery_id
        assert "connect_failed" in listening.line(nowhere)
        attempt = customer.tried(nowhere)["attempts"][0]
    assert (attempt["outcome"], attempt["fault"]) == ("retryable", "connect_failed")


def test_a_newer_listener_takes_over_and_the_older_says_so_and_ends(
    stack: RelayStack, customer: Customer, tunnel: Hook
) -> None:
    with _listening(stack, tunnel) as older, _listening(stack, tunnel) as newer:
        assert older.process.wait(PATIENCE_S) == 1
        assert older.process.stderr is not None
        assert older.process.stderr.read() == "Another listener has taken over this tunnel: this one ends.\n"
        delivery_id = customer.post(tunnel.type).delivery_id
        newer.line(delivery_id)


def test_a_listener_comes_back_when_the_node_does(
    stack: RelayStack, customer: Customer, tunnel: Hook
) -> None:
    with _listening(stack, tunnel) as listening:
        stack.kill("node")
        listening.line("trying again")
        listening.line("Listening at")
        delivery_id = customer.post(tunnel.type).delivery_id
        listening.line(delivery_id)
        assert customer.ended(delivery_id)["status"] == "succeeded"


def test_a_tunnel_is_made_once_and_taken_up_again(stack: RelayStack, customer: Customer) -> None:
    event_types = f"made.{free_port()}.here"
    ids = []
    for made in (True, False):
        with Listening(stack, stack.receiver_url + "/sink", "--events", event_types) as listening:
            line = listening.line("Made the tunnel" if made else "Listening at")
            ids.append(next(word.strip(".;") for word in line.split() if word.startswith("ep_")))
    assert ids[0] == ids[1]


@pytest.mark.parametrize("options, words", [(("--endpoint", "ep_nonsense"), "The API says: ")])
def test_what_cannot_be_listened_at_is_told_in_a_sentence(
    stack: RelayStack, options: tuple[str, ...], words: str
) -> None:
    command = [sys.executable, "-m", "chalicelib.cli", "listen", "--forward", "http://localhost:1/", *options]
    done = subprocess.run(
        [*command, "--api", stack.api_url], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(words)
    assert len(done.stderr.splitlines()) == 1
