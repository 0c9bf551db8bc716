"""Makes one virtual environment exactly what its requirements file pins, or says in one sentence why not.

Runs on the machine's own Python before anything is installed: the standard library only, and syntax that
older Pythons still read, so that they too get the sentence instead of a syntax error.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

OLDEST: Final = (3, 11)
INSTALLER: Final = Path("requirements/installer.txt")
# The only packages without a wheel; they are built with the pinned installer, never with one fetched for it.
BUILT_HERE: Final = "localstack-client"
STAMP: Final = "ready"
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)


class CannotMakeError(Exception):
    """Why the environment could not be made, as one sentence for a person."""


def refusal(version: tuple[int, int], *, has_venv: bool, has_pip: bool) -> str | None:
    """Say in one sentence why this Python will not do, or None when it will."""
    if version < OLDEST:
        return "Relay needs Python 3.11 or newer; this one is {}.{}.".format(*version)
    if not has_venv or not has_pip:
        return (
            f"This Python lacks its {'pip' if has_venv else 'venv'} module: install it first "
            "(on Debian and Ubuntu: apt-get install python3-venv)."
        )
    return None


def fingerprint(requirements: Path) -> str:
    """Name everything the finished environment depends on: the pins and the Python."""
    parts = (requirements.read_bytes(), INSTALLER.read_bytes(), sys.version.encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def pinned(requirements: Path) -> frozenset[str]:
    """Give the normalised names of the packages a requirements file pins."""
    names = _PIN.findall(requirements.read_text(encoding="utf-8"))
    return frozenset(_normal(name) for name in names)


def make(environment: Path, requirements: Path) -> None:
    """Bring the environment in step with the file; does nothing when it already is.

    Two calls at once wait for each other. Raises CannotMakeError.
    """
    with Path(f"{environment}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = environment / STAMP
        wanted = fingerprint(requirements)
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            print(f"Making {environment} from {requirements} (once; this may take a minute)", flush=True)
            stamp.unlink(missing_ok=True)
            _fill(environment, requirements)
        # Also when nothing was done: the new time tells make that the file is no longer newer.
        stamp.write_text(wanted, encoding="utf-8")


def _fill(environment: Path, requirements: Path) -> None:
    python = environment / "bin" / "python"
    if not _has_pip(python):
        sorry = f"Python could not make {environment}"
        _run(sys.executable, "-m", "venv", "--clear", str(environment), sorry=sorry)
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "--quiet")
    install: tuple[str, ...] = (
        *pip,
        "install",
        "--no-deps",
        "--require-hashes",
        "--no-compile",
        "--only-binary=:all:",
    )
    sorry = f"pip could not install {requirements}"
    if "pip" in pinned(requirements):
        _run(*install, "-r", str(INSTALLER), sorry=sorry)
        install = (*install, f"--no-binary={BUILT_HERE}", "--no-build-isolation")
    _run(*install, "-r", str(requirements), sorry=sorry)
    left_over = _installed(python) - pinned(requirements) - {"pip", "setuptools"}
    if left_over:
        _run(
            *pip,
            "uninstall",
            "--yes",
            *sorted(left_over),
            sorry="pip could not remove what is no longer pinned",
        )


def _has_pip(python: Path) -> bool:
    """Say whether the environment was made to its end, and by a Python that is still there."""
    asked = [str(python), "-m", "pip", "--version"]
    return python.exists() and subprocess.run(asked, check=False, capture_output=True).returncode == 0


def _installed(python: Path) -> frozenset[str]:
    names = "import importlib.metadata as m; print('\\n'.join(d.metadata['Name'] for d in m.distributions()))"
    done = subprocess.run([str(python), "-c", names], check=True, capture_output=True, text=True)
    return frozenset(_normal(name) for name in done.stdout.split())


def _run(*command: str, sorry: str) -> None:
    if subprocess.run(command, check=False).returncode:
        raise CannotMakeError(f"{sorry}; its own words stand above.")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Make the environment named on the command line; 0 when it is ready."""
    parser = argparse.ArgumentParser(
        description="Make a virtual environment from a pinned requirements file."
    )
    parser.add_argument("environment", type=Path)
    parser.add_argument("requirements", type=Path)
    wanted = parser.parse_args()
    problem = refusal(
        sys.version_info[:2],
        has_venv=importlib.util.find_spec("venv") is not None,
        has_pip=importlib.util.find_spec("ensurepip") is not None,
    )
    if problem is None:
        problem = _attempt(wanted.environment, wanted.requirements)
    if problem is not None:
        print(problem, file=sys.stderr)
    return 0 if problem is None else 1


def _attempt(environment: Path, requirements: Path) -> str | None:
    try:
        make(environment, requirements)
    except CannotMakeError as why:
        return str(why)
    return None


if __name__ == "__main__":
    sys.exit(main())
