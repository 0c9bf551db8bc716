"""A Relay deployed by chalice's own command, with what is made before it and set after it, at an emulator."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from infra import make_resources, post_deploy
from infra.deploying.beside_chalice import deployed_name
from infra.deploying.chalice_copy import deployed, folder
from infra.deploying.stage import load
from infra.functions import FUNCTIONS
from infra.local.emulator import EmulatorName, free_port, running
from infra.local.processes import ROOT
from infra.template import MERGE, read

STAGE = load("emulator")
FED = {deployed_name(each, STAGE.name): each for each in FUNCTIONS if each.queue}
KEY = "relay_operator.of-a-trial"
ANSWERS = read(MERGE)["Resources"]["RestAPI"]["Properties"]["GatewayResponses"]


@dataclass(frozen=True, slots=True)
class Place:
    """An emulator that things are deployed to, as a person does who is told what is printed."""

    endpoint_url: str
    told: pytest.CaptureFixture[str]

    def run(self, command: Callable[[list[str]], int], *arguments: str) -> tuple[int, str, str]:
        """Run a command of this stage; its exit code and what it has printed."""
        code = command(["--stage", STAGE.name, *arguments])
        return code, *self.told.readouterr()

    def chalice(self) -> "subprocess.CompletedProcess[str]":
        """Run `chalice deploy` on the copy."""
        command = [sys.executable, "-m", "tests.e2e.chalice_at_emulator", "--project-dir"]
        return subprocess.run(
            [*command, str(folder(STAGE)), "deploy", "--stage", STAGE.name],
            cwd=ROOT, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
        session: Any = boto3.Session("test", "test", region_name=STAGE.region)
        return session.client(service, endpoint_url=self.endpoint_url)

    def mapping(self, function: str) -> dict[str, Any]:
        """Give a function's only event source."""
        (found,) = self.client("lambda").list_event_source_mappings(FunctionName=function)[
            "EventSourceMappings"
        ]
        mapping: dict[str, Any] = found
        return mapping


@pytest.fixture
def place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Place]:
    forget()
    for name in [each for each in os.environ if each.startswith(("AWS_", "RELAY_"))]:
        monkeypatch.delenv(name)
    with running(EmulatorName.MINISTACK, tmp_path, free_port(), enforcing=True) as endpoint_url:
        told = {"AWS_ENDPOINT_URL": endpoint_url, "AWS_DEFAULT_REGION": STAGE.region, "OPERATOR_KEY": KEY}
        for name, value in {**told, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}.items():
            monkeypatch.setenv(name, value)
        yield Place(endpoint_url, capsys)
    forget()


def forget() -> None:
    deployed(STAGE).unlink(missing_ok=True)
    shutil.rmtree(folder(STAGE), ignore_errors=True)


def test_chalice_deploys_what_delivers_once_the_rest_is_said(place: Place) -> None:
    """The emulator holds every function to its role, so that the event arrives says that the roles do."""
    code, _, error = place.run(post_deploy.main)
    assert (code, "chalice has not deployed the stage emulator" in error) == (1, True)
    assert place.run(make_resources.main)[0] == 0
    done = place.chalice()
    assert done.returncode == 0, done.stderr

    code, _, error = place.run(post_deploy.main, "--check")
    assert code == 1
    assert {name for name in FED if f"of {name} lacks FunctionResponseTypes" in error} == FED.keys()

    code, said, error = place.run(post_deploy.main)
    assert (code, "A test event has arrived" in said) == (0, True), error
    found = {name: place.mapping(name) for name in FED}
    assert {tuple(each["FunctionResponseTypes"]) for each in found.values()} == {("ReportBatchItemFailures",)}
    for name, each in found.items():
        assert each["ScalingConfig"] == {"MaximumConcurrency": FED[name].most}
    known = json.loads(deployed(STAGE).read_text(encoding="utf-8"))["resources"]
    (api,) = [each["rest_api_id"] for each in known if each["resource_type"] == "rest_api"]
    answers = place.client("apigateway").get_gateway_responses(restApiId=api)["items"]
    assert {each["responseType"] for each in answers if not each["defaultResponse"]} == ANSWERS.keys()

    one = next(iter(FED))
    place.client("lambda").update_event_source_mapping(UUID=found[one]["UUID"], FunctionResponseTypes=[])
    code, said, _ = place.run(post_deploy.main)
    assert code == 0
    assert [line for line in said.splitlines() if "answer" in line] == [
        f"{one} answers for each message of a batch."
    ], "what is as meant is not set again"
