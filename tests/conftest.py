"""What every test runs under; the fixtures of one tier belong into that tier's own conftest."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.leaks.plugin import (
    pytest_configure,
    pytest_runtest_logstart,
    pytest_runtest_makereport,
    pytest_unconfigure,
)

__all__ = [
    "pytest_configure",
    "pytest_runtest_logstart",
    "pytest_runtest_makereport",
    "pytest_unconfigure",
]

import chalicelib
from tests import egress

# Two busy cores make any example late, which says nothing about the code.
settings.register_profile("relay", parent=settings(deadline=None, print_blob=True))
settings.load_profile("relay")

_PAST_THE_GUARD: list[str] = []


def pytest_sessionstart(session: pytest.Session) -> None:
    """Watch what the code under test connects to, in every test of the run."""
    shipped = str(Path(chalicelib.__file__).parent)
    egress.watch(_PAST_THE_GUARD.append, lambda code: code.co_filename.startswith(shipped))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which a connection went past the guard, even if every test passed."""
    if _PAST_THE_GUARD:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print("\n".join(["", *sorted(set(_PAST_THE_GUARD))]))  # noqa: T201 - the run's last word
