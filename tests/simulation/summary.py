"""What a run came to, its parts put together: plain values for build/bench/simulate.json and the page."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from chalicelib.adapters.dynamodb.keys import NIBBLES
from tests.simulation.figures import Figures, Waits
from tests.simulation.numbers import Numbers
from tests.simulation.runs import Ran

OF_API = frozenset({"requests", "events", "refused requests", "starts api", "throttled api"})
PERCENTS = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9}
POINTS = 120
TOP = 4
CALLS = ("get", "query", "statements", "transaction", "send", "hide", "delete")
Summary = dict[str, Any]


def summary(numbers: Numbers, parts: Sequence[Ran]) -> Summary:
    """Put the parts of a run together; the API is simulated whole in each, and told from the first."""
    seconds = parts[0].seconds
    figures = [each.figures for each in parts]
    counts = _counts(figures)
    functions = sorted(
        {name.removeprefix("mean busy ") for each in figures for name in each.tops if "mean" in name}
    )
    return {
        "seconds": seconds,
        "endpoints": numbers.load.endpoints,
        "in_the_crowd": numbers.load.aggregated,
        "copies_at_most": {
            "shard": numbers.most_shard,
            "slow": numbers.most_slow,
            "hot": numbers.most_hot,
            "api": numbers.most_api,
        },
        "pollers_at_first": numbers.platform.pollers_at_first,
        "cpu_s": round(sum(each.cpu_s for each in parts), 1),
        "deliveries": {
            name: sum(getattr(each, name) for each in parts)
            for name in ("created", "succeeded", "dead", "owed")
        },
        "per_s": {
            name: round(counts[name] / seconds, 1)
            for name in ("events", "requests", "attempts", "retries", "invocations")
        },
        "retries_share": round(counts["retries"] / counts["attempts"], 4),
        "crowd_share": round(counts["attempts of the crowd"] / counts["attempts"], 4),
        "refused_requests": counts["refused requests"],
        "waits_ms": {"first": _waits(figures, "first_waits"), "retries": _waits(figures, "retry_waits")},
        "endpoints_p99_ms": _by_endpoint(figures),
        "bells_per_attempt": {
            "fresh": round(counts["fresh bells"] / counts["attempts"], 3),
            "delayed": round(counts["delayed bells"] / counts["attempts"], 3),
            "rescued": counts["rescued"],
        },
        "rows_a_visit": round(counts["granted"] / counts["visits"], 2),
        "calls_per_attempt": round(sum(counts[each] for each in CALLS) / counts["granted"], 3),
        "counted_per_s": round(
            (counts["counter statements"] or counts["waves"])
            / seconds
            / (counts["granted"] / counts["attempts"]),
            1,
        ),
        "functions": {name: _function(figures, name, seconds) for name in functions},
        "depth": {
            name: _thin(_series(figures, f"depth {name}", seconds)) for name in functions if name != "api"
        },
        "owed": _thin(_series(figures, "owed", seconds)),
        "hot_partitions": _hot(figures, seconds),
    }


def _counts(figures: Sequence[Figures]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for place, each in enumerate(figures):
        counts.update({name: n for name, n in each.counts.items() if place == 0 or name not in OF_API})
    return counts


def _waits(figures: Sequence[Figures], of: str) -> Summary:
    merged: dict[str, Waits] = {}
    for each in figures:
        for kind, waits in getattr(each, of).items():
            merged.setdefault(kind, Waits()).merge(waits)
    return {kind: {"count": waits.total, **_percentiles(waits)} for kind, waits in sorted(merged.items())}


def _percentiles(waits: Waits) -> dict[str, float]:
    return {name: waits.percentile(percent) for name, percent in PERCENTS.items()}


def _by_endpoint(figures: Sequence[Figures]) -> list[float]:
    """Give the hundredths, from lowest to highest, of each endpoint's own p99."""
    own = sorted(waits.percentile(99.0) for each in figures for waits in each.by_endpoint.values())
    return [own[min(len(own) - 1, len(own) * part // 100)] for part in range(101)]


def _function(figures: Sequence[Figures], name: str, seconds: int) -> Summary:
    whole = figures[:1] if name == "api" else figures
    busy = _series(whole, f"mean busy {name}", seconds)
    settled = busy[len(busy) // 2 :]
    return {
        "mean": round(sum(settled) / len(settled), 1),
        "most": max(
            sum(each.tops[f"busy {name}"].get(second, 0) for each in whole) for second in range(seconds)
        ),
        "starts": sum(each.counts[f"starts {name}"] for each in whole),
        "starts_a_second_at_most": max(
            sum(each.seconds[f"starts {name}"].get(second, 0) for each in whole) for second in range(seconds)
        ),
        "first_minute": busy[:60],
        "series": _thin(busy),
    }


def _series(figures: Sequence[Figures], name: str, seconds: int) -> list[int]:
    return [sum(each.tops[name].get(second, 0) for each in figures) for second in range(seconds)]


def _thin(series: Sequence[int]) -> list[float]:
    step = max(1, len(series) // POINTS)
    chunks = [series[start : start + step] for start in range(0, len(series), step)]
    return [round(sum(each) / len(each), 1) for each in chunks]


def _hot(figures: Sequence[Figures], seconds: int) -> list[Summary]:
    """Give the partitions that are written most, of all tables, those of events by their sixteenths."""
    found: list[Summary] = []
    for place, each in enumerate(figures):
        for (table, key), by_second in each.keys.items():
            if place and table in {"events", "allowances"}:
                continue
            shares = len(NIBBLES) if table == "events" else 1
            mean = sum(by_second.values()) / seconds / shares
            found.append(
                {
                    "table": table,
                    "key": key,
                    "mean": round(mean, 1),
                    "most": max(by_second.values()) // shares,
                }
            )
    hottest = sorted(found, key=lambda each: -float(each["mean"]))
    tables = sorted({str(each["table"]) for each in found})
    return [one for table in tables for one in _of(table, hottest)]


def _of(table: str, hottest: Sequence[Summary]) -> list[Summary]:
    return [each for each in hottest if each["table"] == table][:TOP]
