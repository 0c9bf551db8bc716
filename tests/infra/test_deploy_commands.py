"""What `make deploy` and `make destroy` refuse before they touch anything, and how they say it."""

import pytest

from infra import deploy, destroy
from infra.local.emulator import free_port


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens where calls would go."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("OPERATOR_KEY", raising=False)


def test_a_wrong_stage_is_told_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (deploy, destroy):
        assert command.main(["--stage", "prdo"]) == 1
        assert capsys.readouterr().err == (
            "There is no stage 'prdo'; infra/stages has emulator, prod, staging.\n"
        )


def test_a_deployment_that_nobody_could_verify_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert deploy.main(["--stage", "prod"]) == 1
    assert "OPERATOR_KEY is not set" in capsys.readouterr().err


def test_the_stage_of_emulators_is_never_deployed_to_an_account(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert deploy.main(["--stage", "emulator", "--no-verify"]) == 1
    assert destroy.main(["--stage", "emulator"]) == 1
    assert capsys.readouterr().err.count("it is for emulators alone") == 2


@pytest.mark.parametrize("confirmed", ["", "relay-staging-", "relay", "staging"])
def test_data_is_deleted_only_by_the_name_of_its_stack(
    capsys: pytest.CaptureFixture[str], confirmed: str
) -> None:
    assert destroy.main(["--stage", "staging", "--data", "delete", "--confirm", confirmed]) == 1
    assert "repeat it with CONFIRM=relay-staging." in capsys.readouterr().err


def test_an_account_that_does_not_answer_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    assert deploy.main(["--stage", "staging", "--no-verify", "--release", "0123456789ab"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("AWS refuses: ")
    assert told.count("\n") == 1
