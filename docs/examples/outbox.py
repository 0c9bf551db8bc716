"""A transactional outbox: what happens in the shop, and that it is told, is one transaction.

Python 3.10 or newer, nothing else. `python outbox.py shop.db https://relay.example relay_…` posts what waits.
"""

import json
import sqlite3
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, total_cents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (
    place         INTEGER PRIMARY KEY AUTOINCREMENT,
    key           TEXT NOT NULL UNIQUE,  -- the idempotency key: made once, with the row
    type          TEXT NOT NULL,
    payload       TEXT NOT NULL,
    first_tried_s REAL,                  -- written down before it is posted for the first time
    event_id      TEXT,                  -- Relay has it
    refused       TEXT                   -- Relay will never take it: somebody has to look
);
"""
BATCH = 100
SURE_FOR_S = 23 * 3600
"""Relay knows a key for 24 hours after it accepted the event; an hour is for clocks and slow answers."""

Row = tuple[int, str, str, str]
Post = Callable[[list[dict[str, str]]], tuple[list[dict[str, object]], float]]


def place_order(db: sqlite3.Connection, number: int, total_cents: int) -> None:
    """Do what the shop does; the event is one more row of the same transaction."""
    payload = json.dumps({"order": number, "total_cents": total_cents})
    with db:
        db.execute("INSERT INTO orders VALUES (?, ?)", (number, total_cents))
        db.execute(
            "INSERT INTO outbox (key, type, payload) VALUES (?, 'order.placed', ?)",
            (str(uuid.uuid4()), payload),
        )


def send(db: sqlite3.Connection, post: Post, now_s: float) -> float:
    """Post what waits, oldest first, and give the seconds until it is worth another call.

    Killed anywhere, the next call goes on; two at once do no harm, as both post under the same keys.
    """
    rows: list[Row] = db.execute(
        "SELECT place, key, type, payload FROM outbox WHERE event_id IS NULL AND refused IS NULL"
        " AND coalesce(first_tried_s, ?) > ? ORDER BY place LIMIT ?",
        (now_s, now_s - SURE_FOR_S, BATCH),
    ).fetchall()
    if not rows:
        return 1.0
    with db:
        db.executemany(
            "UPDATE outbox SET first_tried_s = ? WHERE place = ? AND first_tried_s IS NULL",
            [(now_s, place) for place, *_ in rows],
        )
    results, wait_s = post(
        [{"type": type_, "payload": payload, "idempotency_key": key} for _, key, type_, payload in rows]
    )
    with db:
        for (place, *_), result in zip(rows, results, strict=False):
            if result["status"] == 202:
                db.execute("UPDATE outbox SET event_id = ? WHERE place = ?", (result["event_id"], place))
            elif result["status"] in (429, 500, 503):
                wait_s = max(wait_s, 1.0)
            else:
                db.execute("UPDATE outbox SET refused = ? WHERE place = ?", (json.dumps(result), place))
    return wait_s


def in_doubt(db: sqlite3.Connection, now_s: float) -> list[Row]:
    """Give what was posted, to no known end, before keys that Relay still knows: it may be there."""
    return db.execute(
        "SELECT place, key, type, payload FROM outbox WHERE event_id IS NULL AND refused IS NULL"
        " AND first_tried_s <= ? ORDER BY place",
        (now_s - SURE_FOR_S,),
    ).fetchall()


def poster(url: str, api_key: str) -> Post:
    """Give what posts a batch: the results, none if there was no answer, and how long to wait."""

    def post(events: list[dict[str, str]]) -> tuple[list[dict[str, object]], float]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {api_key}"}
        body = json.dumps({"events": events}).encode()
        request = urllib.request.Request(f"{url}/v1/events/batch", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)["results"], float(answer.headers.get("Retry-After", 0))
        except urllib.error.HTTPError as refused:
            print(refused, refused.read().decode(), file=sys.stderr)
            return [], float(refused.headers.get("Retry-After", 5))
        except OSError as unreachable:
            print(unreachable, file=sys.stderr)
            return [], 5.0

    return post


if __name__ == "__main__":
    shop = sqlite3.connect(sys.argv[1])
    shop.executescript(SCHEMA)
    relay = poster(*sys.argv[2:4])
    while True:
        for row in in_doubt(shop, time.time()):
            print("look whether Relay has it:", row, file=sys.stderr)
        time.sleep(send(shop, relay, time.time()))
