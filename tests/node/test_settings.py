"""The node's settings: all documented, checked at the start, told in one sentence when wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from chalicelib.node.settings import NodeSettings, load
from chalicelib.settings import SettingsError

PAGE = (Path(__file__).parents[2] / "docs" / "relay-node.md").read_text(encoding="utf-8")


def test_every_setting_is_on_the_page_and_the_page_names_no_other() -> None:
    told = set(re.findall(r"PASEO_RELAY_[A-Z_]+", PAGE))
    assert told == {f"PASEO_RELAY_{name.upper()}" for name in NodeSettings.model_fields}


def test_the_defaults_are_those_its_users_know() -> None:
    settings = load({})
    assert (settings.host, settings.port, settings.sockets_max) == ("127.0.0.1", 4_000, 20_000)
    assert (settings.ingress_budget_bytes, settings.ingress_weight) == (536_870_912, 4)
    assert (settings.delivery_timeout_ms, settings.transport_send_timeout_ms) == (30_000, 35_000)
    assert (settings.data_attach_timeout_ms, settings.http_idle_timeout_ms) == (15_000, 15_000)
    assert (settings.ownership_target, settings.reroute_header) == ("local", "x-reroute-target")


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("PORT", "70000", "PASEO_RELAY_PORT"),
        ("DRAIN", "perhaps", "PASEO_RELAY_DRAIN"),
        ("NONSENSE", "1", "unknown setting PASEO_RELAY_NONSENSE"),
        ("TRANSPORT_SEND_TIMEOUT_MS", "30000", "greater than PASEO_RELAY_DELIVERY_TIMEOUT_MS"),
        ("INGRESS_BUDGET_BYTES", "134217671", "one message of the greatest size needs 134217672"),
        ("LEASE_MS", "7999", "outlast two renewals"),
        ("REROUTE_HEADER", "a b", "PASEO_RELAY_REROUTE_HEADER"),
    ],
)
def test_a_wrong_setting_is_told_in_a_sentence(name: str, value: str, words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        load({f"PASEO_RELAY_{name}": value})


def test_the_least_budget_is_that_of_one_largest_message() -> None:
    assert load({"PASEO_RELAY_INGRESS_BUDGET_BYTES": "134217672"}).ingress_budget_bytes == 134_217_672


def test_a_node_with_a_wrong_setting_does_not_start() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "chalicelib.node"],
        env={"PASEO_RELAY_PORT": "many"}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("PASEO_RELAY_PORT: ")
    assert len(done.stderr.splitlines()) == 1
