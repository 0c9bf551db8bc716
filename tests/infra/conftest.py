"""One packaging run for all of this tier, and what the run's figures were."""

import json
from typing import Any

import pytest

from infra.package import Package, package
from infra.template import RESOURCES, read

FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def packaged(tmp_path_factory: pytest.TempPathFactory, figures: list[str]) -> Package:
    made = package(tmp_path_factory.mktemp("package"))
    figures.append(f"size of the functions' archive: {made.archive_bytes / 1e6:.1f} MB")
    return made


@pytest.fixture(scope="session")
def template(packaged: Package) -> dict[str, Any]:
    text = packaged.template.read_text(encoding="utf-8")
    parsed: dict[str, Any] = json.loads(text)
    return parsed


@pytest.fixture(scope="session")
def source() -> dict[str, Any]:
    return read(RESOURCES)


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> list[str]:
    return request.config.stash.setdefault(FIGURES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if measured := config.stash.get(FIGURES, []):
        terminalreporter.section("measured")
        for line in measured:
            terminalreporter.write_line(line)
