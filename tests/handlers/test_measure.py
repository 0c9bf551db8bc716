"""The function that measures: what it logs, and the lines that CloudWatch makes metrics of."""

import json
from typing import Any

import pytest

import app as lambdas
from chalicelib import bootstrap
from chalicelib.application.ports import Unavailable
from chalicelib.domain import metrics
from infra.local.invocation import LambdaContext
from tests.handlers.conftest import Lines, MakeRelay
from tests.handlers.relay import Relay
from tests.receiver import Receiver


def measure(relay: Relay) -> None:
    """Run the function on the sample event."""
    lambdas.measure(relay.sample("schedule"), LambdaContext("relay-measure"))


def embedded(written: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in written.splitlines() if line.startswith("{")]
    return [line for line in lines if "_aws" in line]


def test_what_is_owed_is_told_to_cloudwatch_and_logged(
    relay: Relay, lines: Lines, capsys: pytest.CaptureFixture[str]
) -> None:
    relay.endpoint()
    for _ in range(3):
        relay.event()
    capsys.readouterr()
    measure(relay)
    told = embedded(capsys.readouterr().out)
    assert {line["prefix"] for line in told} == {relay.made.prefix}
    (depth,) = [line[metrics.DEPTH.name] for line in told if metrics.DEPTH.name in line]
    assert depth == [3.0]
    (line,) = lines.named("measure.told")
    assert (line["watched"], line["whole"], line["canaries_lost"]) == (1, True, 0)
    assert line["series"] == sum(len(about["_aws"]["CloudWatchMetrics"][0]["Metrics"]) for about in told)
    assert 0 <= line["oldest_pending_s"] < 60


def test_where_a_person_reads_the_log_it_holds_no_metrics(
    make_relay: MakeRelay, capsys: pytest.CaptureFixture[str]
) -> None:
    relay = make_relay(RELAY_LOG_FORMAT="text")
    capsys.readouterr()
    measure(relay)
    assert embedded(capsys.readouterr().out) == []


def test_a_sweep_that_failed_in_part_is_not_noted_as_one_that_came_round(relay: Relay) -> None:
    relay.drop_table("fanouts")
    with pytest.raises(Unavailable):
        lambdas.reconcile(relay.sample("schedule"), LambdaContext("relay-reconcile"))
    assert bootstrap.gauging().signs(()).runs == {}


def test_a_run_that_could_not_tell_all_owners_is_not_noted_as_one_that_did(
    relay: Relay, receiver: Receiver
) -> None:
    relay.endpoint(url=receiver.url("/status/404"))
    relay.event()
    relay.deliver_all()
    relay.aws("sns").delete_topic(TopicArn=relay.made.topic_arn)
    lambdas.notify(relay.sample("schedule"), LambdaContext("relay-notify"))
    assert bootstrap.gauging().signs(()).runs == {}
