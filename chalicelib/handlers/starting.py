"""What a process makes ready while it starts, so that one started ahead of its first call answers at once.

Only for functions that somebody waits for. What the others need, and what few requests need, is made when it
is first called.
"""

import gc

from chalicelib import bootstrap

_COLLECT_AFTER = (20_000, 20, 100)


def make_ready(function: str) -> None:
    """Load and make what a function of app.py works with; nothing of AWS is called. None has the name ``."""
    _load(function)
    _leave_alone_what_stays()


def _leave_alone_what_stays() -> None:
    """Keep the garbage collector off what a process loads once, and let it come less often.

    Reading and writing JSON makes many short-lived objects, and each thousand of them had it look through
    all that was loaded: a quarter of what delivering cost (docs/load-test.md).
    """
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def _load(function: str) -> None:
    if function == "app":
        _answer_requests()
    elif function == "deliver_cloud":
        _deliver()
        bootstrap.deliver_cloud()
    elif function.startswith("deliver_"):
        _deliver()
        bootstrap.deliver()


def _answer_requests() -> None:
    from chalicelib.handlers import events, http  # noqa: F401, PLC0415 - loaded for the calls to come

    bootstrap.log()
    bootstrap.authenticate()
    bootstrap.admit_requests()
    bootstrap.ingest()


def _deliver() -> None:
    from chalicelib.handlers import deliver  # noqa: F401, PLC0415 - as above

    bootstrap.log()
    bootstrap.tracer()
