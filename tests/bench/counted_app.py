"""The app as the benchmark runs it: the same app, what it uses of AWS and its admissions counted.

Each process writes its counts to a file of its own in RELAYBENCH_COUNTS twice a second.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3
from chalice.app import Chalice

from chalicelib.application.admission import Admission, Decisions
from chalicelib.application.visit import Visit
from infra.local.functions import Function
from tests.bench.meter import Meter, thread_cpu_s

PERIOD_S = 0.5
API = "infra.local.api" in " ".join(sys.orig_argv)


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


def _watch_functions(meter: Meter) -> None:
    """Bill every invocation from now on: of the API in its process, of all others in that of the workers."""
    answer, invoke = Chalice.__call__, Function.invoke

    def answered(app: Chalice, event: Any, context: Any) -> Any:  # noqa: ANN401 - as Chalice has it
        with meter.within("api_handler"):
            return answer(app, event, context)

    def invoked(function: Function, event: dict[str, Any], **logged: object) -> Any:  # noqa: ANN401 - whatever it answers
        with meter.within(function.name):
            return invoke(function, event, **logged)

    Chalice.__call__ = answered  # type: ignore[method-assign, assignment]  # measured from outside
    Function.invoke = invoked  # type: ignore[method-assign, assignment]  # as above


def _functions_cpu_s() -> float:
    """Read what the threads have used that run functions and send for them; the rest is the runtime's."""
    ours = (each for each in threading.enumerate() if each.name.startswith(("function_", "relay-sender")))
    return sum(thread_cpu_s(each.native_id) for each in ours if each.native_id)


def _write_for_ever(folder: Path, meter: Meter, visits: _Visits) -> None:
    target = folder / f"{os.getpid()}.json"
    while True:
        visited = {"admitted": visits.admitted, "granted": visits.granted}
        counts = {"used": meter.used(), **visited, "functions_cpu_s": 0.0 if API else _functions_cpu_s()}
        draft = target.with_suffix(".draft")
        draft.write_text(json.dumps(counts))
        draft.replace(target)
        time.sleep(PERIOD_S)


boto3.setup_default_session()
_meter = Meter()
_meter.listen(boto3.DEFAULT_SESSION)  # type: ignore[arg-type]  # set just above
_watch_functions(_meter)
_visits = _Visits()
_visits.watch()
threading.Thread(
    target=_write_for_ever, args=(Path(os.environ["RELAYBENCH_COUNTS"]), _meter, _visits), daemon=True
).start()

from app import app  # noqa: E402 - counting has to be there first

__all__ = ["app"]
