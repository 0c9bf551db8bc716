"""The outbox that docs/producers.md shows: killed anywhere it tells of each order exactly once."""

import importlib.util
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import pytest

from infra.local.processes import ROOT
from tests.e2e.customer import Customer
from tests.e2e.stack import RelayStack

SOURCE = ROOT / "docs/examples/outbox.py"
KEY = "relay_default.development.local-development-only"
DAY_S = 86_400.0
NOW_S = 1_764_000_000.0
Answer = tuple[list[dict[str, Any]], float]


def _loaded() -> Any:  # noqa: ANN401 - a file to paste, in no package
    spec = importlib.util.spec_from_file_location("outbox", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


outbox = _loaded()


class KilledError(BaseException):
    """The process is gone: nothing in the outbox catches it, and what was not committed is lost."""


class Steps:
    """Counts the steps of a program, and kills it before one of them."""

    def __init__(self, fatal: int) -> None:
        self.left = fatal

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise KilledError


class Shop(sqlite3.Connection):
    """A database whose every statement and commit is a step, before and after."""

    steps = Steps(0)

    def execute(self, sql: str, given: Any = ()) -> sqlite3.Cursor:  # noqa: ANN401 - as the base has it
        self.steps.step()
        return super().execute(sql, given)

    def executemany(self, sql: str, given: Any) -> sqlite3.Cursor:  # noqa: ANN401 - as the base has it
        self.steps.step()
        return super().executemany(sql, given)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> Literal[False]:
        self.steps.step()
        super().__exit__(kind, error, at)
        self.steps.step()
        return False


def opened(path: Path, steps: Steps) -> Shop:
    shop = sqlite3.connect(path, factory=Shop)
    shop.executescript(outbox.SCHEMA)
    shop.steps = steps
    return shop


def lives(path: Path, orders: range, post: Callable[[list[dict[str, str]]], Answer], steps: Steps) -> bool:
    """Take the orders that are not there yet and tell of them; False when the process was killed."""
    shop = opened(path, steps)

    def watched(events: list[dict[str, str]]) -> Answer:
        steps.step()
        answer = post(events)
        steps.step()
        return answer

    try:
        taken = {number for (number,) in shop.execute("SELECT number FROM orders")}
        for number in orders:
            if number not in taken:
                outbox.place_order(shop, number, 3_040)
                outbox.send(shop, watched, NOW_S)
        outbox.send(shop, watched, NOW_S)
        waiting = shop.execute("SELECT count(*) FROM outbox WHERE event_id IS NULL").fetchone()
    except KilledError:
        return False
    finally:
        shop.close()
    assert waiting == (0,)
    return True


def told(customer: Customer, since: datetime) -> "Counter[int]":
    """Count the events of each order that Relay has taken since then."""
    orders: Counter[int] = Counter()
    asked: dict[str, str | int] = {"limit": 200, "since": since.isoformat()}
    while True:
        page = customer.api.get("/v1/events", params=asked).json()
        for event in page["items"]:
            if event["type"] == "order.placed":
                orders[customer.api.get(f"/v1/events/{event['id']}/payload").json()["order"]] += 1
        if page["cursor"] is None:
            return orders
        asked["cursor"] = page["cursor"]


def test_killed_between_any_two_steps_it_tells_of_each_order_exactly_once(
    shared: RelayStack, customer: Customer, tmp_path: Path
) -> None:
    post = outbox.poster(shared.api_url, KEY)
    killed, began = 0, datetime.now(UTC)
    for fatal in count(1):
        path, orders = tmp_path / f"{fatal}.db", range(fatal * 10, fatal * 10 + 2)
        if lives(path, orders, post, Steps(fatal)):
            break
        killed += 1
        assert lives(path, orders, post, Steps(0))
    assert killed > 20
    assert told(customer, began) == Counter(
        number for fatal in range(1, killed + 2) for number in range(fatal * 10, fatal * 10 + 2)
    )


def test_as_a_program_it_posts_what_waits(shared: RelayStack, customer: Customer, tmp_path: Path) -> None:
    began = datetime.now(UTC)
    shop = opened(tmp_path / "shop.db", Steps(0))
    outbox.place_order(shop, 7, 3_040)
    program = [sys.executable, str(SOURCE), str(tmp_path / "shop.db"), shared.api_url, KEY]
    with subprocess.Popen(program) as running:
        try:
            shared.until(lambda: told(customer, began) == {7: 1}, within_s=60)
            assert running.poll() is None
        finally:
            running.kill()
    shop.close()


def test_what_outlived_its_key_is_not_posted_again_and_is_shown(tmp_path: Path) -> None:
    posted: list[str] = []

    def silent(events: list[dict[str, str]]) -> Answer:
        posted.extend(event["payload"] for event in events)
        return [], 5.0

    shop = opened(tmp_path / "shop.db", Steps(0))
    outbox.place_order(shop, 1, 3_040)
    outbox.send(shop, silent, NOW_S)
    outbox.place_order(shop, 2, 3_040)
    outbox.send(shop, silent, NOW_S + DAY_S)
    assert posted == ['{"order": 1, "total_cents": 3040}', '{"order": 2, "total_cents": 3040}']
    assert [row[3] for row in outbox.in_doubt(shop, NOW_S + DAY_S)] == posted[:1]
    shop.close()


@pytest.mark.parametrize("status, refused", [(400, 1), (413, 1), (429, 0), (503, 0)])
def test_what_is_refused_for_good_is_set_aside_and_the_rest_goes_on(
    tmp_path: Path, status: int, refused: int
) -> None:
    shop = opened(tmp_path / "shop.db", Steps(0))
    for number in (1, 2):
        outbox.place_order(shop, number, 3_040)
    results = [{"status": status}, {"status": 202, "event_id": "evt_2"}]
    assert outbox.send(shop, lambda _: (results, 7.0), NOW_S) == 7.0
    aside = shop.execute("SELECT count(*) FROM outbox WHERE refused IS NOT NULL").fetchone()
    waiting = shop.execute(
        "SELECT count(*) FROM outbox WHERE event_id IS NULL AND refused IS NULL"
    ).fetchone()
    assert (aside, waiting) == ((refused,), (1 - refused,))
    shop.close()
