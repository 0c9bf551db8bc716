"""Watches every test: each secret it makes, each log line and output of it, and what its tier hands over."""

import logging
import traceback
from collections.abc import Generator

import pytest

from chalicelib.domain.secret import Secret
from tests.leaks.watch import WATCH

_make = Secret.__init__
_handle = logging.Logger.handle
_HEARING = pytest.MonkeyPatch()


def pytest_configure() -> None:
    """Hear of every secret that is made and of every line that is logged, whoever would write it."""

    def make(secret: Secret, text: str) -> None:
        _make(secret, text)
        WATCH.made(text)

    def handle(logger: logging.Logger, record: logging.LogRecord) -> None:
        WATCH.seen(f"a log line, {record.msg}", _text(record))
        _handle(logger, record)

    _HEARING.setattr(Secret, "__init__", make)
    _HEARING.setattr(logging.Logger, "handle", handle)


def pytest_unconfigure() -> None:
    """Put back what was there."""
    _HEARING.undo()


def pytest_runtest_logstart() -> None:
    """Begin with nothing for each test."""
    WATCH.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that has shown one of its secrets, when it is over."""
    report = yield
    if call.when != "teardown":
        return report
    for name, content in report.sections:
        WATCH.seen(name, content)
    leaks = WATCH.leaks()
    if leaks:
        report.outcome = "failed"
        report.longrepr = "Secrets have leaked:\n" + "\n".join(dict.fromkeys(leaks))
    return report


def _text(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    raised = "".join(traceback.format_exception(error)) if error else ""
    return f"{record.getMessage()} {vars(record)} {raised}"
