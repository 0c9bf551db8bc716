"""How the relay node is deployed: one image, two containers, a load balancer that asks for readiness."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.package import ROOT
from infra.template import read
from tests.infra.test_lint import CFN_LINT

FOLDER = ROOT / "infra" / "relay_node"
TEMPLATE = FOLDER / "template.yaml"


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    found: dict[str, Any] = read(TEMPLATE)["Resources"]
    return found


def _containers(resources: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["Name"]: each for each in resources["TaskDefinition"]["Properties"]["ContainerDefinitions"]}


def test_cloudformation_would_take_its_template() -> None:
    if not CFN_LINT.exists() and not os.environ.get("CI"):
        pytest.skip("cfn-lint is not there: `make test` installs it into .venv-lint")
    linted = subprocess.run([CFN_LINT, TEMPLATE], capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout + linted.stderr) == (0, "")


def test_only_tasks_that_are_ready_get_connections(resources: dict[str, Any]) -> None:
    target = resources["TargetGroup"]["Properties"]
    assert (target["HealthCheckProtocol"], target["HealthCheckPath"]) == ("HTTP", "/ready")
    (balanced,) = resources["Service"]["Properties"]["LoadBalancers"]
    assert (balanced["ContainerName"], balanced["ContainerPort"]) == ("nginx", target["Port"])


def test_its_role_reaches_the_registry_gates_and_queues_of_lanes_and_nothing_else(
    resources: dict[str, Any],
) -> None:
    (policy,) = resources["TaskRole"]["Properties"]["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    reached = [each["Resource"]["Fn::Sub"].rpartition("${Prefix}")[2] for each in statements]
    assert reached == ["registry", "gates", "*.fifo"]
    actions = [action for each in statements for action in each["Action"]]
    assert all(re.fullmatch(r"(dynamodb|sqs):[A-Za-z]+", each) for each in actions)


def test_both_containers_start_what_the_image_knows(resources: dict[str, Any]) -> None:
    containers = _containers(resources)
    assert {name: each["Command"] for name, each in containers.items()} == {
        "node": ["node"],
        "nginx": ["nginx"],
    }
    assert all(each["Essential"] for each in containers.values())
    start = (FOLDER / "start").read_text(encoding="utf-8")
    for (command,) in (each["Command"] for each in containers.values()):
        assert f"  {command})" in start


def test_a_task_is_given_longer_to_stop_than_its_node_lets_sessions_go_on(resources: dict[str, Any]) -> None:
    from chalicelib.node.settings import NodeSettings  # noqa: PLC0415 - its default is what is compared

    drained_s = NodeSettings().drain_timeout_ms / 1000
    assert all(each["StopTimeout"] > drained_s for each in _containers(resources).values())


def test_the_image_is_made_of_files_that_are_there() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (FOLDER / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    files = [ROOT / name for line in copied for name in line.split()]
    assert files
    assert [each for each in files if not each.exists()] == []


def test_nginx_gets_a_whole_configuration(tmp_path: Path) -> None:
    """The same lines that `start nginx` runs, with a program in nginx's place that shows what it is given."""
    shown = tmp_path / "nginx"
    shown.write_text('#!/bin/sh\ncat "$4"\n', encoding="utf-8")
    shown.chmod(0o755)
    done = subprocess.run(
        [FOLDER / "start", "nginx"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path), "LISTEN": "8081"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "listen 8081;" in done.stdout
    assert "server 127.0.0.1:4000 max_fails=0;" in done.stdout
    assert "${" not in done.stdout


def test_what_is_to_be_started_has_to_be_known() -> None:
    done = subprocess.run([FOLDER / "start", "nonsense"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "start takes node or nginx, not nonsense\n")
