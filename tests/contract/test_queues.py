"""Bells and receipts: what is rung arrives, under ids that no queue can take for one it has seen."""

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from chalicelib.adapters.aws_limits import AwsWouldRefuse
from chalicelib.adapters.sqs import Beside, Queues, SqsBells, SqsReceipts
from chalicelib.application import fan_out
from chalicelib.application.ports import Bell, Bells, Hint, Unavailable
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.gate import Queue
from chalicelib.wire import bell as wire
from infra.local.provision import Provisioned
from tests.contract.emulated import answered, json_service, strict_client
from tests.contract.given import (
    MEMORY,
    NOW_MS,
    TENANT,
    endpoint,
    event,
    everywhere,
    lane_of,
    owing,
)
from tests.fakes.memory_bells import MemoryBells

ONE_SHARD = 1
SHARD = "shard-0"
ASCII_NAMES = re.compile(r"[ -~]+", re.ASCII)
Message = dict[str, Any]
Params = dict[str, Any]


def bell(of: Endpoint, *events: int) -> Bell:
    """Ring for an endpoint's lane, naming a row for each event."""
    rows = [owing(event(number), [of])[0].owed for number in events]
    hints = tuple(Hint(row.delivery_id, row.event_id, row.ready_ms) for row in rows)
    return Bell(lane_of(of), NOW_MS, hints)


