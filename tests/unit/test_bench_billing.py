"""Bills are what was counted times list prices, and the meter counts what AWS would bill."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.functions import FUNCTIONS
from infra.watching.alarms import ALARMS
from tests.bench import billing, cost
from tests.bench.billing import MINUTES_A_MONTH, Prices
from tests.bench.meter import Meter, amount, read_units
from tests.bench.orders import order
from tests.bench.page import put_between, table
from tests.unit.aws_limits import answering_client

LISTED: dict[str, Any] = json.loads(cost.PRICES.read_text())
PRICES = Prices(LISTED)
S = {"S": "x"}
KB = {"S": "x" * 1_022}


def counted(**used: dict[str, float]) -> dict[str, Any]:
    """Give a case in which functions used just this."""
    return {
        "used": used,
        "cpu_s": {"api": 0.0, "workers": 0.0},
        "log_bytes": 0,
        "deliveries": 100,
        "payload_bytes": 1_000,
        "kept": {"events": {"rows": 0, "bytes": 0}, "history": {"rows": 0, "bytes": 0}},
    }


def priced(case: dict[str, Any]) -> dict[str, float]:
    return {line.what: line.amount for line in billing.used_lines(PRICES, case) if line.amount}


def heard(service: str, answer: object, operation: str, **params: object) -> dict[str, float]:
    """Make one call and give what the meter heard of it."""
    client = answering_client(service, json.dumps(answer).encode())
    meter = Meter()
    meter.listen(client)
    getattr(client, operation)(**params)
    return meter.used()["outside"]


def test_every_price_has_a_source_and_a_date() -> None:
    for each in LISTED["prices"]:
        assert each["source"] == "remembered" or each["source"].startswith("https://")
        assert len(each["dated"]) == len("2026-11-30")


def test_the_prices_that_are_remembered_are_named() -> None:
    assert set(PRICES.remembered) < {each["of"] for each in LISTED["prices"]}
    assert "dynamodb write unit" not in PRICES.remembered


def test_units_of_all_functions_are_priced_together() -> None:
    used = counted(api_handler={"write a Put": 4.0, "read Query": 1.5}, deliver_slow={"write b Put": 2.0})
    (writes, reads) = billing.used_lines(PRICES, used)[:2]
    assert (writes.amount, reads.amount) == (6.0, 1.5)
    assert writes.usd == pytest.approx(6 * 0.625 / 1_000_000)


def test_lambda_s_own_receive_and_delete_are_paid_for_each_batch() -> None:
    used = counted(deliver_shard_0={"invocations": 3, "call sqs SendMessageBatch fifo": 1})
    assert priced(used)["sqs fifo request"] == 7
    assert priced(counted(fan_out={"invocations": 3}))["sqs standard request"] == 6


def test_what_no_queue_feeds_is_polled_for_by_nobody() -> None:
    assert "sqs standard request" not in priced(counted(reconcile={"invocations": 9}))


def test_only_requests_to_the_api_pay_the_gateway() -> None:
    assert priced(counted(api_handler={"invocations": 2}, notify={"invocations": 5})) == {
        "api gateway REST request": 2,
        "lambda request": 7,
    }


def test_time_costs_by_the_memory_it_holds() -> None:
    assert priced(counted(api_handler={"wall_ms": 3_000}))["lambda time"] == pytest.approx(1.5)


def test_every_mapping_polls_an_empty_queue_all_month() -> None:
    fed = [each for each in FUNCTIONS if each.queue]
    polls = billing.empty_polls("fifo") + billing.empty_polls("standard")
    assert polls == len(fed) * 15 * MINUTES_A_MONTH


def test_a_bill_is_scaled_to_a_million() -> None:
    (line,) = billing.per_million([PRICES.line("lambda request", 50), PRICES.line("s3 get", 0)], 100)
    assert line.amount == 500_000
    assert line.usd == pytest.approx(0.1)


def test_a_row_is_kept_until_it_expires() -> None:
    case = counted() | {"kept": {"events": {"rows": 0, "bytes": 0}, "history": {"rows": 1, "bytes": 900}}}
    kept = billing.kept_lines(PRICES, case)[0]
    assert kept.amount == pytest.approx(1_000 * 90 / 30.4 / 1e9)


def test_an_idle_month_lists_apart_what_watches_keys_and_addresses() -> None:
    idle = cost.idle_bill(PRICES, counted(reconcile={"invocations": MINUTES_A_MONTH}))
    apart = {line["what"]: line["amount"] for line in idle["apart"]}
    assert apart["cloudwatch alarm-month"] == len(ALARMS)
    assert apart["cloudwatch dashboard-month"] == apart["kms key-month"] == 1
    assert apart["nat gateway hour"] == apart["public IPv4 hour"] == 2 * billing.HOURS_A_MONTH
    assert not {line["what"] for line in idle["items"]} & set(apart)
    assert idle["usd"] < idle["usd_apart"]


def test_a_bill_is_the_sum_of_its_items_and_shows_what_is_kept_and_sent_beside_them() -> None:
    case = counted(api_handler={"write relay-owed Put": 150.0}, fan_out={"write relay-owed Put": 50.0})
    bill = cost.case_bill(PRICES, case | {"log_bytes": 100_000})
    assert bill["usd"] == pytest.approx(sum(line["usd"] for line in bill["items"]), abs=0.01)
    assert bill["write_units"] == {"owed Put": 2.0}
    assert bill["usd_traffic"] > 0


@pytest.mark.parametrize("size, units", [(0, 1), (1, 1), (4_096, 1), (4_097, 2), (8_193, 3)])
def test_reads_are_paid_in_steps_of_four_kilobytes(size: int, units: int) -> None:
    assert read_units(size) == units


def test_a_key_that_is_not_there_is_paid_for_too() -> None:
    keys = [{"pk": S}, {"pk": {"S": "y"}}, {"pk": {"S": "z"}}]
    asked = {"relay-owed": {"Keys": keys, "ConsistentRead": True}}
    answer = {"Responses": {"relay-owed": [{"pk": S, "body": {"S": "x" * 5_000}}]}}
    assert heard("dynamodb", answer, "batch_get_item", RequestItems=asked)["read BatchGetItem"] == 4


def test_a_stretch_is_paid_for_by_its_sum_and_half_when_it_may_be_old() -> None:
    answer = {"Items": [{"pk": S, "body": KB}] * 5}
    assert heard("dynamodb", answer, "query", TableName="relay-owed")["read Query"] == 1
    strong = heard("dynamodb", answer, "query", TableName="relay-owed", ConsistentRead=True)
    assert strong["read Query"] == 2


def test_writes_are_what_the_store_says_they_consumed() -> None:
    answer = {"ConsumedCapacity": {"TableName": "relay-owed", "CapacityUnits": 2.0}}
    used = heard("dynamodb", answer, "put_item", TableName="relay-owed", Item={"pk": S})
    assert used == {"call dynamodb PutItem": 1, "write relay-owed PutItem": 2.0}
    assert amount(used, "write ") == 2.0


@pytest.mark.parametrize("queue, kind", [("relay-shard-0.fifo", "fifo"), ("relay-delayed", "standard")])
def test_requests_to_queues_are_told_apart_by_their_kind(queue: str, kind: str) -> None:
    used = heard("sqs", {}, "send_message", QueueUrl=f"http://127.0.0.1:9/0/{queue}", MessageBody="bell")
    assert used == {f"call sqs SendMessage {kind}": 1}


def test_a_large_message_is_paid_for_by_the_64_kilobytes() -> None:
    body = "x" * 100_000
    used = heard("sqs", {}, "send_message", QueueUrl="http://127.0.0.1:9/0/relay-delayed", MessageBody=body)
    assert used == {"call sqs SendMessage standard": 2}


def test_an_invocation_is_billed_to_its_function_by_whole_milliseconds() -> None:
    meter = Meter()
    with meter.within("notify"):
        meter.add({"call kms Decrypt": 1})
    meter.add({"call kms Decrypt": 1})
    used = meter.used()
    assert used["notify"]["invocations"] == 1
    assert used["notify"]["wall_ms"] >= 1
    assert used["notify"]["call kms Decrypt"] == used["outside"]["call kms Decrypt"] == 1


@pytest.mark.parametrize("size", [512, 2_048, 8_192, 65_536])
def test_an_order_is_just_so_large_and_the_same_each_time(size: int) -> None:
    text = order(7, "order.paid", size)
    assert len(text.encode()) == size
    assert json.loads(text)["type"] == "order.paid"
    assert text == order(7, "order.paid", size) != order(8, "order.paid", size)


def test_a_page_is_written_between_its_marks_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bill -->\nold\n<!-- end of bill -->\nafter\n")
    put_between(page, "bill", table(("what", "$"), [("write units", 5)]))
    written = "| what | $ |\n| --- | --- |\n| write units | 5 |"
    assert page.read_text() == f"before\n<!-- bill -->\n\n{written}\n\n<!-- end of bill -->\nafter\n"
    with pytest.raises(ValueError, match="no place"):
        put_between(page, "table", "")


def test_the_page_says_when_the_machine_was_busy() -> None:
    assert "nothing else" in cost.busy(0.4, 2)
    assert "wanted 12 of" in cost.busy(12.3, 2)
