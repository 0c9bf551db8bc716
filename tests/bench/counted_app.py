"""The app as the benchmark runs it: the same app, its AWS calls and admissions counted.

Each process writes its counts to a file of its own in RELAYBENCH_COUNTS a few times a second.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import boto3

from chalicelib.adapters.aws_limits.call_counter import CallCounter, count_calls
from chalicelib.application.admission import Admission, Decisions
from chalicelib.application.visit import Visit

PERIOD_S = 0.2
ROLE = "api" if "infra.local.api" in " ".join(sys.orig_argv) else "workers"


class _Visits:
    """How many visits were admitted, and how many deliveries they were granted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.admitted = 0
        self.granted = 0

    def watch(self) -> None:
        """Count what every admission decides from now on."""
        decide = Admission.decide

        def counted(admission: Admission, visits: Sequence[Visit], now_us: int) -> Decisions:
            decisions = decide(admission, visits, now_us)
            claims = [each.visit.claim for each in decisions.admitted]
            with self._lock:
                self.admitted += len(claims)
                self.granted += sum(claim.lease.count for claim in claims if claim)
            return decisions

        Admission.decide = counted  # type: ignore[method-assign, assignment]  # measured from outside


def _write_for_ever(folder: Path, counter: CallCounter, visits: _Visits) -> None:
    target = folder / f"{os.getpid()}.json"
    while True:
        counts = {
            "calls": {" ".join([ROLE, *name]): count for name, count in counter.calls().items()},
            "write_units": counter.write_units,
            "admitted": visits.admitted,
            "granted": visits.granted,
        }
        draft = target.with_suffix(".draft")
        draft.write_text(json.dumps(counts))
        draft.replace(target)
        time.sleep(PERIOD_S)


boto3.setup_default_session()
_counter = count_calls(boto3.DEFAULT_SESSION, write_units=True)  # type: ignore[arg-type]  # set just above
_visits = _Visits()
_visits.watch()
threading.Thread(
    target=_write_for_ever, args=(Path(os.environ["RELAYBENCH_COUNTS"]), _counter, _visits), daemon=True
).start()

from app import app  # noqa: E402 - counting has to be there first

__all__ = ["app"]
