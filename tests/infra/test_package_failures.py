import shutil
from pathlib import Path

import pytest

from infra.package import ROOT, PackagingFailedError, package


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without dependencies, whose app is broken."""
    (tmp_path / ".chalice").mkdir()
    (tmp_path / "chalicelib").mkdir()
    shutil.copy(ROOT / ".chalice" / "config.json", tmp_path / ".chalice")
    (tmp_path / "requirements.txt").write_text("# nothing\n", encoding="utf-8")
    (tmp_path / "app.py").write_text("raise RuntimeError('the app is broken')\n", encoding="utf-8")
    return tmp_path


def test_a_broken_app_is_told_in_its_own_words(project: Path) -> None:
    with pytest.raises(PackagingFailedError, match=r"(?s)chalice package failed:.*the app is broken"):
        package(project / "out", root=project)


def test_a_dependency_without_its_hash_is_refused(project: Path) -> None:
    (project / "requirements.txt").write_text("pydantic==2.14.4\n", encoding="utf-8")
    with pytest.raises(PackagingFailedError, match=r"(?s)Fetching the dependencies failed:.*hash"):
        package(project / "out", root=project)
    assert not list((project / "build" / "wheels").iterdir())
