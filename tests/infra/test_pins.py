"""The requirements are in step, and every way of being out of step is told."""

import shutil
from pathlib import Path

import pytest

from infra.pins import ASKED_AND_PINNED, drifts

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Give a copy of the requirements that a test may spoil."""
    (tmp_path / "requirements").mkdir()
    for name in {*ASKED_AND_PINNED, *ASKED_AND_PINNED.values()}:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_the_requirements_are_in_step() -> None:
    assert list(drifts(ROOT)) == []


def test_every_requirements_file_is_looked_at() -> None:
    there = {str(file.relative_to(ROOT)) for file in (ROOT / "requirements").iterdir()} | {"requirements.txt"}
    assert there == {*ASKED_AND_PINNED, *ASKED_AND_PINNED.values()}


def test_a_version_that_was_asked_for_but_not_locked_is_told(copy: Path) -> None:
    _replace(copy / "requirements/emulator.in", "ministack==1.5.33", "ministack==1.5.34")
    assert [sentence for sentence in drifts(copy) if "ministack 1.5.34" in sentence]


def test_a_package_that_nobody_asks_for_any_longer_is_told(copy: Path) -> None:
    _replace(copy / "requirements/emulator.in", "ministack==1.5.33", "")
    assert [sentence for sentence in drifts(copy) if "no longer asks" in sentence]


def test_a_version_that_is_not_exact_is_told(copy: Path) -> None:
    _replace(copy / "requirements/emulator.in", "ministack==1.5.33", "ministack>=1.5")
    assert [sentence for sentence in drifts(copy) if "exact version" in sentence]


def test_a_package_without_a_hash_is_told(copy: Path) -> None:
    with (copy / "requirements/lint.txt").open("a", encoding="utf-8") as lint:
        lint.write("unhashed==1.0\n")
    assert [sentence for sentence in drifts(copy) if "unhashed without a hash" in sentence]


def test_an_address_to_install_from_is_told(copy: Path) -> None:
    with (copy / "requirements.txt").open("a", encoding="utf-8") as runtime:
        runtime.write("--index-url anywhere\n")
    assert [sentence for sentence in drifts(copy) if "address to install from" in sentence]


def test_tests_that_would_run_on_other_versions_than_ship_are_told(copy: Path) -> None:
    _replace(copy / "requirements/dev.txt", "idna==", "idna==0.")
    assert [sentence for sentence in drifts(copy) if "different versions of idna" in sentence]
