"""Whether Relay is alive, and whether it can work."""

import pytest

from tests.handlers.conftest import Lines
from tests.handlers.relay import Relay


def test_health_and_readiness_need_no_key(empty_guarded: Relay) -> None:
    anyone = Relay(empty_guarded.made, empty_guarded.clients)
    assert (anyone.get("/healthz").status, anyone.get("/healthz").json) == (200, {"status": "ok"})
    ready = anyone.get("/readyz")
    assert (ready.status, ready.json) == (200, {"status": "ok", "failing": []})


def test_readiness_names_what_fails_and_health_does_not_look(relay: Relay) -> None:
    relay.drop_table("endpoints")
    ready = relay.get("/readyz")
    assert (ready.status, ready.json) == (503, {"status": "unavailable", "failing": ["store"]})
    assert relay.get("/healthz").status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_who_is_alive_logs_nothing(relay: Relay, lines: Lines, path: str) -> None:
    relay.get(path)
    assert lines.texts == []