@dataclass(frozen=True, slots=True)
class Heard:
    """A queue as its reader sees it."""

    client: Any
    url: str

    def receive(self) -> list[Message]:
        """Take what is there now, unseen by others from now on."""
        found: list[Message] = []
        while batch := self._batch():
            found += batch
        return found

    def drain(self) -> list[Message]:
        """Take and delete all there is, until nothing more becomes free."""
        found: list[Message] = []
        while batch := self.receive():
            found += batch
            for each in batch:
                self.client.delete_message(QueueUrl=self.url, ReceiptHandle=each["ReceiptHandle"])
        return found

    def await_one(self, within_s: float = 10.0) -> Message:
        """Wait until a message can be seen and take it."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if batch := self._batch(1):
                return batch[0]
            time.sleep(0.05)
        pytest.fail("nothing became visible in time")

    def _batch(self, most: int = 10) -> list[Message]:
        answer = self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=most, WaitTimeSeconds=0, AttributeNames=["All"]
        )
        batch: list[Message] = answer.get("Messages", [])
        return batch


@dataclass(frozen=True, slots=True)
class Belfry:
    """Bells, and where what they rang is heard."""

    bells: Bells
    rung: Callable[[], list[Bell]]
    delayed: Callable[[], list[tuple[Lane, Queue]]]
    fan_outs: Callable[[], list[tuple[str, str, int]]]
    endings: Callable[[], list[tuple[str, str]]]


def queue_of(provisioned: Provisioned, name: str) -> Heard:
    return Heard(strict_client("sqs", provisioned.endpoint_url), provisioned.queues[name])


def bells_on(provisioned: Provisioned, shards: int = ONE_SHARD) -> SqsBells:
    service = json_service("sqs", provisioned.endpoint_url)
    return SqsBells(service, Queues(service, provisioned.prefix), shards)


def bodies(provisioned: Provisioned, name: str) -> list[str]:
    return [each["Body"] for each in queue_of(provisioned, name).drain()]


@pytest.fixture(params=everywhere)
def belfry(request: pytest.FixtureRequest) -> Belfry:
    if request.param == MEMORY:
        memory = MemoryBells()
        return Belfry(
            memory,
            memory.take_rung,
            lambda: [(each.lane, each.queue) for each in memory.delayed],
            lambda: [(each.tenant, each.event_id, each.due_ms) for each in memory.fan_outs],
            lambda: memory.endings,
        )
    made = request.getfixturevalue(f"{request.param}_provisioned")
    return Belfry(
        bells_on(made),
        lambda: [wire.load(each) for each in bodies(made, SHARD)],
        lambda: [wire.load_delayed(each) for each in bodies(made, "delayed")],
        lambda: [wire.load_fan_out(each) for each in bodies(made, "fan-out")],
        lambda: [wire.load_ending(each) for each in bodies(made, "endings")],
    )


def by_lane(bells: list[Bell]) -> list[Bell]:
    return sorted(bells, key=lambda each: each.lane.name)


class TestBells:
    def test_every_bell_is_heard_as_it_was_rung(self, belfry: Belfry) -> None:
        rung = [bell(endpoint(number), *range(number % 11)) for number in range(23)]
        assert belfry.bells.ring(rung) == 0
        assert by_lane(belfry.rung()) == by_lane(rung)

    def test_no_bells_are_none_lost(self, belfry: Belfry) -> None:
        assert belfry.bells.ring([]) == 0
        assert belfry.rung() == []

    def test_f108_a_bell_rung_again_at_once_is_heard_again(self, belfry: Belfry) -> None:
        one = bell(endpoint(), 1)
        for _ in range(3):
            assert belfry.bells.ring([one]) == 0
            assert belfry.rung() == [one]
        assert belfry.bells.ring([one, one]) == 0
        assert belfry.rung() == [one, one]

    def test_f109_one_event_rings_each_of_its_endpoints(self, belfry: Belfry) -> None:
        rung = fan_out.bells_for(owing(event(1), [endpoint(1), endpoint(2)]), NOW_MS)
        assert belfry.bells.ring(rung) == 0
        assert by_lane(belfry.rung()) == by_lane(rung)

    def test_a_delayed_bell_and_a_call_to_fan_out_arrive(self, belfry: Belfry) -> None:
        assert belfry.bells.ring_later(lane_of(endpoint()), 0) == 0
        assert belfry.bells.call_fan_out(TENANT, event(1).id) == 0
        assert belfry.bells.call_fan_out(TENANT, event(2).id, NOW_MS, -1) == 0
        assert belfry.bells.call_ending(TENANT, endpoint().id) == 0
        assert belfry.delayed() == [(lane_of(endpoint()), Queue.SHARD)]
        assert sorted(belfry.fan_outs()) == [(TENANT, event(1).id, 0), (TENANT, event(2).id, NOW_MS)]
        assert belfry.endings() == [(TENANT, endpoint().id)]

    def test_a_delayed_bell_says_where_its_endpoint_rings(self, belfry: Belfry) -> None:
        sent = [(lane_of(endpoint(number)), queue) for number, queue in enumerate(Queue)]
        for lane, queue in sent:
            assert belfry.bells.ring_later(lane, 0, queue) == 0
        assert set(belfry.delayed()) == set(sent)


class TestShards:
    def test_an_endpoint_always_rings_on_one_shard_under_its_lanes_name(
        self, provisioned: Provisioned
    ) -> None:
        endpoints = [endpoint(number) for number in range(12)]
        bells = bells_on(provisioned, shards=4)
        for number in range(2):
            assert bells.ring([bell(each, number) for each in endpoints]) == 0
        heard = [
            (shard, each["Attributes"]["MessageGroupId"])
            for shard in range(4)
            for each in queue_of(provisioned, f"shard-{shard}").drain()
        ]
        assert len(heard) == 24
        assert len(set(heard)) == 12
        assert {group for _, group in heard} == {lane_of(each).name for each in endpoints}
        assert len({shard for shard, _ in heard}) > 1


class TestQueuesApart:
    """Queues are data: a bell says where it rings, and everything else about it is the same."""

    def test_bells_of_one_call_each_reach_the_queue_they_name(self, provisioned: Provisioned) -> None:
        rung = [replace(bell(endpoint(n), n), queue=queue) for n, queue in enumerate(list(Queue) * 4)]
        assert bells_on(provisioned).ring(rung) == 0
        for queue, name in ((Queue.SHARD, SHARD), (Queue.SLOW, "slow"), (Queue.HOT, "hot-0")):
            heard = [wire.load(each) for each in bodies(provisioned, name)]
            expected = [replace(each, queue=Queue.SHARD) for each in rung if each.queue is queue]
            assert by_lane(heard) == by_lane(expected)

    def test_a_bell_takes_the_way_through_the_delay_queue_to_the_queue_it_names(
        self, provisioned: Provisioned
    ) -> None:
        bells, lane = bells_on(provisioned), lane_of(endpoint())
        assert bells.ring_later(lane, 0, Queue.HOT) == 0
        (delayed,) = [wire.load_delayed(each) for each in bodies(provisioned, "delayed")]
        assert bells.ring([Bell(delayed[0], NOW_MS, queue=delayed[1])]) == 0
        assert [wire.load(each).lane for each in bodies(provisioned, "hot-0")] == [lane]
        assert bodies(provisioned, SHARD) == []

    def test_a_lane_that_moves_is_one_group_on_either_queue_but_for_the_bell_apart(
        self, provisioned: Provisioned
    ) -> None:
        bells, one = bells_on(provisioned), bell(endpoint(), 1)
        moved = replace(one, queue=Queue.SLOW)
        assert bells.ring([one, moved, replace(moved, apart=True)]) == 0
        groups = {
            name: sorted(each["Attributes"]["MessageGroupId"] for each in queue_of(provisioned, name).drain())
            for name in (SHARD, "slow")
        }
        assert groups == {SHARD: [one.lane.name], "slow": [one.lane.name, f"{one.lane.name}#apart"]}

    def test_only_the_bells_of_the_queue_that_is_not_there_are_lost(self, provisioned: Provisioned) -> None:
        queue_of(provisioned, "slow").client.delete_queue(QueueUrl=provisioned.queues["slow"])
        rung = [bell(endpoint(1), 1), replace(bell(endpoint(2), 1), queue=Queue.SLOW)]
        assert bells_on(provisioned).ring(rung) == 1
        assert [wire.load(each) for each in bodies(provisioned, SHARD)] == rung[:1]


@pytest.fixture
def requests(ministack_provisioned: Provisioned) -> Iterator[list[tuple[str, Params]]]:
    """What the adapter asks of SQS, as it leaves."""
    events = strict_client("sqs", ministack_provisioned.endpoint_url).meta.events
    asked: list[tuple[str, Params]] = []

    def note(params: Params, model: Any, **_: object) -> None:  # noqa: ANN401 - a botocore model
        asked.append((model.name, json.loads(json.dumps(params))))

    events.register_last("before-parameter-build.sqs", note)
    yield asked
    events.unregister("before-parameter-build.sqs", note)


def sent(requests: list[tuple[str, Params]]) -> list[Params]:
    singles = [params for name, params in requests if name == "SendMessage"]
    batches = [
        entry for name, params in requests if name == "SendMessageBatch" for entry in params["Entries"]
    ]
    return [*singles, *batches]


class TestWhatLeaves:
    def test_f108_f109_every_bell_has_a_deduplication_id_of_its_own(
        self, ministack_provisioned: Provisioned, requests: list[tuple[str, Params]]
    ) -> None:
        bells = bells_on(ministack_provisioned)
        one, other = bell(endpoint(1), 1), bell(endpoint(2), 1)
        for _ in range(3):
            bells.ring([one, other, one])
        messages = sent(requests)
        assert len({each["MessageDeduplicationId"] for each in messages}) == len(messages) == 9
        assert {each["MessageGroupId"] for each in messages} == {one.lane.name, other.lane.name}

    def test_f111_no_bell_on_a_fifo_queue_has_a_delay(
        self, ministack_provisioned: Provisioned, requests: list[tuple[str, Params]]
    ) -> None:
        bells = bells_on(ministack_provisioned)
        bells.ring([bell(endpoint(1), 1)])
        bells.ring_later(lane_of(endpoint(1)), 5)
        fifo = [params for _, params in requests if str(params.get("QueueUrl", "")).endswith(".fifo")]
        assert fifo
        assert "DelaySeconds" not in json.dumps(fifo)

    def test_a_delay_stays_within_what_the_queue_can_do(
        self, ministack_provisioned: Provisioned, requests: list[tuple[str, Params]]
    ) -> None:
        bells = bells_on(ministack_provisioned)
        for delay_s in (-1, 0, 1, 900, 901, 86_400):
            assert bells.ring_later(lane_of(endpoint()), delay_s) == 0
        assert [each["DelaySeconds"] for each in sent(requests)] == [0, 0, 1, 900, 900, 900]

    def test_f024_messages_hold_ascii_names_alone_whatever_the_event_is_called(
        self, ministack_provisioned: Provisioned, requests: list[tuple[str, Params]]
    ) -> None:
        posted = event(1, event_type="\u0007\ufffe\r☃", body=b"\0\a\xff \xef\xbf\xbe secret")
        bells = bells_on(ministack_provisioned)
        assert bells.ring(fan_out.bells_for(owing(posted, [endpoint(1)]), NOW_MS)) == 0
        assert bells.ring_later(lane_of(endpoint(1)), 0) == 0
        assert bells.call_fan_out(TENANT, posted.id) == 0
        assert bells.call_ending(TENANT, endpoint(1).id) == 0
        messages = sent(requests)
        assert len(messages) == 4
        for each in messages:
            assert ASCII_NAMES.fullmatch(each["MessageBody"])
            assert "secret" not in each["MessageBody"]

    def test_the_largest_bell_is_small(
        self, ministack_provisioned: Provisioned, requests: list[tuple[str, Params]]
    ) -> None:
        of = endpoint(tenant="t" * 64)
        largest = Bell(Lane(of.tenant, of.id, "r999"), NOW_MS, bell(of, *range(fan_out.HINTS_MAX)).hints)
        assert bells_on(ministack_provisioned).ring([largest] * 10) == 0
        assert max(len(each["MessageBody"]) for each in sent(requests)) < 2_048
        assert max(len(each["MessageGroupId"]) for each in sent(requests)) <= 128


class TestRefusals:
    """F112: what emulators take and AWS refuses never leaves."""

    def test_f112_f111_f024_bad_messages_are_refused_before_they_leave(
        self, ministack_provisioned: Provisioned
    ) -> None:
        fifo = {
            "QueueUrl": ministack_provisioned.queues[SHARD],
            "MessageBody": "{}",
            "MessageGroupId": "group",
            "MessageDeduplicationId": "once",
        }
        bad: list[Params] = [
            {"MessageBody": "\0"},
            {"MessageBody": "\ufffe"},
            {"MessageBody": "\u0007"},
            {"MessageBody": ""},
            {"MessageGroupId": "g" * 129},
            {"MessageGroupId": "grü"},
            {"MessageDeduplicationId": "d" * 129},
            {"DelaySeconds": 60},
        ]
        for change in bad:
            with pytest.raises(AwsWouldRefuse):
                json_service("sqs", ministack_provisioned.endpoint_url).call(
                    "SendMessage", **{**fifo, **change}
                )
        assert queue_of(ministack_provisioned, SHARD).drain() == []

    def test_f112_bad_items_are_refused_before_they_leave(self, ministack_provisioned: Provisioned) -> None:
        deep: Params = {"S": "bottom"}
        for _ in range(33):
            deep = {"L": [deep]}
        service = json_service("dynamodb", ministack_provisioned.endpoint_url)
        values: list[Params] = [deep, {"N": "1e126"}, {"SS": []}]
        for value in values:
            item = {"pk": {"S": "p"}, "value": value}
            with pytest.raises(AwsWouldRefuse):
                service.call("PutItem", TableName=ministack_provisioned.tables["subs"], Item=item)


class TestLosses:
    """F113: a bell that cannot be rung is counted, never raised: the event is stored, reconcile rings."""

    def test_f113_a_queue_that_is_not_there_loses_bells_and_tells_how_many(
        self, emulator: str, prefix: str
    ) -> None:
        service = json_service("sqs", emulator)
        bells = SqsBells(service, Queues(service, prefix), 4)
        assert bells.ring([bell(endpoint(number), 1) for number in range(12)]) == 12
        assert bells.ring_later(lane_of(endpoint()), 1) == 1
        assert bells.call_fan_out(TENANT, event(1).id) == 1
        assert bells.call_ending(TENANT, endpoint().id) == 1

    def test_what_is_lost_is_told_with_its_queue_and_why(self, emulator: str, prefix: str) -> None:
        told: list[tuple[str, int, str]] = []
        beside = Beside(lost=lambda queue, count, error: told.append((queue, count, type(error).__name__)))
        service = json_service("sqs", emulator)
        bells = SqsBells(service, Queues(service, prefix), 1, beside)
        bells.ring([bell(endpoint(number), 1) for number in range(3)])
        bells.ring_later(lane_of(endpoint()), 1)
        assert [each[:2] for each in told] == [("shard-0.fifo", 3), ("delayed", 1)]
        assert all(each[2] for each in told)

    def test_f113_bells_that_a_batch_lost_are_counted(self, ministack_provisioned: Provisioned) -> None:
        bells = bells_on(ministack_provisioned)
        failed = {"Successful": [], "Failed": [{"Id": "0", "Code": "InternalError", "SenderFault": False}]}
        with answered("sqs", ministack_provisioned.endpoint_url, "SendMessageBatch", [(200, failed)]):
            assert bells.ring([bell(endpoint(number), 1) for number in range(3)]) == 1


class TestReceipts:
    def rung(self, provisioned: Provisioned, count: int) -> Heard:
        bells_on(provisioned).ring([bell(endpoint(number), 1) for number in range(count)])
        return queue_of(provisioned, SHARD)

    def receipts(self, provisioned: Provisioned) -> SqsReceipts:
        service = json_service("sqs", provisioned.endpoint_url)
        return SqsReceipts(service, provisioned.queues[SHARD])

    def test_what_is_deleted_never_comes_back(self, provisioned: Provisioned) -> None:
        queue, receipts = self.rung(provisioned, 12), self.receipts(provisioned)
        handles = [each["ReceiptHandle"] for each in queue.receive()]
        assert len(handles) == 12
        receipts.hide(handles, 0)
        handles = [each["ReceiptHandle"] for each in queue.receive()]
        receipts.delete(handles)
        receipts.delete(handles)
        receipts.delete([])
        receipts.hide([], 1)
        assert queue.receive() == []

    def test_what_is_hidden_comes_back_when_its_time_is_over(self, provisioned: Provisioned) -> None:
        queue, receipts = self.rung(provisioned, 1), self.receipts(provisioned)
        (first,) = queue.receive()
        began = time.monotonic()
        receipts.hide([first["ReceiptHandle"]], 1)
        assert queue.receive() == []
        again = queue.await_one()
        assert time.monotonic() - began > 0.9
        assert again["Body"] == first["Body"]

    def test_one_kept_bell_holds_its_lane_while_the_others_are_gone(self, provisioned: Provisioned) -> None:
        bells_on(provisioned).ring([bell(endpoint(1), 1), bell(endpoint(1), 2), bell(endpoint(2), 1)])
        queue, receipts = queue_of(provisioned, SHARD), self.receipts(provisioned)
        mine = [each for each in queue.receive() if endpoint(1).id in each["Body"]]
        receipts.hide([mine[0]["ReceiptHandle"]], 60)
        receipts.delete([each["ReceiptHandle"] for each in mine[1:]])
        bells_on(provisioned).ring([bell(endpoint(1), 3)])
        assert queue.receive() == []

    def test_a_queue_that_is_not_there_is_told_as_unavailable(self, emulator: str) -> None:
        receipts = SqsReceipts(json_service("sqs", emulator), f"{emulator}/000000000000/no-such-queue.fifo")
        with pytest.raises(Unavailable):
            receipts.delete(["receipt"])
        with pytest.raises(Unavailable):
            receipts.hide(["receipt"], 1)
