"""The dashboards show every metric there is and no other, and Prometheus can read what is asked of it."""

import configparser
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from chalicelib.domain.metrics import BUCKETS_MS, CATALOGUE, Kind
from chalicelib.domain.reporting import series_of
from infra.watching import cloudwatch, files, prometheus
from infra.watching.alarms import ALARMS, Alarm
from infra.watching.panels import RESCUED, ROWS, UNRELATED
from tests.infra.lookup import of_type

PANELS = [panel for row in ROWS for panel in row.panels]
NAMES = {each.name for each in CATALOGUE}
PROVISIONING = files.GRAFANA / "provisioning"


def test_every_metric_is_in_a_panel_and_every_panel_shows_metrics_there_are() -> None:
    shown = Counter(metric.name for panel in PANELS for metric in panel.metrics)
    assert shown.keys() == NAMES
    assert set(shown.values()) == {1}


def test_every_row_asks_and_every_panel_says_how_it_is_read() -> None:
    assert all(row.question.endswith("?") for row in ROWS)
    assert all(panel.reads.endswith(".") for panel in PANELS)


def test_two_panels_are_read_as_negatives() -> None:
    negatives = [panel for panel in PANELS if panel.reads.startswith("Read as a negative.")]
    assert negatives == [RESCUED, UNRELATED]
    assert [metric.name for metric in UNRELATED.metrics] == [
        "relay_ingest_duration_seconds",
        "relay_attempt_consumer_seconds",
    ]


class TestCloudWatch:
    def test_every_series_that_is_told_is_drawn_once(self) -> None:
        widgets = [each for each in cloudwatch.body()["widgets"] if each["type"] == "metric"]
        drawn = Counter(tuple(series[:-1]) for each in widgets for series in each["properties"]["metrics"])
        expected = {
            ("Relay", of.name, "prefix", "${Prefix}", *((label, value) if label else ()))
            for of in CATALOGUE
            for label, value in series_of(of)
        }
        assert drawn == Counter(expected)

    def test_no_widget_lies_on_another_and_all_lie_on_the_board(self) -> None:
        taken: Counter[tuple[int, int]] = Counter()
        for each in cloudwatch.body()["widgets"]:
            across = range(each["x"], each["x"] + each["width"])
            down = range(each["y"], each["y"] + each["height"])
            taken.update((x, y) for x in across for y in down)
        assert set(taken.values()) == {1}
        assert max(x for x, _ in taken) < 24

    def test_the_template_has_it_on_aws(self, template: dict[str, Any]) -> None:
        (board,) = of_type(template, "AWS::CloudWatch::Dashboard").values()
        assert template["Resources"]["OperationsDashboard"]["Condition"] == "OnAws"
        assert json.loads(board["DashboardBody"]["Fn::Sub"]) == cloudwatch.body()


class TestGrafana:
    def test_the_files_are_what_the_catalogue_makes(self) -> None:
        """`python -m infra.watching` writes them."""
        for path, text in files.texts().items():
            assert path.read_text(encoding="utf-8") == text

    def test_every_expression_names_metrics_there_are(self) -> None:
        for expression in expressions():
            named = re.findall(r"relay_[a-z_]+", expression)
            assert {each.removesuffix("_bucket") for each in named} <= NAMES
            assert named

    def test_its_panels_are_those_of_cloudwatch(self) -> None:
        board = prometheus.dashboard()
        titles = [each["properties"].get("title") for each in cloudwatch.body()["widgets"]]
        drawn = [each["title"] for each in board["panels"] if each["type"] != "row"]
        assert drawn == [title for title in titles if title]
        assert board["editable"] is False

    def test_it_is_provisioned_and_shown_to_anybody_to_be_read(self) -> None:
        (source,) = read(PROVISIONING / "datasources" / "relay.yml")["datasources"]
        assert (source["uid"], source["type"], source["editable"]) == (prometheus.SOURCE, "prometheus", False)
        (provider,) = read(PROVISIONING / "dashboards" / "relay.yml")["providers"]
        assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
        settings = configparser.ConfigParser(interpolation=None)
        settings.read(files.GRAFANA / "grafana.ini")
        assert settings["auth.anonymous"]["enabled"] == "true"
        assert settings["auth.anonymous"]["org_role"] == "Viewer"


class TestPrometheus:
    def test_it_takes_the_configuration_the_alerts_and_every_panel(self, tmp_path: Path) -> None:
        rules = [{"record": f"panel:{at}", "expr": each} for at, each in enumerate(expressions())]
        panels = tmp_path / "panels.yml"
        panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
        promtool("check", "config", str(files.GRAFANA / "prometheus.yml"))
        promtool("check", "rules", str(panels), str(files.GRAFANA / "alerts.yml"))

    def test_an_alert_rings_for_what_its_alarm_rings_for(self, tmp_path: Path) -> None:
        """Every alert by one series that should ring it, and by one that should not."""
        path = tmp_path / "tests.yml"
        path.write_text(yaml.safe_dump(_trials()), encoding="utf-8")
        promtool("test", "rules", str(path))


def expressions() -> list[str]:
    return [target["expr"] for each in prometheus.dashboard()["panels"] for target in each.get("targets", [])]


def read(path: Path) -> Any:  # noqa: ANN401 - YAML
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def promtool(*arguments: str) -> None:
    found = shutil.which("promtool")
    if found is None and not os.environ.get("CI"):
        pytest.skip("promtool is not there: Debian's package prometheus has it")
    assert found is not None, "CI is to have promtool"
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def _trials() -> dict[str, Any]:
    """Feed each alarm's series with its threshold each minute, or with nothing, and see its alert."""
    files_of = {"rule_files": [str(files.GRAFANA / "alerts.yml")], "evaluation_interval": "1m"}
    return {**files_of, "tests": [_trial(each, rings=rings) for each in ALARMS for rings in (True, False)]}


def _trial(alarm: Alarm, *, rings: bool) -> dict[str, Any]:
    name = "Relay" + alarm.logical_id.removesuffix("Alarm")
    rule = next(each for each in prometheus.alerts()["groups"][0]["rules"] if each["alert"] == name)
    gauge = alarm.metric.label and alarm.metric.kind is Kind.GAUGE
    labels = {alarm.metric.label: str(alarm.value)} if gauge else {}
    expected = [{"exp_labels": labels, "exp_annotations": rule["annotations"]}]
    return {
        "interval": "1m",
        "input_series": _series(alarm, rings=rings),
        "alert_rule_test": [{"eval_time": "15m", "alertname": name, "exp_alerts": expected if rings else []}],
    }


def _series(alarm: Alarm, *, rings: bool) -> list[dict[str, str]]:
    of = alarm.metric
    labels = f'{{{of.label}="{alarm.value}"}}' if of.label else ""
    match of.kind:
        case Kind.GAUGE:
            return [{"series": f"{of.name}{labels}", "values": f"{alarm.threshold if rings else 0:g}x20"}]
        case Kind.COUNTER:
            step = alarm.threshold if rings else 0
            return [{"series": f"{of.name}{labels}", "values": f"0+{step:g}x20"}]
        case _:
            bounds = [*(f"{each / 1000:g}" for each in BUCKETS_MS), "+Inf"]
            slow = [0 if bound != "+Inf" and float(bound) <= alarm.threshold else 10 for bound in bounds]
            return [
                {"series": f'{of.name}_bucket{{le="{bound}"}}', "values": f"0+{each if rings else 10}x20"}
                for bound, each in zip(bounds, slow, strict=True)
            ]
