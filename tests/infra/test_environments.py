"""A machine that lacks something gets one plain sentence, and a finished environment is left alone."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.local import environments

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give as much of a fresh clone as making an environment needs; one for all, making takes seconds."""
    tmp_path = tmp_path_factory.mktemp("checkout")
    for name in ("Makefile", "infra/__init__.py", "infra/local/__init__.py", "infra/local/environments.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "requirements").mkdir()
    for name in ("dev.txt", "installer.txt"):
        (tmp_path / "requirements" / name).write_text("", encoding="utf-8")
    return tmp_path


def _run(checkout: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=checkout, check=False, capture_output=True, text=True, timeout=60)


def test_an_old_python_is_told_so() -> None:
    sentence = environments.refusal((3, 10), has_venv=True, has_pip=True)
    assert sentence == "Relay needs Python 3.11 or newer; this one is 3.10."


@pytest.mark.parametrize("missing", ["venv", "pip"])
def test_a_python_without_its_parts_is_told_which(missing: str) -> None:
    sentence = environments.refusal((3, 11), has_venv=missing != "venv", has_pip=missing != "pip")
    assert sentence is not None
    assert f"lacks its {missing} module" in sentence


def test_a_good_python_is_not_refused() -> None:
    assert environments.refusal((3, 12), has_venv=True, has_pip=True) is None


def test_a_machine_without_python_gets_one_sentence(checkout: Path) -> None:
    done = _run(checkout, "make", "unit", "PYTHON=")
    assert done.returncode
    assert done.stderr.splitlines()[0] == "Relay needs Python 3.11 or newer, found as python3.11 or python3."
    assert "Traceback" not in done.stderr


def _make(checkout: Path) -> subprocess.CompletedProcess[str]:
    return _run(checkout, sys.executable, "-m", "infra.local.environments", "env", "requirements/dev.txt")


def test_a_second_call_changes_nothing_and_says_nothing(checkout: Path) -> None:
    first = _make(checkout)
    assert "Making env" in first.stdout
    made = (checkout / "env" / "pyvenv.cfg").stat().st_mtime_ns
    second = _make(checkout)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert (checkout / "env" / "pyvenv.cfg").stat().st_mtime_ns == made


def test_requirements_that_cannot_be_had_end_in_one_sentence(checkout: Path) -> None:
    pins = checkout / "requirements" / "dev.txt"
    pins.write_text("relay-is-not-here==1.0 --hash=sha256:" + "0" * 64 + "\n--no-index\n", encoding="utf-8")
    done = _make(checkout)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == "pip could not install requirements/dev.txt; its own words stand above."
    assert "Traceback" not in done.stderr


def test_names_are_compared_as_pip_compares_them(tmp_path: Path) -> None:
    pins = tmp_path / "pins.txt"
    pins.write_text(
        "Some_Thing.Else==1 \\\n    --hash=sha256:00\nother==2 ; python_version > '3'\n", encoding="utf-8"
    )
    assert environments.pinned(pins) == {"some-thing-else", "other"}
