"""Every alarm watches a promise by a series there is, rings where somebody hears it, and says what to do."""

import re
from typing import Any

import pytest

from chalicelib.domain.reporting import series_of
from infra.package import ROOT
from infra.watching.alarms import ALARMS, PROMISES, Alarm
from tests.infra.lookup import of_type

ALARM = "AWS::CloudWatch::Alarm"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PROMISED = ARCHITECTURE.partition("## What is promised\n")[2].partition("\n## ")[0] + "\n"
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^### Alarm: ([a-z-]+)$\n(.*?)(?=^#)", re.MULTILINE | re.DOTALL)
ENTRIES = dict(ENTRY.findall(OPERATIONS + "\n#"))
GUARANTEE = re.compile(r"^(\d)\. \*\*(.+?)\.\*\*", re.MULTILINE)
each_alarm = pytest.mark.parametrize("alarm", ALARMS, ids=lambda each: each.name)


def test_every_promise_has_an_alarm_that_names_it() -> None:
    assert {each.promise for each in ALARMS} == {0, *PROMISES}


def test_the_promises_are_those_of_the_architecture() -> None:
    assert {int(number): promise for number, promise in GUARANTEE.findall(PROMISED)} == PROMISES


@pytest.mark.parametrize("promise", PROMISES)
def test_the_architecture_names_the_alarms_of_a_promise(promise: int) -> None:
    (said,) = re.findall(rf"^{promise}\. \*\*.*\n(?:   .*\n)*", PROMISED, re.MULTILINE)
    alarms = re.findall(r"`([a-z-]+)`", said.partition("Alarm")[2])
    assert alarms == [each.name for each in ALARMS if each.promise == promise]


def test_the_template_has_these_alarms_and_no_other(template: dict[str, Any]) -> None:
    names = {each["AlarmName"]["Fn::Sub"] for each in of_type(template, ALARM).values()}
    assert names == {f"${{Prefix}}{each.name}" for each in ALARMS}
    assert len(names) == len(ALARMS)


@each_alarm
def test_an_alarm_says_which_promise_it_watches_and_rings_and_ends_at_the_operators(
    template: dict[str, Any], alarm: Alarm
) -> None:
    there = of_type(template, ALARM)[alarm.logical_id]
    promised = f"Promise {alarm.promise}, {PROMISES[alarm.promise]}." if alarm.promise else alarm.says
    assert there["AlarmDescription"].startswith(promised)
    assert there["AlarmDescription"].endswith(f"docs/operations.md, {alarm.name}.")
    assert there["AlarmActions"] == there["OKActions"] == [{"Ref": "OperatorsTopic"}]
    assert len(there["AlarmDescription"]) <= 1_024


@each_alarm
def test_an_alarm_reads_a_series_that_is_told_and_the_maximum_of_a_minute(
    template: dict[str, Any], alarm: Alarm
) -> None:
    there = of_type(template, ALARM)[alarm.logical_id]
    (prefix, *label) = there["Dimensions"]
    assert prefix == {"Name": "prefix", "Value": {"Ref": "Prefix"}}
    named = (label[0]["Name"], str(label[0]["Value"])) if label else ("", "")
    assert named in series_of(alarm.metric)
    assert (there["Namespace"], there["MetricName"]) == ("Relay", alarm.metric.name)
    assert (there["Statistic"], there["Period"]) == ("Maximum", 60)
    assert there["DatapointsToAlarm"] <= there["EvaluationPeriods"] <= 10
    assert not {"Metrics", "ExtendedStatistic"} & there.keys()


def test_only_what_watches_the_reporter_rings_when_nothing_is_told() -> None:
    assert [each.name for each in ALARMS if each.missing.value == "breaching"] == ["reporter-silent"]


def test_each_alarm_has_its_entry_and_each_entry_its_alarm() -> None:
    assert ENTRIES.keys() == {each.name for each in ALARMS}


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_entry_says_what_it_means_what_to_look_at_and_what_to_do(name: str) -> None:
    for heading in ("**Means:**", "**Look at:**", "**Do:**"):
        assert heading in ENTRIES[name]


def test_the_operators_are_mailed_if_they_have_an_address(template: dict[str, Any]) -> None:
    (subscription,) = of_type(template, "AWS::SNS::Subscription").values()
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", {"Ref": "OperatorsEmail"})
    assert template["Parameters"]["OperatorsEmail"]["Default"] == ""
    assert template["Resources"]["OperatorsSubscription"]["Condition"] == "OperatorsHaveEmail"


def test_cloudwatch_can_ring_where_the_operators_hear_it(template: dict[str, Any]) -> None:
    """It may not use the key that AWS manages for SNS."""
    assert "KmsMasterKeyId" not in of_type(template, "AWS::SNS::Topic")["OperatorsTopic"]
