"""Stages: each has its own names and settings, and a wrong one is told in plain words."""

import json
from pathlib import Path

import pytest

from infra.deploying.account import Account
from infra.deploying.stage import STAGES, Stage, StageError, load
from infra.functions import FUNCTIONS
from infra.package import Package, package
from infra.template import MERGE, NETWORK, RESOURCES, read
from tests.infra.lookup import FUNCTION, of_type

NAMES = sorted(path.stem for path in STAGES.glob("*.toml"))
REAL = [name for name in NAMES if name != "emulator"]


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Package:
    stage = Stage("trial", "relay-trial-", "us-east-1", settings={"RELAY_BREAKER_THRESHOLD": "7"})
    return package(tmp_path_factory.mktemp("staged"), stage)


def test_a_stage_that_is_none_is_told_those_there_are() -> None:
    with pytest.raises(
        StageError, match="There is no stage 'prdo'; infra/stages has emulator, prod, staging"
    ):
        load("prdo")


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_can_be_deployed(name: str) -> None:
    stage = load(name)
    declared = {key for path in (RESOURCES, NETWORK, MERGE) for key in read(path)["Parameters"]}
    declared |= {f"{each.logical_id}ReservedConcurrency" for each in FUNCTIONS}
    declared |= {f"{each.logical_id}MaximumConcurrency" for each in FUNCTIONS if each.queue}
    assert stage.parameters.keys() <= declared


def test_several_stages_fit_into_one_account() -> None:
    stacks = [load(name).stack for name in REAL]
    assert len(set(stacks)) == len(stacks) >= 2


def test_a_stage_that_lets_requests_go_anywhere_is_for_emulators_alone() -> None:
    assert Account.of(load("emulator"), "http://127.0.0.1:4566").endpoint_url
    with pytest.raises(StageError, match="for emulators alone"):
        Account.of(load("emulator"), "")
    for name in REAL:
        assert not Account.of(load(name), "").endpoint_url


@pytest.mark.parametrize(
    "text, words",
    [
        ("prefix =", "cannot be read"),
        ('prefix = "relay-"\nregion = "us-east-1"\n[parameters]\n', "settings"),
        (
            'prefix = "relay-"\nregion = "us-east-1"\n[parameters]\n[settings]\nRELAY_BRAKER = true\n',
            "RELAY_BRAKER",
        ),
        (
            'prefix = "relay-"\nregion = "us-east-1"\nparameter = 1\n[parameters]\n[settings]\n',
            "should not have: parameter",
        ),
    ],
)
def test_what_is_wrong_in_a_stage_is_said(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "odd.toml").write_text(text, encoding="utf-8")
    with pytest.raises(StageError, match=words):
        load("odd", tmp_path)


def test_every_function_is_given_the_settings_of_its_stage(staged: Package) -> None:
    functions = of_type(json.loads(staged.template.read_text(encoding="utf-8")), FUNCTION).values()
    assert functions
    for function in functions:
        assert function["Environment"]["Variables"]["RELAY_BREAKER_THRESHOLD"] == "7"
        assert function["Tags"]["aws-chalice"].count("stage=trial") == 1
