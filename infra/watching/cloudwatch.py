"""The dashboard as CloudWatch has it: a body of JSON in the template."""

import json
from collections.abc import Iterator
from typing import Any, Final

from chalicelib.domain.metrics import Kind, Metric
from chalicelib.domain.reporting import NAMESPACE, PREFIX, series_of
from infra.watching.panels import ROWS, Panel, Row

_COLUMNS, _WIDTH, _HEIGHT, _HEADING = 24, 8, 6, 1
_TEXT_HEIGHT: Final = 2


def resources() -> dict[str, Any]:
    """Give the dashboard as the template has it; emulators have none."""
    properties = {
        "DashboardName": {"Fn::Sub": "${Prefix}operations"},
        "DashboardBody": {"Fn::Sub": json.dumps(body())},
    }
    dashboard = {"Type": "AWS::CloudWatch::Dashboard", "Condition": "OnAws", "Properties": properties}
    return {"Resources": {"OperationsDashboard": dashboard}}


def body() -> dict[str, Any]:
    """Give its widgets, one row of panels below another."""
    widgets: list[dict[str, Any]] = []
    for row in ROWS:
        top = max((each["y"] + each["height"] for each in widgets), default=0)
        widgets += _row(row, top)
    return {"widgets": widgets}


def _row(row: Row, top: int) -> Iterator[dict[str, Any]]:
    yield _text(f"## {row.question}", 0, top, _COLUMNS, _HEADING)
    across = _COLUMNS // _WIDTH
    for place, panel in enumerate(row.panels):
        left, above = _WIDTH * (place % across), top + _HEADING + (place // across) * (_HEIGHT + _TEXT_HEIGHT)
        yield _panel(panel, left, above)
        yield _text(panel.reads, left, above + _HEIGHT, _WIDTH, _TEXT_HEIGHT)


def _text(text: str, x: int, y: int, width: int, height: int) -> dict[str, Any]:
    place = {"x": x, "y": y, "width": width, "height": height}
    return {"type": "text", **place, "properties": {"markdown": text}}


def _panel(panel: Panel, x: int, y: int) -> dict[str, Any]:
    properties = {
        "title": panel.title,
        "region": "${AWS::Region}",
        "view": "timeSeries",
        "period": 60,
        "metrics": [each for metric in panel.metrics for each in _series(metric)],
    }
    place = {"x": x, "y": y, "width": _WIDTH, "height": _HEIGHT}
    return {"type": "metric", **place, "properties": properties}


def _series(metric: Metric) -> Iterator[list[Any]]:
    about = {"stat": "Sum" if metric.kind is Kind.COUNTER else "Maximum"}
    for label, value in series_of(metric):
        dimension = [label, value] if label else []
        yield [NAMESPACE, metric.name, PREFIX, "${Prefix}", *dimension, about]
