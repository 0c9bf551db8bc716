"""Whether Relay is alive, and whether it can work."""

import pytest

from chalicelib.wire.answers import egress_ranges
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


def test_egress_ranges_are_for_everybody_with_their_version_and_date(empty_guarded: Relay) -> None:
    anyone = Relay(empty_guarded.made, empty_guarded.clients)
    said = anyone.get("/v1/egress-ranges")
    assert said.status == 200
    assert (said.json["version"], said.json["effective_on"]) == (1, "2026-11-30")
    assert {each["region"] for each in said.json["ranges"]} == {"us-east-1", "eu-central-1"}
    assert all(
        each["active"].endswith("/28") and each["standby"].endswith("/28") for each in said.json["ranges"]
    )


@pytest.mark.parametrize("today, version, upcoming", [("2027-05-31", 1, 2), ("2027-06-01", 2, None)])
def test_a_version_is_upcoming_until_it_takes_effect(today: str, version: int, upcoming: int | None) -> None:
    ranges = {"us-east-1": {"active": "192.0.2.0/28", "standby": "192.0.2.16/28"}}
    first = {"version": 1, "announced_on": "2026-11-30", "effective_on": "2026-11-30", "ranges": ranges}
    second = {"version": 2, "announced_on": "2027-01-01", "effective_on": "2027-06-01", "ranges": ranges}
    said = egress_ranges([first, second], today)
    next_one = said["upcoming"]
    assert (said["version"], next_one["version"] if next_one else None) == (version, upcoming)
