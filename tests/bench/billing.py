"""Dollars: what was counted, times list prices. Values to values; nothing here measures or reads a file."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.domain import retention
from infra.functions import FUNCTIONS, LANE_QUEUES
from tests.bench.meter import Usage, amount

MILLION = 1_000_000
GB = 1_000_000_000
HOURS_A_MONTH = 730
MINUTES_A_MONTH = HOURS_A_MONTH * 60
MEMORY_GB = 0.5
"""What .chalice/config.json gives every function."""
SLOWER = 1_769 / 512
"""A function of 512 MB has that share of one processor; here it had a whole one."""
LAMBDA_LOG_BYTES = 300
"""What Lambda itself writes of an invocation: START, END and REPORT."""
ROW_BYTES = 100
"""What DynamoDB adds to every row it keeps."""
REQUEST_HEAD_BYTES = 900
POLLERS = 5
POLLS_A_MINUTE = 3
"""With a maximum concurrency a mapping keeps five pollers, each waiting 20 s for messages."""
KEPT_DAYS = {"events": retention.PAYLOAD_DAYS, "history": retention.HISTORY_DAYS}
DAYS_A_MONTH = 30.4
KMS_TABLE_CALLS_A_MONTH = HOURS_A_MONTH * 12
"""DynamoDB asks for a table's key every five minutes while the table is used."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill: so much of something, by its name in prices.json, in dollars."""

    what: str
    amount: float
    usd: float


class Prices:
    """List prices by what they are of, as prices.json has them."""

    def __init__(self, listed: Mapping[str, Any]) -> None:
        """Take the file as it was read."""
        self._usd = {each["of"]: each["usd"] / each["per"] for each in listed["prices"]}
        self.remembered = sorted(each["of"] for each in listed["prices"] if each["source"] == "remembered")

    def line(self, of: str, quantity: float, what: str = "") -> Line:
        """Price so much of something."""
        return Line(what or of, quantity, quantity * self._usd[of])


def used_lines(prices: Prices, counted: Mapping[str, Any]) -> list[Line]:
    """Price what functions used: units, requests and milliseconds, and what starts them."""
    used = {name: Usage(usage) for name, usage in counted["used"].items()}
    total = together(counted)
    polled = polled_requests(used)
    fifo, standard = (_queue_calls(total, kind) + polled[kind] for kind in ("fifo", "standard"))
    return [
        prices.line("dynamodb write unit", amount(total, "write ")),
        prices.line("dynamodb read unit", amount(total, "read ")),
        prices.line("sqs fifo request", fifo),
        prices.line("sqs standard request", standard),
        prices.line("api gateway REST request", used.get("api_handler", Usage())["invocations"]),
        prices.line("lambda request", total["invocations"]),
        prices.line("lambda arm64 GB-second", total["wall_ms"] / 1_000 * MEMORY_GB, "lambda time"),
        prices.line("lambda arm64 GB-second", _slower_s(counted) * MEMORY_GB, "lambda time, being slower"),
        prices.line("s3 put", total["call s3 PutObject"]),
        prices.line("s3 get", total["call s3 GetObject"]),
        prices.line("kms request", amount(total, "call kms ")),
    ]  # fmt: skip


def together(counted: Mapping[str, Any]) -> Usage:
    """Give what all functions used together."""
    return sum((Usage(usage) for usage in counted["used"].values()), Usage())


def log_lines(prices: Prices, counted: Mapping[str, Any]) -> list[Line]:
    """Price what functions wrote into their logs, and what Lambda wrote beside it."""
    invocations = sum(usage.get("invocations", 0) for usage in counted["used"].values())
    return [prices.line("cloudwatch logs GB", (counted["log_bytes"] + invocations * LAMBDA_LOG_BYTES) / GB)]


def kept_lines(prices: Prices, counted: Mapping[str, Any]) -> list[Line]:
    """Price the rows and bodies that stay until they expire."""
    months = {table: days / DAYS_A_MONTH for table, days in KEPT_DAYS.items()}
    rows = sum(_weight(kept) * months[table] for table, kept in counted["kept"].items())
    puts = sum(usage.get("call s3 PutObject", 0) for usage in counted["used"].values())
    bodies = puts * counted["payload_bytes"] * months["events"]
    return [
        prices.line("dynamodb GB-month", rows / GB),
        prices.line("dynamodb recovery GB-month", rows / GB),
        prices.line("s3 GB-month", bodies / GB),
    ]


def traffic_lines(prices: Prices, counted: Mapping[str, Any]) -> list[Line]:
    """Price the bytes of requests that leave through the NAT."""
    sent = counted["deliveries"] * (counted["payload_bytes"] + REQUEST_HEAD_BYTES) / GB
    return [prices.line("nat gateway GB", sent), prices.line("transfer out GB", sent)]


def per_million(lines: Iterable[Line], deliveries: int) -> list[Line]:
    """Scale a bill to a million deliveries, without the lines that are nothing."""
    scale = MILLION / deliveries
    return [Line(each.what, each.amount * scale, each.usd * scale) for each in lines if each.usd]


def polled_requests(used: Mapping[str, Mapping[str, float]]) -> Counter[str]:
    """Give the receives and deletes that Lambda made for the invocations of functions that a queue feeds."""
    requests: Counter[str] = Counter()
    for each in FUNCTIONS:
        requests[queue_kind(each.queue)] += 2 * int(used.get(each.name, {}).get("invocations", 0))
    return requests


def queue_kind(queue: str) -> str:
    """Say what a queue is; no queue is none."""
    if not queue:
        return ""
    return "fifo" if queue in LANE_QUEUES else "standard"


def empty_polls(kind: str) -> int:
    """Give what all mappings ask of empty queues of a kind in a month."""
    mappings = sum(queue_kind(each.queue) == kind for each in FUNCTIONS)
    return mappings * POLLERS * POLLS_A_MINUTE * MINUTES_A_MONTH


def _queue_calls(total: Usage, kind: str) -> float:
    return sum(n for name, n in total.items() if name.startswith("call sqs ") and name.endswith(f" {kind}"))


def _slower_s(counted: Mapping[str, Any]) -> float:
    """Give the seconds that the processor's part of the work takes longer there."""
    here_s: float = sum(counted["cpu_s"][name] for name in ("api", "workers"))
    return here_s * (SLOWER - 1)


def _weight(kept: Mapping[str, int]) -> int:
    return kept["bytes"] + kept["rows"] * ROW_BYTES
