"""What became of the events of a steady load: which were accepted, which arrived, and how long that took.

Depends on the API's answers, the receiver's log and clocks alone.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.bench.latency import Timed, quantile
from tests.bench.stack import BenchStack
from tests.bench.steady import Answered

ARRIVED_WITHIN_S = 20
PAGE = 200


def accepted(answered: Sequence[Answered], of: str, from_s: float) -> dict[str, Answered]:
    """Give the events of a load from a moment on, by the ids of their deliveries; all must be accepted."""
    refused = sorted({each.status for each in answered if each.status not in {202, 207}})
    if refused:
        raise RuntimeError(f"the API answered {refused}")
    measured = [each for each in answered if each.arrival.of == of and each.arrival.at_s >= from_s]
    return {json.loads(each.body)["delivery_ids"][0]: each for each in measured}


def received(stack: BenchStack, wanted: Mapping[str, object]) -> list[dict[str, Any]]:
    """Read the receiver's log as soon as all that is wanted has arrived."""
    deadline = time.monotonic() + ARRIVED_WITHIN_S
    while True:
        log: list[dict[str, Any]] = stack.ask("GET", "/received?brief=1", receiver=True)
        arrived = {each["delivery_id"] for each in log}
        if arrived.issuperset(wanted) or time.monotonic() > deadline:
            return log
        time.sleep(0.5)


def queue_ms(stack: BenchStack, endpoints: Iterable[str], wanted: Mapping[str, object]) -> dict[str, float]:
    """Read what each wanted delivery's first attempt says of its wait for its turn."""
    waits: dict[str, float] = {}
    for endpoint_id in endpoints:
        cursor: str | None = ""
        while cursor is not None:
            page = stack.ask("GET", f"/v1/endpoints/{endpoint_id}/deliveries?limit={PAGE}{cursor}")
            mine = [each for each in page["items"] if each["id"] in wanted and each["attempts"]]
            waits.update({each["id"]: each["attempts"][0]["platform_ms"]["total"] for each in mine})
            # Lists are newest first, and what was measured came last.
            cursor = f"&cursor={page['cursor']}" if page["cursor"] and mine else None
    return waits


def timed(
    measured: Mapping[str, Answered], log: Sequence[Mapping[str, Any]], waits: Mapping[str, float]
) -> list[Timed]:
    """Time each measured delivery from its event's receipt to its first arrival."""
    times: dict[str, Timed] = {}
    for each in log:
        delivery_id = each["delivery_id"]
        if delivery_id in measured and delivery_id not in times:
            began_ms = int(delivery_id.replace("-", "")[:12], 16)
            total = each["received_at"] - began_ms
            queue = waits.get(delivery_id, total)
            times[delivery_id] = Timed(
                total, measured[delivery_id].answered_ms - began_ms, queue, total - queue
            )
    return list(times.values())


def late_ms(answered: Sequence[Answered]) -> float:
    """Give how late the load itself was, at its 99th percentile."""
    return quantile([each.late_ms for each in answered], 0.99)
