"""Ingest latency beside endpoints that do not match: one of them and five hundred, posted to in turn."""

import http.client
import json
import statistics
import time
from typing import Any

from tests.bench.stack import BenchStack

FEW, MANY = 1, 500
PAIRS = 400
DROPPED = 40


def run() -> dict[str, Any]:
    """Post to both stacks in turn and give the medians and their ratio."""
    with BenchStack() as few, BenchStack() as many:
        _endpoints(few, FEW)
        _endpoints(many, MANY)
        posts = (_poster(few), _poster(many))
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(PAIRS):
            for place in (0, 1) if number % 2 else (1, 0):
                times[place].append(_post_ms(posts[place], number))
    medians = [statistics.median(each[DROPPED:]) for each in times]
    return {
        "ingest_p50_ms_beside_1": round(medians[0], 2),
        "ingest_p50_ms_beside_500": round(medians[1], 2),
        "ingest_ratio": round(medians[1] / medians[0], 3),
    }


def _endpoints(stack: BenchStack, count: int) -> None:
    for number in range(count):
        body = {"url": f"http://127.0.0.1:{stack.receiver_port}/sink", "event_types": [f"other.e{number}"]}
        stack.ask("POST", "/v1/endpoints", body)


def _poster(stack: BenchStack) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", stack.api_port)


def _post_ms(connection: http.client.HTTPConnection, number: int) -> float:
    body = json.dumps({"type": "order.paid", "number": number})
    began = time.perf_counter()
    connection.request("POST", "/v1/events", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != http.HTTPStatus.ACCEPTED:
        raise RuntimeError(f"the API answered {answer.status}")
    return (time.perf_counter() - began) * 1000
