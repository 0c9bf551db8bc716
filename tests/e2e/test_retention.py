"""On a whole stack the hourly function removes what is overdue, all of it, and leaves the rest."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from infra.local.emulator import EmulatorName, running
from infra.local.provision import provision
from tests.e2e.customer import Customer
from tests.e2e.stack import RelayStack

DAY_MS = 86_400_000
NOW_MS = time.time_ns() // 1_000_000
NOW_S = NOW_MS // 1000
HOUR_S = 3_600
ROWS = {"idempotency": 30, "history": 140, "dead-letters": 25, "notices": 5, "stats": 7}
YOUNG_DAYS = 1 / (24 * 60)
"""A minute when this module is read, and well under an hour when a whole run comes to it."""
OLD, KEPT, ORPHANS = 60, 9, 4
"""Payloads whose time is over, that are kept although old, and whose event was never written."""


def event_id(days: float, number: int) -> str:
    """Name an event that is so many days old."""
    at_ms = NOW_MS - int(days * DAY_MS)
    return f"evt_{UUID(int=at_ms << 80 | 0x7 << 76 | 0b10 << 62 | number)}"


class Seeds:
    """Rows and payloads written behind Relay's back."""

    def __init__(self, stack: RelayStack) -> None:
        self.rows: list[tuple[str, dict[str, Any]]] = []
        self.dynamodb, self.s3 = stack.client("dynamodb"), stack.client("s3")

    def row(self, table: str, pk: str, sk: str, until_s: int, **more: str) -> None:
        """Write a row that is kept until a moment."""
        item: dict[str, Any] = {"pk": {"S": pk}, "ttl": {"N": str(until_s)}}
        item |= {"sk": {"S": sk}} if table != "idempotency" else {}
        item |= {name: {"N" if value.isdigit() else "S": value} for name, value in more.items()}
        self.dynamodb.put_item(TableName=f"relay-{table}", Item=item)

    def event(self, event: str, until_s: int) -> None:
        """Write an event, of which only its time matters here."""
        hour = (UUID(event[4:]).int >> 80) // 3_600_000
        self.row("events", f"default#{hour:07d}#{event[-1]}", event, until_s)

    def payload(self, event: str) -> None:
        """Write a payload."""
        self.s3.put_object(Bucket="relay-payloads", Key=f"default/{event}", Body=b"=bytes")

    def payloads(self) -> set[str]:
        """Name the events whose payloads are there."""
        listed = self.s3.list_objects_v2(Bucket="relay-payloads").get("Contents", [])
        return {each["Key"].partition("/")[2] for each in listed}

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=f"relay-{table}", Select="COUNT")
        return sum(int(page["Count"]) for page in pages)


def sow(seeds: Seeds) -> int:
    """Seed what is overdue, and as much of everything that is not; how much is overdue."""
    for table, count in ROWS.items():
        for number in range(count):
            about = {"event": event_id(1, number), "at_ms": str(NOW_MS - DAY_MS), "kept": "1"}
            more = about if table == "dead-letters" else {}
            for until_s, word in ((NOW_S - 1 - number, "over"), (NOW_S + HOUR_S, "kept")):
                delivery = event_id(1, number)[4:]
                seeds.row(
                    table, f"default#ep_{word}{number % 3}{number}", f"{delivery}#0000", until_s, **more
                )
    for number in range(OLD):
        seeds.event(event_id(36, number), NOW_S - 10)
        seeds.payload(event_id(36, number))
    for number in range(KEPT):
        seeds.event(event_id(40, number), NOW_S + HOUR_S)
        seeds.payload(event_id(40, number))
    for number in range(ORPHANS):
        seeds.payload(event_id(2 / 24, number))
        seeds.payload(event_id(YOUNG_DAYS, number))
    return sum(ROWS.values()) + 2 * OLD + ORPHANS


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("retained")


@pytest.fixture(scope="module")
def sown(state: Path) -> Iterator[tuple[RelayStack, int]]:
    stack = RelayStack(state)
    with running(EmulatorName.MINISTACK, state, stack.ports.emulator) as url:
        provision(url)
        overdue = sow(Seeds(stack))
    with stack:
        yield stack, overdue


def swept(stack: RelayStack) -> list[dict[str, Any]]:
    """Give what the retention function has said of its runs."""
    lines = [line for line in stack.log("workers").splitlines() if '"retention.swept"' in line]
    return [json.loads(line) for line in lines]


def test_the_count_removed_is_the_count_that_was_overdue(sown: tuple[RelayStack, int]) -> None:
    stack, overdue = sown
    stack.until(lambda: any(each["finished"] for each in swept(stack)), within_s=60)
    assert sum(each["removed"] for each in swept(stack)) == overdue
    seeds = Seeds(stack)
    assert {table: seeds.count(table) for table in ROWS} == ROWS
    young = {event_id(YOUNG_DAYS, number) for number in range(ORPHANS)}
    assert seeds.payloads() == {event_id(40, number) for number in range(KEPT)} | young


def test_what_is_delivered_meanwhile_is_delivered(sown: tuple[RelayStack, int]) -> None:
    stack, _ = sown
    with Customer(stack) as customer:
        _, delivery_id = customer.deliver("/verify")
        assert customer.ended(delivery_id)["status"] == "succeeded"
