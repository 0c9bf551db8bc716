"""A Relay that was really deployed: its functions run in an emulator that holds them to their policies.

Deployed by the command that deploys to an account, with nothing played here.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx

from infra.archive import make_reproducible
from infra.deploying.account import Account
from infra.deploying.deployment import Deployment
from infra.deploying.stage import load
from infra.local.processes import ROOT
from infra.package import Package
from tests.receiver.server import Receiver

STAGE = "emulator"
OPERATOR_KEY = "relay_operator.of-a-trial"


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployed stage, a receiver beside it, and a folder for packages that differ from the first."""

    endpoint_url: str
    receiver: Receiver
    folder: Path
    said: list[str] = field(default_factory=list)

    @property
    def deployment(self) -> Deployment:
        """Give what the command uses."""
        account = Account.of(load(STAGE), self.endpoint_url)
        return Deployment(load(STAGE), account, self.said.append, OPERATOR_KEY)

    @property
    def package(self) -> Package:
        """Give what the command has packaged."""
        return Package(ROOT / "build" / STAGE / "sam.json", ROOT / "build" / STAGE / "deployment.zip")

    @property
    def release(self) -> str:
        """Name the release that runs."""
        return self.deployment.stack.outputs()["Release"]

    def command(self, module: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as `make` does."""
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "OPERATOR_KEY": OPERATOR_KEY,
        }
        return subprocess.run(
            [sys.executable, "-m", module, "--stage", STAGE, *arguments],
            cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False,
        )  # fmt: skip

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
        """Give a client of the emulator."""
        return self.deployment.account.client(service)

    @contextmanager
    def api(self, key: str) -> Iterator[httpx.Client]:
        """Speak to the deployed API at the address that the command has told."""
        headers = {"Authorization": f"Bearer {key}"}
        url = self.deployment.url()
        with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as api:
            yield api

    def logged(self, function: str) -> list[str]:
        """Give what a function has logged."""
        group = f"/aws/lambda/relay-{function}"
        pages = self.client("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
        return [event["message"] for page in pages for event in page["events"]]

    def until(self, holds: Callable[[], bool], within_s: float = 90) -> None:
        """Wait for something to become true."""
        deadline = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < deadline, f"it did not happen within {within_s} s"
            time.sleep(0.2)

    def without(self, *denied: tuple[str, str, str]) -> Package:
        """Give the first package without a right: of which functions' roles, which action, on what."""
        template = json.loads(self.package.template.read_text(encoding="utf-8"))
        for roles, action, resource in denied:
            taken = [
                _take(template["Resources"][name], action, resource)
                for name in template["Resources"]
                if name.startswith(roles) and name.endswith("Role")
            ]
            assert taken
            assert all(taken), f"{roles} has no {action} on {resource} to take away"
        path = self.folder / f"{hashlib.sha256(repr(denied).encode()).hexdigest()[:8]}.json"
        path.write_text(json.dumps(template), encoding="utf-8")
        return Package(path, self.package.archive)

    def changed(self, name: str, content: Callable[[bytes], bytes]) -> Package:
        """Give the first package with one file of its archive changed."""
        path = self.folder / "changed.zip"
        with ZipFile(self.package.archive) as old, ZipFile(path, "w") as new:
            for each in old.namelist():
                new.writestr(each, content(old.read(each)) if each == name else old.read(each))
        make_reproducible(path)
        return Package(self.package.template, path)


def _take(role: Mapping[str, Any], action: str, resource: str) -> bool:
    """Take an action on a resource out of a role's policy; False when it was not there."""
    (policy,) = role["Properties"]["Policies"]
    for statement in policy["PolicyDocument"]["Statement"]:
        if statement["Resource"] == {"Fn::GetAtt": [resource, "Arn"]} and action in statement["Action"]:
            statement["Action"].remove(action)
            return True
    return False
