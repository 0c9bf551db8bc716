"""docs/scale.md and its plots, made from the figures of build/bench/simulate.json and from nothing else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.simulation import drawing
from tests.simulation.numbers import SHARDS, Load, Platform

TARGET = Path("docs/scale.md")
PLOTS = Path("docs/scale")
TEMPLATE = Path(__file__).with_name("scale.md.in")
PARTITION_UNITS = 1_000
METRICS_SHARDS = 32
FUNCTION_S = 60
PERCENTS = ("p50", "p99", "p99.9")
KINDS = ("hot", "busy", "steady", "steady (crowd)", "idle", "idle (crowd)", "paced", "down", "hanging")
NAMES = {"twentieth": "a twentieth of the scale", "full": "all of the scale"}
Figures = Mapping[str, Any]


def write(figures: Figures, target: Path = TARGET, plots: Path = PLOTS) -> None:
    """Write the page and its plots."""
    plots.mkdir(parents=True, exist_ok=True)
    for name, svg in _plots(figures["runs"]):
        (plots / f"{name}.svg").write_text(svg)
    target.write_text(page(figures))


def page(figures: Figures) -> str:
    """Fill the template in."""
    runs = figures["runs"]
    values = {**_about(figures), **_against_what_is_known(figures), **_across(runs), **_sweeping(figures)}
    for name, run in runs.items():
        values |= {f"{key}_{name}": value for key, value in _of(run).items()}
    return TEMPLATE.read_text().format_map(values)


def _about(figures: Figures) -> dict[str, str]:
    full, load = figures["runs"]["full"], Load()
    weights = sum((rank + 1) ** -load.skew for rank in range(load.endpoints))
    return {
        "endpoints": f"{full['endpoints']:,}",
        "full_time": _time(full["seconds"]),
        "twentieth_time": _time(figures["runs"]["twentieth"]["seconds"]),
        "top_per_s": f"{load.events_per_s * (1 + load.second_taker) / weights:,.0f}",
        "cpu_s": f"{figures['cpu_s']:,}",
        "took": _time(figures["took_s"]),
        "shared": figures.get("shared", ""),
        "in_the_crowd": f"{full['in_the_crowd']:.0%}",
        "crowd_share": f"{full['crowd_share']:.0%}",
    }


def _against_what_is_known(figures: Figures) -> dict[str, str]:
    heads = list(next(iter(figures["measured"].values())))
    cases = ([name, *(_cell(*found[each]) for each in heads)] for name, found in figures["measured"].items())
    gate = figures["one_gate"]
    return {
        "measured": _table(["case", *heads], cases),
        "gate_expected": f"{gate['expected_mean_ms']:,.0f}",
        "gate_found": f"{gate['found_mean_ms']:,.0f}",
        "gate_early": "none" if not gate["early"] else str(gate["early"]),
        "gate_late": f"{gate['late_at_most_ms']:,.0f}",
        "gate_sent": str(gate["sent"]),
        "gate_could": str(gate["could"]),
    }


def _cell(measured: float, found: float) -> str:
    return f"{measured:g} / {found:g} ({found / measured - 1:+.0%})"


def _of(run: Figures) -> dict[str, str]:
    """Tell what is told of each run alike."""
    own, per_s = run["endpoints_p99_ms"], run["per_s"]
    half, most, nearly_all = (f"{own[part]:,.0f}" for part in (50, 90, 99))
    waits = (_wait_row(kind, first, run["waits_ms"]["retries"]) for kind, first in _kinds(run))
    functions = (_function_row(name, of, run) for name, of in run["functions"].items())
    return {
        "waits": _table(["endpoints", "first attempts", *PERCENTS, "retries", *PERCENTS[:2]], waits),
        "own": f"Each endpoint's own p99: half of them stay below {half} ms, nine in ten below {most} ms, "
        f"all but a hundredth below {nearly_all} ms.",
        "rates": f"{per_s['attempts']:,.0f} attempts/s, {per_s['invocations']:,.0f} invocations/s",
        "copies": _table(
            ["function", "mean", "most", "allowed", "started", "started in a second, at most"], functions
        ),
        "refused": f"{run['refused_requests']:,}",
        "shards": f"{_mean_copies(run, 'shard'):,.0f}",
    }


def _kinds(run: Figures) -> Iterable[tuple[str, Figures]]:
    first = run["waits_ms"]["first"]
    return ((kind, first[kind]) for kind in KINDS if kind in first)


def _wait_row(kind: str, first: Figures, retries: Figures) -> list[str]:
    again = retries.get(kind, {"count": 0, "p50": 0, "p99": 0})
    told = [f"{first['count']:,}", *(f"{first[each]:,.0f}" for each in PERCENTS)]
    return [kind, *told, f"{again['count']:,}", f"{again['p50']:,.0f}", f"{again['p99']:,.0f}"]


def _function_row(name: str, of: Figures, run: Figures) -> list[str]:
    most = run["copies_at_most"]
    allowed = {"api": most["api"], "slow": most["slow"], "hot-0": most["hot"]}.get(name, most["shard"])
    told = [f"{of['mean']:,.0f}", f"{of['most']:,}", f"{allowed:,}"]
    return [name, *told, f"{of['starts']:,}", f"{of['starts_a_second_at_most']:,}"]


def _mean_copies(run: Figures, kind: str = "") -> float:
    means = (of["mean"] for name, of in run["functions"].items() if name != "api" and name.startswith(kind))
    return float(sum(means))


def _across(runs: Figures) -> dict[str, str]:
    """Tell what is told of both runs together, or of the whole scale alone."""
    full = runs["full"]
    needed = _mean_copies(full)
    hot = full["hot_partitions"]
    waves = full["counted_per_s"] / METRICS_SHARDS
    return {
        "needed": f"{needed:,.0f}",
        "needed_api": f"{full['functions']['api']['mean']:,.0f}",
        "ramp": f"{needed / SHARDS / (Platform().pollers_a_minute / 60):,.0f}",
        "bells": _bells(runs),
        "partitions": _table(
            ["table", "partition", "mean", "most in a second"],
            ([each["table"], each["key"], f"{each['mean']:,.0f}", f"{each['most']:,}"] for each in hot),
        ),
        "over": ", ".join(sorted({each["table"] for each in hot if each["mean"] > PARTITION_UNITS}))
        or "none",
        "wave_share": f"{waves:,.0f}",
        "wave_room": f"{PARTITION_UNITS / max(1.0, waves):.1f}",
    }


def _bells(runs: Figures) -> str:
    heads = [
        "fresh an attempt",
        "delayed an attempt",
        "rung by reconcile",
        "rows a visit",
        "AWS calls an attempt",
    ]
    return _table(["", *heads], (_bell_row(name, run) for name, run in runs.items()))


def _bell_row(name: str, run: Figures) -> list[str]:
    bells = run["bells_per_attempt"]
    rung = [f"{bells['fresh']:.2f}", f"{bells['delayed']:.2f}", str(bells["rescued"])]
    return [NAMES[name], *rung, f"{run['rows_a_visit']:.1f}", f"{run['calls_per_attempt']:.2f}"]


def _sweeping(figures: Figures) -> dict[str, str]:
    sweeps = {int(armed): took for armed, took in figures["sweeps_s"].items()}
    most = max(sweeps)
    alone, together = sweeps[most]
    rows = ([f"{armed:,}", *(f"{each:,.1f}" for each in took)] for armed, took in sorted(sweeps.items()))
    return {
        "sweeps": _table(["armed endpoints", "one lane at a time (s)", "as it does (s)"], rows),
        "most_armed": f"{most:,}",
        "sweep_ms": f"{alone / most * 1000:.1f}",
        "sweep_alone": f"{int(most * FUNCTION_S / alone / 100) * 100:,}",
        "sweep_fits": f"{int(most * FUNCTION_S / together / 1_000) * 1_000:,}",
    }


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(each)} |" for each in (heads, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(heads)}", *lines[1:]])


def _plots(runs: Figures) -> Iterator[tuple[str, str]]:
    for name, run in runs.items():
        rows = {kind: [first[each] for each in PERCENTS] for kind, first in _kinds(run)}
        yield f"waits-{name}", drawing.percentiles(f"First attempts' waits at {NAMES[name]}", rows, PERCENTS)
    twentieth, full = runs["twentieth"]["functions"], runs["full"]["functions"]
    first = {name: of["first_minute"] for name, of in twentieth.items() if of["most"]}
    yield "start", drawing.lines("Copies at work from a cold start, a twentieth", first, (60, "s"), "copies")
    whole = {name: of["series"] for name, of in full.items() if of["most"]}
    over = (runs["full"]["seconds"], "s")
    yield "copies", drawing.lines("Copies at work at full scale", whole, over, "copies")
    hot = [
        (f"{each['table']}: {each['key']}", float(each["mean"])) for each in runs["full"]["hot_partitions"]
    ]
    yield "partitions", drawing.bars("Write units a second by partition", hot, PARTITION_UNITS)


def _time(seconds: int) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 10 * FUNCTION_S else f"{seconds} s"
