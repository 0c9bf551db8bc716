"""docs/receivers.md shows the verifier that is tested, and its numbers are those that are kept."""

import re
from datetime import timedelta

import pytest

from chalicelib.domain import backoff, ending, retention, signing
from chalicelib.domain.backoff import RetryProfile
from chalicelib.settings import Settings
from infra.package import ROOT

PAGE = (ROOT / "docs/receivers.md").read_text(encoding="utf-8")
VERIFIERS = ROOT / "docs/verifiers"
SECOND = timedelta(seconds=1)


def test_the_code_it_shows_is_the_file_that_is_held_to_the_vectors() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert shown == (VERIFIERS / "relay_webhooks.py").read_text(encoding="utf-8")


def test_it_names_every_verifier() -> None:
    assert set(re.findall(r"\(verifiers/([^)]+)\)", PAGE)) == {
        path.name for path in VERIFIERS.glob("[!_]*.*")
    }


def test_how_long_an_id_may_come_again_is_how_long_it_is_retried_kept_and_replayed() -> None:
    section = PAGE.partition("## How long to remember ids\n")[2].partition("\n## ")[0]
    waiting, dead = timedelta(milliseconds=ending.KEPT_MS).days, retention.DEAD_DAYS
    assert f"{backoff.WINDOW // timedelta(hours=1)} hours after its first request" in section
    assert f"{waiting} days after it was disabled" in section
    assert f"{dead} days after it was delivered or given up on" in section
    assert f"{retention.PAYLOAD_DAYS} days after its event" in section
    assert f"**{waiting + dead} days** take in everything" in section
    assert dead == retention.HISTORY_DAYS


def test_the_times_it_gives_an_answer_are_the_defaults() -> None:
    limits = {name: Settings.model_fields[name].default for name in Settings.model_fields}
    assert (limits["connect_timeout_secs"], limits["read_timeout_secs"], limits["total_timeout_secs"]) == (
        5,
        5,
        10,
    )
    assert limits["response_max_bytes"] == 2 * 1024
    assert timedelta(minutes=5) == signing.FRESHNESS
    for words in (
        "Five seconds to connect, five more",
        "ten for all of it",
        "reads 2 KiB",
        "five minutes either way",
    ):
        assert words in PAGE


@pytest.mark.parametrize("profile", RetryProfile)
def test_the_waits_it_prints_are_those_of_the_profile(profile: RetryProfile) -> None:
    row = re.search(rf"^\| `{profile}` \| (\d+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", PAGE, re.MULTILINE)
    assert row is not None
    schedule = backoff.SCHEDULES[profile]
    assert int(row[1]) == schedule.attempts
    ceilings = [_duration(each) for each in row[2].replace("then ", "").split(", ")]
    for number in range(schedule.attempts - 1):
        assert ceilings[min(number, len(ceilings) - 1)] == pytest.approx(
            schedule.ceiling(number) / SECOND, rel=0.02
        )
    assert len(ceilings) < schedule.attempts
    expected = (schedule.shortest() + schedule.longest()) / 2
    assert [_duration(row[3]), _duration(row[4])] == pytest.approx(
        [expected / SECOND, schedule.longest() / SECOND], rel=0.02
    )
    assert (", cut at 72 h" in row[3]) == (expected > backoff.WINDOW)


def _duration(words: str) -> float:
    number, unit = words.partition(",")[0].split()
    return float(number) * {"s": 1, "min": 60, "h": 3_600}[unit]
