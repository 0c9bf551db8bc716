from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.aws_limits import Limit, Params, call, refusal_of

STANDARD = "http://127.0.0.1:9/000000000000/relay-delayed"
FIFO = f"{STANDARD}.fifo"
MIB = 1_048_576
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
FIFO_ONLY = {"FifoQueue": "true"}


def message(body: str = "x", **fields: object) -> Params:
    return {"QueueUrl": STANDARD, "MessageBody": body, **fields}


def fifo_message(**fields: object) -> Params:
    return {
        "QueueUrl": FIFO,
        "MessageBody": "x",
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
        **fields,
    }


def text(value: str) -> Params:
    return {"DataType": "String", "StringValue": value}


def batch(*bodies: str) -> Params:
    return {
        "QueueUrl": STANDARD,
        "Entries": [{"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies)],
    }


def receipts(*ids: str, **fields: object) -> Params:
    return {"QueueUrl": STANDARD, "Entries": [{"Id": name, "ReceiptHandle": "r", **fields} for name in ids]}


def receive(**fields: object) -> Params:
    return {"QueueUrl": STANDARD, **fields}


def queue(name: str = "relay-delayed", **attributes: str) -> Params:
    return {"QueueName": name, "Attributes": attributes}


def redrive(target: str, most: object) -> str:
    return json.dumps(
        {"deadLetterTargetArn": f"arn:aws:sqs:us-east-1:000000000000:{target}", "maxReceiveCount": most}
    )


MESSAGES = {
    "a body of 1 MiB": Limit("sqs.send_message", message("x" * MIB), message("x" * (MIB + 1)), "MessageBody"),
    "bytes count, not characters": Limit(
        "sqs.send_message", message("漢" * (MIB // 3)), message("漢" * (MIB // 3 + 1)), "MessageBody"
    ),
    "attributes count": Limit(
        "sqs.send_message",
        message("x" * (MIB - 10), MessageAttributes={"ab": text("cd")}),
        message("x" * (MIB - 9), MessageAttributes={"ab": text("cd")}),
        "MessageBody",
    ),
    "ten attributes": Limit(
        "sqs.send_message",
        message(MessageAttributes={f"a{n}": text("v") for n in range(10)}),
        message(MessageAttributes={f"a{n}": text("v") for n in range(11)}),
        "MessageAttributes",
    ),
    "an attribute's name of 256": Limit(
        "sqs.send_message",
        message(MessageAttributes={"n" * 256: text("v")}),
        message(MessageAttributes={"n" * 257: text("v")}),
        f"MessageAttributes.{'n' * 257}",
    ),
    "an attribute's type": Limit(
        "sqs.send_message",
        message(MessageAttributes={"a": {"DataType": "Number.own", "StringValue": "1"}}),
        message(MessageAttributes={"a": {"DataType": "Text", "StringValue": "1"}}),
        "MessageAttributes.a.DataType",
    ),
    "an attribute's value": Limit(
        "sqs.send_message",
        message(MessageAttributes={"a": {"DataType": "Binary", "BinaryValue": b"\0"}}),
        message(MessageAttributes={"a": {"DataType": "Binary", "BinaryValue": b""}}),
        "MessageAttributes.a.BinaryValue",
    ),
    "a delay of 900 s": Limit(
        "sqs.send_message", message(DelaySeconds=900), message(DelaySeconds=901), "DelaySeconds"
    ),
    "a delay of 0 s": Limit(
        "sqs.send_message", message(DelaySeconds=0), message(DelaySeconds=-1), "DelaySeconds"
    ),
    "no deduplication on a standard queue": Limit(
        "sqs.send_message",
        message(MessageGroupId="tenant"),
        message(MessageDeduplicationId="d"),
        "MessageDeduplicationId",
    ),
    "a group on a FIFO queue": Limit(
        "sqs.send_message",
        fifo_message(),
        {"QueueUrl": FIFO, "MessageBody": "x", "MessageDeduplicationId": "d"},
        "MessageGroupId",
    ),
    "a deduplication id of 128": Limit(
        "sqs.send_message",
        fifo_message(MessageDeduplicationId="d" * 128),
        fifo_message(MessageDeduplicationId="d" * 129),
        "MessageDeduplicationId",
    ),
    "every punctuation mark, no blank": Limit(
        "sqs.send_message",
        fifo_message(MessageGroupId=PUNCTUATION),
        fifo_message(MessageGroupId="a b"),
        "MessageGroupId",
    ),
}
BATCHES = {
    "ten messages": Limit("sqs.send_message_batch", batch(*"x" * 10), batch(*"x" * 11), "Entries"),
    "one message": Limit("sqs.send_message_batch", batch("x"), batch(), "Entries"),
    "1 MiB in all": Limit(
        "sqs.send_message_batch",
        batch("x" * (MIB // 2), "y" * (MIB // 2)),
        batch("x" * (MIB // 2), "y" * (MIB // 2 + 1)),
        "Entries",
    ),
    "ten receipts": Limit(
        "sqs.delete_message_batch", receipts(*"0123456789"), receipts(*"0123456789a"), "Entries"
    ),
    "distinct ids": Limit("sqs.delete_message_batch", receipts("a", "b"), receipts("a", "a"), "Entries[1]"),
    "an id of 80": Limit("sqs.delete_message_batch", receipts("a" * 80), receipts("a" * 81), "Entries[0].Id"),
    "an id of letters, digits, _ and -": Limit(
        "sqs.delete_message_batch", receipts("aZ0_-"), receipts("a.b"), "Entries[0].Id"
    ),
    "a visibility of 12 h": Limit(
        "sqs.change_message_visibility_batch",
        receipts("a", VisibilityTimeout=43_200),
        receipts("a", VisibilityTimeout=43_201),
        "Entries[0].VisibilityTimeout",
    ),
}
RECEIVES = {
    "a wait of 20 s": Limit(
        "sqs.receive_message", receive(WaitTimeSeconds=20), receive(WaitTimeSeconds=21), "WaitTimeSeconds"
    ),
    "ten messages": Limit(
        "sqs.receive_message",
        receive(MaxNumberOfMessages=10),
        receive(MaxNumberOfMessages=11),
        "MaxNumberOfMessages",
    ),
    "one message": Limit(
        "sqs.receive_message",
        receive(MaxNumberOfMessages=1),
        receive(MaxNumberOfMessages=0),
        "MaxNumberOfMessages",
    ),
    "a visibility of 12 h": Limit(
        "sqs.receive_message",
        receive(VisibilityTimeout=43_200),
        receive(VisibilityTimeout=43_201),
        "VisibilityTimeout",
    ),
    "a changed visibility of 12 h": Limit(
        "sqs.change_message_visibility",
        receive(ReceiptHandle="r", VisibilityTimeout=43_200),
        receive(ReceiptHandle="r", VisibilityTimeout=43_201),
        "VisibilityTimeout",
    ),
    "a repeated receive on FIFO only": Limit(
        "sqs.receive_message",
        {"QueueUrl": FIFO, "ReceiveRequestAttemptId": "a"},
        receive(ReceiveRequestAttemptId="a"),
        "ReceiveRequestAttemptId",
    ),
}
QUEUES = {
    "a name of 80": Limit("sqs.create_queue", queue("q" * 80), queue("q" * 81), "QueueName"),
    "a FIFO name of 80 with its ending": Limit(
        "sqs.create_queue",
        queue("q" * 75 + ".fifo", **FIFO_ONLY),
        queue("q" * 76 + ".fifo", **FIFO_ONLY),
        "QueueName",
    ),
    "a name without dots": Limit("sqs.create_queue", queue("a_b-c"), queue("a.b"), "QueueName"),
    "FIFO said twice": Limit(
        "sqs.create_queue", queue("a.fifo", **FIFO_ONLY), queue("a.fifo"), "Attributes.FifoQueue"
    ),
    "FIFO said by the name": Limit(
        "sqs.create_queue", queue("a"), queue("a", **FIFO_ONLY), "Attributes.FifoQueue"
    ),
    "FIFO never false": Limit(
        "sqs.create_queue", queue("a"), queue("a", FifoQueue="false"), "Attributes.FifoQueue"
    ),
    "high throughput with its scope": Limit(
        "sqs.create_queue",
        queue(
            "a.fifo",
            FifoQueue="true",
            FifoThroughputLimit="perMessageGroupId",
            DeduplicationScope="messageGroup",
        ),
        queue("a.fifo", FifoQueue="true", FifoThroughputLimit="perMessageGroupId"),
        "Attributes.FifoThroughputLimit",
    ),
    "FIFO's attributes on FIFO only": Limit(
        "sqs.create_queue",
        queue("a.fifo", FifoQueue="true", ContentBasedDeduplication="true"),
        queue("a", ContentBasedDeduplication="true"),
        "Attributes.ContentBasedDeduplication",
    ),
    "FIFO's values": Limit(
        "sqs.create_queue",
        queue("a.fifo", FifoQueue="true", DeduplicationScope="queue"),
        queue("a.fifo", FifoQueue="true", DeduplicationScope="group"),
        "Attributes.DeduplicationScope",
    ),
    "the kind is for ever": Limit(
        "sqs.set_queue_attributes",
        {"QueueUrl": FIFO, "Attributes": {"VisibilityTimeout": "360"}},
        {"QueueUrl": FIFO, "Attributes": FIFO_ONLY},
        "Attributes.FifoQueue",
    ),
    "known attributes": Limit(
        "sqs.create_queue", queue(KmsMasterKeyId="alias/k"), queue(Visibility="1"), "Attributes.Visibility"
    ),
    "whole numbers": Limit(
        "sqs.create_queue",
        queue(VisibilityTimeout="30"),
        queue(VisibilityTimeout="30.5"),
        "Attributes.VisibilityTimeout",
    ),
    "a dead-letter queue of the same kind": Limit(
        "sqs.create_queue",
        queue("a.fifo", FifoQueue="true", RedrivePolicy=redrive("dead.fifo", 5)),
        queue("a.fifo", FifoQueue="true", RedrivePolicy=redrive("dead", 5)),
        "Attributes.RedrivePolicy.deadLetterTargetArn",
    ),
    "a standard dead-letter queue for a standard queue": Limit(
        "sqs.set_queue_attributes",
        {"QueueUrl": STANDARD, "Attributes": {"RedrivePolicy": redrive("dead", "5")}},
        {"QueueUrl": STANDARD, "Attributes": {"RedrivePolicy": redrive("dead.fifo", "5")}},
        "Attributes.RedrivePolicy.deadLetterTargetArn",
    ),
    "1,000 receives": Limit(
        "sqs.create_queue",
        queue(RedrivePolicy=redrive("dead", 1_000)),
        queue(RedrivePolicy=redrive("dead", 1_001)),
        "Attributes.RedrivePolicy.maxReceiveCount",
    ),
    "one receive": Limit(
        "sqs.create_queue",
        queue(RedrivePolicy=redrive("dead", 1)),
        queue(RedrivePolicy=redrive("dead", 0)),
        "Attributes.RedrivePolicy.maxReceiveCount",
    ),
    "both halves of a redrive policy": Limit(
        "sqs.create_queue",
        queue(RedrivePolicy=redrive("dead", 3)),
        queue(RedrivePolicy='{"maxReceiveCount": 3}'),
        "Attributes.RedrivePolicy",
    ),
    "a dead-letter queue by its ARN": Limit(
        "sqs.create_queue",
        queue(RedrivePolicy=redrive("dead", 3)),
        queue(RedrivePolicy='{"deadLetterTargetArn": "dead", "maxReceiveCount": 3}'),
        "Attributes.RedrivePolicy.deadLetterTargetArn",
    ),
    "a redrive policy in JSON": Limit(
        "sqs.set_queue_attributes",
        {"QueueUrl": STANDARD, "Attributes": {"RedrivePolicy": ""}},
        {"QueueUrl": STANDARD, "Attributes": {"RedrivePolicy": "dead"}},
        "Attributes.RedrivePolicy",
    ),
    "sources with byQueue only": Limit(
        "sqs.create_queue",
        queue(RedriveAllowPolicy='{"redrivePermission": "byQueue", "sourceQueueArns": ["a"]}'),
        queue(RedriveAllowPolicy='{"redrivePermission": "allowAll", "sourceQueueArns": ["a"]}'),
        "Attributes.RedriveAllowPolicy.sourceQueueArns",
    ),
    "a known permission": Limit(
        "sqs.create_queue",
        queue(RedriveAllowPolicy='{"redrivePermission": "denyAll"}'),
        queue(RedriveAllowPolicy='{"redrivePermission": "all"}'),
        "Attributes.RedriveAllowPolicy.redrivePermission",
    ),
}
RANGES = [
    ("DelaySeconds", 0, 900),
    ("KmsDataKeyReusePeriodSeconds", 60, 86_400),
    ("MaximumMessageSize", 1_024, MIB),
    ("MessageRetentionPeriod", 60, 1_209_600),
    ("ReceiveMessageWaitTimeSeconds", 0, 20),
    ("VisibilityTimeout", 0, 43_200),
]


@pytest.mark.parametrize("limit", MESSAGES.values(), ids=MESSAGES)
def test_a_message_keeps_to_the_limits_of_sqs(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", BATCHES.values(), ids=BATCHES)
def test_a_batch_keeps_to_the_limits_of_sqs(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", RECEIVES.values(), ids=RECEIVES)
def test_a_receive_keeps_to_the_limits_of_sqs(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("limit", QUEUES.values(), ids=QUEUES)
def test_a_queue_keeps_to_the_limits_of_sqs(limit: Limit) -> None:
    limit.check()


@pytest.mark.parametrize("name,lowest,highest", RANGES)
def test_an_attribute_of_a_queue_keeps_to_its_range(name: str, lowest: int, highest: int) -> None:
    call("sqs.create_queue", queue(**{name: str(lowest)}))
    call("sqs.create_queue", queue(**{name: str(highest)}))
    assert refusal_of("sqs.create_queue", queue(**{name: str(highest + 1)})).parameter == f"Attributes.{name}"
    assert refusal_of("sqs.create_queue", queue(**{name: str(lowest - 1)})).parameter == f"Attributes.{name}"


@pytest.mark.parametrize("character", ["\x07", "\x00", "\ufffe", "\uffff", "\x1f", "\ud800"])
def test_f024_a_character_that_sqs_forbids_is_refused(character: str) -> None:
    refusal = refusal_of("sqs.send_message", message(f"ab{character}"))
    assert refusal.parameter == "MessageBody"
    assert f"U+{ord(character):04X} at 2" in refusal.rule


@pytest.mark.parametrize("character", list("\t\n\r \ud7ff\ue000\ufffd\U00010000\U0010ffff"))
def test_f024_a_character_at_the_edge_of_the_allowed_set_passes(character: str) -> None:
    call("sqs.send_message", message(character))


@given(st.text(min_size=1, max_size=40))
def test_f024_a_body_passes_exactly_when_all_of_it_is_xml(body: str) -> None:
    allowed = all(
        char in "\t\n\r" or " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char > "\uffff"
        for char in body
    )
    if allowed:
        call("sqs.send_message", message(body))
    else:
        assert refusal_of("sqs.send_message", message(body)).parameter == "MessageBody"


def test_f111_a_delay_per_message_on_a_fifo_queue_is_refused() -> None:
    call("sqs.send_message", fifo_message())
    for delay in (0, 60):
        assert refusal_of("sqs.send_message", fifo_message(DelaySeconds=delay)).parameter == "DelaySeconds"


def test_f112_an_empty_body_is_refused() -> None:
    assert refusal_of("sqs.send_message", message("")).parameter == "MessageBody"


def test_f112_a_nul_in_a_batch_is_refused_and_its_place_named() -> None:
    refusal = refusal_of("sqs.send_message_batch", batch("a", "b\0"))
    assert str(refusal) == (
        "sqs.SendMessageBatch: Entries[1].MessageBody: may hold only XML 1.0 characters, has U+0000 at 1"
    )


def test_f112_group_id_of_128_characters_passes() -> None:
    call("sqs.send_message", fifo_message(MessageGroupId="g" * 128))


def test_f112_group_id_of_129_characters_is_refused() -> None:
    refusal = refusal_of("sqs.send_message", fifo_message(MessageGroupId="g" * 129))
    assert (refusal.call, refusal.parameter) == ("sqs.SendMessage", "MessageGroupId")


def test_f112_group_id_with_an_umlaut_is_refused() -> None:
    assert refusal_of("sqs.send_message", fifo_message(MessageGroupId="grü")).parameter == "MessageGroupId"


def test_f112_deduplication_id_of_129_characters_is_refused() -> None:
    refusal = refusal_of("sqs.send_message", fifo_message(MessageDeduplicationId="d" * 129))
    assert refusal.parameter == "MessageDeduplicationId"


def test_a_refusal_never_shows_what_was_sent() -> None:
    refusal = refusal_of("sqs.send_message", message("whsec_secret\0"))
    assert "whsec_secret" not in str(refusal)
