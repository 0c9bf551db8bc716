"""Package the app for CloudFormation: `python -m infra.package` writes build/package.

Chalice packages a clean copy of what ships. The dependencies come in as wheels for Lambda, checked against
the hashes in requirements.txt and kept between runs: chalice's own download checks none for other machines.
The archive is the same, byte for byte, for the same sources.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import certifi

from infra import policy, trust
from infra.archive import make_reproducible
from infra.deploying.stage import Stage, StageError, load
from infra.overlay import overlay

ROOT: Final = Path(__file__).parent.parent
STAGE: Final = "prod"
ARCHIVE: Final = "deployment.zip"
TEMPLATE: Final = "sam.json"
AUTHORITIES: Final = Path("chalicelib", "adapters", "http", "authorities")
"""Where the sender looks for the certificate authorities that go with it."""

_PYTHON: Final = "3.11"
_GLIBC_MINORS: Final = range(17, 27)
"""Lambda's python3.11 runs on glibc 2.26."""
_MACHINES: Final = {"arm64": "aarch64", "x86_64": "x86_64"}
_NOT_SHIPPED: Final = shutil.ignore_patterns("__pycache__", "*.pyc", "node", "cli")
_CHALICE: Final = "import sys; from chalice.cli import main; sys.exit(main())"
_INHERITED: Final = ("HOME", "LANG", "PATH", "SSL_CERT_FILE", "TMPDIR")


class PackagingFailedError(Exception):
    """A tool that packaging needs has failed; its own words are part of the message."""

    def __init__(self, step: str, words: str) -> None:
        """Say which step failed and what the tool said last."""
        super().__init__(f"{step} failed:\n{words.strip()}")


@dataclass(frozen=True, slots=True)
class Package:
    """Where the result is, and how large the archive."""

    template: Path
    archive: Path

    @property
    def archive_bytes(self) -> int:
        """Give the size that Lambda counts."""
        return self.archive.stat().st_size


def package(out: Path, stage: Stage | None = None, *, architecture: str = "", root: Path = ROOT) -> Package:
    """Package the app below `root` into `out`, which is made anew; for the stage `prod` unless told.

    `architecture` stands in for the configured one: an emulator's functions run on its own machine. Raises
    PackagingFailedError with the tool's words when pip or chalice fails.
    """
    stage = stage or load(STAGE)
    with tempfile.TemporaryDirectory(prefix="relay-package-") as made:
        staging = Path(made)
        config = lay_out(staging, stage, architecture=architecture, root=root)
        (staging / ".chalice" / "config.json").write_text(json.dumps(config), encoding="utf-8")
        over = staging / "overlay.json"
        over.write_text(json.dumps(overlay(_variables(config, stage.name))), encoding="utf-8")
        shutil.rmtree(out, ignore_errors=True)
        _chalice(staging, over, out.resolve(), stage.name)
    _tidy_template(out / TEMPLATE)
    make_reproducible(out / ARCHIVE)
    return Package(out / TEMPLATE, out / ARCHIVE)


def lay_out(folder: Path, stage: Stage, *, architecture: str = "", root: Path = ROOT) -> dict[str, Any]:
    """Copy what ships to where chalice will look; the configuration is given, for the caller to write."""
    config = _configured(root, stage)
    config["lambda_architecture"] = architecture or config["lambda_architecture"]
    _stage(root, folder, _wheels(root, config["lambda_architecture"]))
    return config


def _configured(root: Path, stage: Stage) -> dict[str, Any]:
    """Give the configuration of this stage alone: its own or the first stage's, with its settings."""
    config: dict[str, Any] = json.loads((root / ".chalice" / "config.json").read_text(encoding="utf-8"))
    about = config["stages"].get(stage.name, config["stages"][STAGE])
    variables = {**about.get("environment_variables", {}), **stage.settings}
    return {**config, "stages": {stage.name: {**about, "environment_variables": variables}}}


def _variables(config: dict[str, Any], stage: str) -> dict[str, dict[str, str]]:
    """Give the environment variables that the stage configures for each function."""
    functions = config["stages"][stage]["lambda_functions"]
    return {name: about.get("environment_variables", {}) for name, about in functions.items()}


def _stage(root: Path, staging: Path, wheels: Path) -> None:
    """Copy what ships, and nothing else, to where chalice will look."""
    shutil.copy2(root / "app.py", staging)
    shutil.copytree(root / "chalicelib", staging / "chalicelib", ignore=_NOT_SHIPPED)
    (staging / ".chalice").mkdir()
    shutil.copytree(policy.POLICIES, staging / "infra" / "policies")
    (staging / "vendor").symlink_to(wheels, target_is_directory=True)
    trust.write(Path(certifi.where()), staging / AUTHORITIES)


def _wheels(root: Path, architecture: str) -> Path:
    """Give a folder with every dependency unpacked for Lambda; filled once per requirements.txt."""
    requirements = root / "requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]
    kept = root / "build" / "wheels" / f"{architecture}-{_PYTHON}-{digest}"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as made:
            unpacked = Path(made) / "unpacked"
            unpacked.mkdir()
            _pip(requirements, unpacked, _MACHINES[architecture])
            unpacked.rename(kept)
    return kept


def _pip(requirements: Path, target: Path, machine: str) -> None:
    """Unpack the wheels of another machine, each of which must have one of the pinned hashes."""
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINORS]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    command += ["--require-hashes", "--only-binary=:all:", f"--target={target}"]
    command += ["--implementation=cp", f"--python-version={_PYTHON}", f"--platform=manylinux2014_{machine}"]
    _run("Fetching the dependencies", [*command, *platforms, "-r", str(requirements)], None, dict(os.environ))
    shutil.rmtree(target / "bin", ignore_errors=True)


def _chalice(staging: Path, over: Path, out: Path, stage: str) -> None:
    """Let chalice package the copy, with an environment that cannot reach an account."""
    environment = {key: os.environ[key] for key in _INHERITED if key in os.environ}
    environment |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", _CHALICE, "--project-dir", str(staging), "package"]
    command += ["--stage", stage, "--merge-template", str(over), str(out)]
    _run("chalice package", command, staging, environment)


def _run(step: str, command: Sequence[str], cwd: Path | None, environment: dict[str, str]) -> None:
    """Run a tool to its end."""
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PackagingFailedError(step, done.stdout + done.stderr)


def _tidy_template(path: Path) -> None:
    """Take out the batching window that FIFO sources may not have; merging cannot remove a key."""
    template = json.loads(path.read_text(encoding="utf-8"))
    for resource in template["Resources"].values():
        for event in resource.get("Properties", {}).get("Events", {}).values():
            if event["Type"] == "SQS" and not event["Properties"]["MaximumBatchingWindowInSeconds"]:
                del event["Properties"]["MaximumBatchingWindowInSeconds"]
    path.write_text(json.dumps(template, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Package as the command line asks and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m infra.package", description="Package Relay.")
    parser.add_argument("--stage", default=STAGE, help="a stage of infra/stages")
    parser.add_argument("--architecture", choices=_MACHINES, default="", help="other than the stage's own")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "package", help="where to write")
    asked = parser.parse_args(arguments)
    try:
        made = package(asked.out, load(asked.stage), architecture=asked.architecture)
    except (PackagingFailedError, StageError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{made.template}\n{made.archive} ({made.archive_bytes / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
