"""The running API keeps its published contract: schemathesis makes up requests from it, right and wrong ones.

No answer may be a 5xx, or one whose status, media type, headers or members the contract does not have; each
operation is asked at least a hundred times, and done at least once.
"""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chalicelib.domain.api_key import DEVELOPMENT_OPERATOR_KEY
from chalicelib.wire.operations import OPERATIONS, Operation
from infra.local.emulator import free_port
from infra.local.processes import ROOT
from tests.e2e.stack import Ports, RelayStack

TESTER = ROOT / ".venv-openapi/bin/python"
EXAMPLES = 100
AT_ONCE = 6
WITHIN_S = 280
PARTS = [OPERATIONS[start : start + AT_ONCE] for start in range(0, len(OPERATIONS), AT_ONCE)]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayStack]:
    """Start a stack that answers nobody without a key."""
    if not TESTER.exists():
        pytest.skip("schemathesis is not there: `make test` installs it into .venv-openapi")
    settings = {"RELAY_ALLOW_KEYLESS": "false"}
    ports = Ports(node=free_port())
    with RelayStack(tmp_path_factory.mktemp("contract"), settings=settings, ports=ports) as stack:
        yield stack


@pytest.fixture(scope="module")
def contract(guarded: RelayStack) -> Any:  # noqa: ANN401 - JSON
    """Fetch the contract, and let no answer have members that it does not name, as clients must."""
    document = httpx.get(f"{guarded.api_url}/openapi.json", trust_env=False).json()
    for each in document["components"]["schemas"].values():
        if each.get("type") == "object":
            each.setdefault("additionalProperties", False)
    return document


def varies(operation: Operation) -> bool:
    """Say whether there are different ways to ask something."""
    return bool("{" in operation.path or operation.query or operation.headers or operation.body)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"from {part[0].id} to {part[-1].id}")
def test_the_api_keeps_its_contract_whatever_it_is_asked(
    guarded: RelayStack,
    contract: Any,  # noqa: ANN401 - JSON
    part: tuple[Operation, ...],
    tmp_path: Path,
) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(contract), encoding="utf-8")
    tried = _tried(guarded, tmp_path, [each.id for each in part])
    assert tried.returncode == 0, tried.stdout[-20_000:] + tried.stderr[-5_000:]
    lines = (tmp_path / "notes").read_text(encoding="utf-8").splitlines()
    asked = Counter(line.split()[0] for line in lines)
    done = {line.split()[0] for line in lines if line.split()[1].startswith("2")}
    assert done == {each.id for each in part}
    assert {each.id: asked[each.id] for each in part if varies(each) and asked[each.id] < EXAMPLES} == {}


def _tried(stack: RelayStack, folder: Path, names: list[str]) -> "subprocess.CompletedProcess[str]":
    told = {
        "CONTRACT_API": stack.api_url,
        "CONTRACT_RECEIVER": stack.receiver_url,
        "CONTRACT_OPERATOR": DEVELOPMENT_OPERATOR_KEY,
        "CONTRACT_NOTES": str(folder / "notes"),
        "SCHEMATHESIS_HOOKS": "tests.e2e.contract_hooks",
        "PYTHONPATH": str(ROOT),
    }
    command = [TESTER, "-m", "schemathesis.cli", "--config-file", ROOT / "tests/e2e/schemathesis.toml", "run"]
    chosen = [part for name in names for part in ("--include-operation-id", name)]
    where = [folder / "openapi.json", "--url", stack.api_url, "--no-color"]
    return subprocess.run(
        [str(part) for part in (*command, *where, *chosen)],
        cwd=folder,
        env=os.environ | told,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
