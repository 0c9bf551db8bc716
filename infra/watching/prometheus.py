"""What Prometheus and Grafana are given: the dashboard, and the alarms as alerts, in PromQL."""

from collections.abc import Iterator
from typing import Any, Final, assert_never

from chalicelib.domain.metrics import Kind, Metric
from chalicelib.domain.reporting import QUANTILES
from infra.watching.alarms import ALARMS, PROMISES, Alarm, Missing
from infra.watching.panels import ROWS, Panel

SOURCE: Final = "relay-prometheus"
"""The uid of the data source."""
_WINDOW: Final = "5m"
_COLUMNS, _WIDTH, _HEIGHT = 24, 8, 8


def expressions(of: Metric) -> list[tuple[str, str]]:
    """Give what draws a metric, each with its legend."""
    match of.kind:
        case Kind.GAUGE:
            return [(of.name, _legend(of))]
        case Kind.COUNTER:
            by = f" by ({of.label})" if of.label else ""
            return [(f"sum{by} (increase({of.name}[{_WINDOW}]))", _legend(of))]
        case Kind.HISTOGRAM:
            return [(quantile(of, percent), f"{of.name} {name}") for name, percent in QUANTILES.items()]
        case _:
            assert_never(of.kind)


def quantile(of: Metric, percent: int) -> str:
    """Give a quantile of a histogram over the last minutes."""
    return f"histogram_quantile({percent / 100:g}, sum by (le) (rate({of.name}_bucket[{_WINDOW}])))"


def _legend(of: Metric) -> str:
    return f"{{{{{of.label}}}}}" if of.label else of.name


def dashboard() -> dict[str, Any]:
    """Give the dashboard as Grafana reads it."""
    return {
        "uid": "relay-operations",
        "title": "Relay: operations",
        "editable": False,
        "refresh": "1m",
        "schemaVersion": 39,
        "tags": ["relay"],
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "utc",
        "panels": list(_panels()),
    }


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for row in ROWS:
        number += 1
        place = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": row.question, "gridPos": place, "panels": []}
        across = _COLUMNS // _WIDTH
        for at, panel in enumerate(row.panels):
            number += 1
            x, y = _WIDTH * (at % across), top + 1 + _HEIGHT * (at // across)
            yield {"id": number, "gridPos": {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT}, **_panel(panel)}
        top += 1 + _HEIGHT * -(-len(row.panels) // across)


def _panel(panel: Panel) -> dict[str, Any]:
    drawn = [each for metric in panel.metrics for each in expressions(metric)]
    seconds = all(each.name.endswith("_seconds") for each in panel.metrics)
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.reads,
        "datasource": {"type": "prometheus", "uid": SOURCE},
        "fieldConfig": {"defaults": {"unit": "s" if seconds else "short", "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "expr": expression, "legendFormat": legend}
            for at, (expression, legend) in enumerate(drawn)
        ],
    }


def alerts() -> dict[str, Any]:
    """Give the alarms as a file of rules."""
    return {"groups": [{"name": "relay", "interval": "1m", "rules": [_alert(each) for each in ALARMS]}]}


def _alert(alarm: Alarm) -> dict[str, Any]:
    promise = f"Promise {alarm.promise}, {PROMISES[alarm.promise]}. " if alarm.promise else ""
    name = "Relay" + alarm.logical_id.removesuffix("Alarm")
    about = {"summary": promise + alarm.says, "runbook": f"docs/operations.md, {alarm.name}"}
    held = {"for": f"{alarm.of}m"} if alarm.of > 1 else {}
    return {"alert": name, "expr": condition(alarm), **held, "annotations": about}


def condition(alarm: Alarm) -> str:
    """Say in PromQL when an alarm rings; of a count, what the minutes add up to."""
    of = alarm.metric
    named = f'{of.name}{{{of.label}="{alarm.value}"}}' if of.label and alarm.value else of.name
    match of.kind:
        case Kind.GAUGE:
            grown = named
        case Kind.COUNTER:
            grown = f"sum(increase({named}[{alarm.minutes}m]))"
        case Kind.HISTOGRAM:
            grown = quantile(of, QUANTILES[alarm.value])
        case _:
            assert_never(of.kind)
    rings = f"{grown} >= {alarm.threshold:g}"
    return f"{rings} or absent({named})" if alarm.missing is Missing.BAD else rings
