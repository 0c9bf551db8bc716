"""`python -m tests.bench.cost`: what deliveries and an idle month cost, from what was counted.

Counts first when build/bench/counted.json is missing; then writes build/bench/cost.json and the tables of
docs/cost.md.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chalicelib.domain.reporting import SERIES
from infra.watching import cloudwatch
from infra.watching.alarms import ALARMS
from tests.bench import billing, cost_cases
from tests.bench.billing import Line, Prices
from tests.bench.page import put_between, table

TARGET = Path("build/bench/cost.json")
PRICES = Path(__file__).parent / "prices.json"
PAGE = Path("docs/cost.md")
TEMPLATES = ("infra/resources.yaml", "infra/network.yaml")
FULL = "full, 2 KB"
MOST_PER_MILLION = 6.5
MOST_A_MONTH = 5.0


def main() -> int:
    """Reckon; the exit code is 1 when a target is missed."""
    counted = json.loads(cost_cases.TARGET.read_text()) if cost_cases.TARGET.exists() else cost_cases.run()
    listed = json.loads(PRICES.read_text())
    prices = Prices(listed)
    cases = {name: case_bill(prices, case) for name, case in counted["cases"].items()}
    idle = idle_bill(prices, counted["idle"])
    figures = {
        "usd_per_million_full_batches": cases[FULL]["usd"],
        "most_usd_per_million": MOST_PER_MILLION,
        "usd_per_idle_month": idle["usd"],
        "most_usd_per_idle_month": MOST_A_MONTH,
        "prices_read": listed["read"],
        "prices_remembered": prices.remembered,
        "cases": cases,
        "idle_month": idle,
    }
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n")
    _tell(cases, idle, busy(counted["load"], counted["cores"]))
    print(f"${cases[FULL]['usd']} per million at full batches, ${idle['usd']} an idle month: {TARGET}")
    return int(cases[FULL]["usd"] > MOST_PER_MILLION or idle["usd"] > MOST_A_MONTH)


def case_bill(prices: Prices, case: Mapping[str, Any]) -> dict[str, Any]:
    deliveries = case["deliveries"]
    parts = {
        "items": [*billing.used_lines(prices, case), *billing.log_lines(prices, case)],
        "kept": billing.kept_lines(prices, case),
        "traffic": billing.traffic_lines(prices, case),
    }
    scaled = {name: billing.per_million(lines, deliveries) for name, lines in parts.items()}
    return {
        "usd": _sum(scaled["items"]),
        "usd_kept": _sum(scaled["kept"]),
        "usd_traffic": _sum(scaled["traffic"]),
        **{name: _plain(lines) for name, lines in scaled.items()},
        "write_units": {
            name.removeprefix("write relay-"): round(units / deliveries, 2)
            for name, units in billing.together(case).items()
            if name.startswith("write ")
        },
    }


def idle_bill(prices: Prices, idle: Mapping[str, Any]) -> dict[str, Any]:
    """Price a month in which nothing is posted; what watches, keys and addresses is apart."""
    resources = "".join(Path(each).read_text() for each in TEMPLATES)
    hours = billing.HOURS_A_MONTH
    polls = [
        prices.line(f"sqs {kind} request", billing.empty_polls(kind), f"empty polls of {kind} queues")
        for kind in ("fifo", "standard")
    ]
    table_keys = _count(resources, "DynamoDB::Table") * billing.KMS_TABLE_CALLS_A_MONTH
    apart = [
        *billing.log_lines(prices, idle),
        prices.line("cloudwatch metric-month", SERIES),
        prices.line("cloudwatch alarm-month", len(ALARMS)),
        prices.line("cloudwatch dashboard-month", len(cloudwatch.resources()["Resources"])),
        prices.line("kms key-month", _count(resources, "KMS::Key")),
        prices.line("kms request", table_keys, "kms requests for the tables' keys"),
        prices.line("nat gateway hour", _count(resources, "EC2::NatGateway") * hours),
        prices.line("public IPv4 hour", _count(resources, "EC2::EIP") * hours),
    ]
    items = [line for line in [*polls, *billing.used_lines(prices, idle)] if line.usd]
    return {"usd": _sum(items), "usd_apart": _sum(apart), "items": _plain(items), "apart": _plain(apart)}


def _count(resources: str, kind: str) -> int:
    return len(re.findall(rf"Type: AWS::{kind}$", resources, re.MULTILINE))


def _sum(lines: Iterable[Line]) -> float:
    return round(sum(each.usd for each in lines), 2)


def _plain(lines: Iterable[Line]) -> list[dict[str, Any]]:
    return [{"what": each.what, "amount": round(each.amount, 3), "usd": round(each.usd, 4)} for each in lines]


def busy(load: float, cores: int) -> str:
    """Say what the machine was doing beside, in the five minutes before it was counted."""
    idle = f"Counted on {cores} cores that had nothing else to do."
    others = (
        f"Counted on {cores} cores that other programs wanted {load:.0f} of: the Lambda times are too high."
    )
    return idle if load < 1 else others


def _tell(cases: Mapping[str, Any], idle: Mapping[str, Any], told: str) -> None:
    """Write the tables of the page."""
    rows = [
        (name, *(f"{case[key]:.2f}" for key in ("usd", "usd_kept", "usd_traffic")))
        for name, case in cases.items()
    ]
    bills = table(("events come", "$ per million", "and kept", "and traffic"), rows)
    put_between(PAGE, "cases", f"{told}\n\n{bills}")
    put_between(PAGE, "full batches", _bill(cases[FULL]["items"], "per million"))
    timeless = sum(each["usd"] for each in idle["items"] if not each["what"].startswith("lambda time"))
    rest = f"All but Lambda's time comes to ${timeless:.2f}."
    put_between(PAGE, "idle month", f"{_bill(idle['items'], 'a month')}\n{rest}")
    put_between(PAGE, "idle month apart", _bill(idle["apart"], "a month"))


def _bill(lines: Sequence[Mapping[str, Any]], per: str) -> str:
    rows = [(each["what"], f"{each['amount']:,.0f}", f"{each['usd']:.3f}") for each in lines]
    total = sum(each["usd"] for each in lines)
    return table((f"what ({per})", "amount", "$"), [*rows, ("**together**", "", f"**{total:.2f}**")])


if __name__ == "__main__":
    sys.exit(main())
