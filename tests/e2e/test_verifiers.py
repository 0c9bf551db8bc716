"""What customers paste from docs/verifiers takes what Relay signs and nothing else, in six languages.

Each file runs as it stands, in its own language, against tests/vectors/signatures.json.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.local.processes import ROOT
from tests.vectors import make

NO_COMPILER_OF_C = {"CGO_ENABLED": "0"}
"""Go would want one for its resolver."""
VECTORS: list[dict[str, Any]] = json.loads(make.FILE.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Language:
    """How a verifier is put beside its harness, built and run."""

    verifier: str
    harness: str
    run: tuple[str, ...]
    build: tuple[str, ...] = ()
    into: str = "."


LANGUAGES = {
    "python": Language("relay_webhooks.py", "harness.py", (sys.executable, "harness.py")),
    "javascript": Language("relay-webhooks.mjs", "harness.mjs", ("node", "harness.mjs")),
    "go": Language(
        "relay_webhooks.go",
        "harness.go",
        ("./harness",),
        ("go", "build", "-o", "harness", "."),
        "relaywebhooks",
    ),
    "java": Language(
        "RelayWebhooks.java",
        "Harness.java",
        ("java", "Harness"),
        ("javac", "-encoding", "UTF-8", "Harness.java"),
    ),
    "ruby": Language("relay_webhooks.rb", "harness.rb", ("ruby", "-w", "harness.rb")),
    "php": Language("relay_webhooks.php", "harness.php", ("php", "-d", "error_reporting=-1", "harness.php")),
}


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_a_pasted_verifier_is_right_about_every_vector(language: Language, tmp_path: Path) -> None:
    program = (language.build or language.run)[0]
    if shutil.which(program) is None and not os.environ.get("CI"):
        pytest.skip(f"{program} is not installed here; CI has it")
    _set_up(language, tmp_path)
    if language.build:
        _run(language.build, tmp_path)
    said = _run(language.run, tmp_path, "".join(map(_line, VECTORS))).splitlines()
    assert len(said) == len(VECTORS)
    wrong = [
        each["name"] for each, word in zip(VECTORS, said, strict=True) if word != json.dumps(each["genuine"])
    ]
    assert wrong == []


def test_every_verifier_is_tried() -> None:
    kept = {path.name for path in (ROOT / "docs/verifiers").iterdir() if path.is_file()}
    assert kept == {each.verifier for each in LANGUAGES.values()}


def _set_up(language: Language, folder: Path) -> None:
    (folder / language.into).mkdir(exist_ok=True)
    shutil.copy(ROOT / "docs/verifiers" / language.verifier, folder / language.into)
    shutil.copy(ROOT / "tests/verifiers" / language.harness, folder)
    (folder / "go.mod").write_text("module example.com/receiver\n\ngo 1.19\n", encoding="utf-8")


def _line(vector: dict[str, Any]) -> str:
    keys = ",".join(map(_coded, vector["keys"]))
    headers = ",".join(f"{name}={_coded(value)}" for name, value in vector["headers"].items())
    return f"{vector['now']}\t{vector['body_base64']}\t{keys}\t{headers}\n"


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _run(command: tuple[str, ...], folder: Path, given: str = "") -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **NO_COMPILER_OF_C},
        input=given, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), f"{command} ended with {done.returncode}: {done.stderr}"
    return done.stdout
