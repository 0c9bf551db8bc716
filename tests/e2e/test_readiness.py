"""A whole Relay on one machine says that it is ready, and what it counts, within seconds."""

from pathlib import Path

import httpx

from tests.e2e.stack import RelayStack

SECONDS = 20
"""Its start is over in a few; the rest is for a machine that is busy."""


def test_a_relay_on_one_machine_is_ready_within_seconds_of_its_start(tmp_path: Path) -> None:
    """Its first schedules run as it starts: measured, and a canary through every shard."""
    with RelayStack(tmp_path) as stack:
        stack.until(lambda: httpx.get(f"{stack.api_url}/readyz").status_code == 200, SECONDS)
        assert httpx.get(f"{stack.api_url}/healthz").json() == {"status": "ok"}
        told = httpx.get(f"{stack.api_url}/metrics").text
        assert "\nrelay_queue_depth 0\n" in told
        assert "\nrelay_queue_oldest_pending_age_seconds NaN\n" in told
        assert "\nrelay_canary_age_seconds NaN\n" not in told
