"""The watch over every connection: what the guard dials passes, and what went past it is told."""

import socket
import subprocess
import sys
from pathlib import Path

from infra.local.processes import ROOT
from tests.e2e.customer import Customer

PAST = """
import os, socket
from tests import egress
egress.watch_all(os.environ["RELAYTEST_EGRESS"])
socket.create_connection(("127.0.0.1", {port})).close()
"""
GUARDED = """
import asyncio, os
from tests import egress
egress.watch_all(os.environ["RELAYTEST_EGRESS"])
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.domain.request import Request
from chalicelib.domain.target import Policy

async def send():
    guard = GuardedTransport(Policy(False, True, None), Timeouts())
    try:
        await guard.send(Request("http://127.0.0.1:{port}/", (), b""))
    except Exception as error:
        print(type(error).__name__)

asyncio.run(send())
"""


def told(program: str, path: Path, aws_port: int = 1) -> str:
    """Run a program that connects to a listener here, and read what the watch told."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        environment = {
            "RELAYTEST_EGRESS": str(path),
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port if aws_port == 0 else aws_port}",
        }
        command = [sys.executable, "-c", program.format(port=port)]
        process = subprocess.Popen(command, cwd=ROOT, env=environment)
        listener.accept()[0].close()
        assert process.wait(30) == 0
    return path.read_text(encoding="utf-8").replace(str(port), "PORT") if path.exists() else ""


def test_a_connection_past_the_guard_is_told(tmp_path: Path) -> None:
    assert told(PAST, tmp_path / "told") == "a connection to ('127.0.0.1', PORT) went past the guard\n"


def test_a_connection_to_the_aws_endpoint_is_no_business_of_the_guard(tmp_path: Path) -> None:
    assert told(PAST, tmp_path / "told", aws_port=0) == ""


def test_a_connection_that_the_guard_dialled_passes(tmp_path: Path) -> None:
    assert told(GUARDED, tmp_path / "told") == ""


def test_the_functions_of_a_stack_are_watched_and_deliver_by_the_guard_alone(customer: Customer) -> None:
    _, delivery_id = customer.deliver("/status/200")
    assert customer.ended(delivery_id)["status"] == "succeeded"
    assert customer.stack.went_past_the_guard() == ""
    for name in ("api", "workers"):
        command = Path(f"/proc/{customer.stack.pid(name)}/cmdline").read_bytes()
        assert b"tests.e2e.watched_app:app" in command
