"""The emulator changes the endpoint and nothing else."""

from pathlib import Path

import pytest

from infra.local.emulator import Emulator, EmulatorName

NOWHERE = Path("nowhere")


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "LOCALSTACK_HOST", "USE_SSL"):
        monkeypatch.delenv(name, raising=False)


def at(name: EmulatorName, port: int) -> str:
    return Emulator(name, port, NOWHERE, NOWHERE).endpoint_url


@pytest.mark.parametrize("name", list(EmulatorName))
def test_each_emulator_is_one_address(name: EmulatorName) -> None:
    assert at(name, 4577) == "http://127.0.0.1:4577"


def test_what_is_started_here_is_where_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere:1")
    assert at(EmulatorName.MINISTACK, 4588) == "http://127.0.0.1:4588"
    assert at(EmulatorName.MOTO, 4589) == "http://127.0.0.1:4589"


def test_a_localstack_may_be_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSTACK_HOST", "docker:4566")
    assert at(EmulatorName.LOCALSTACK, 1) == "http://docker:4566"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere:1")
    assert at(EmulatorName.LOCALSTACK, 1) == "http://elsewhere:1"
