"""The receiver's log: the witness of the other tests, so its own promises are tested first."""

import asyncio
import json

import pytest

from tests.receiver.entry import Arrival, Entry, Moment, Outcome
from tests.receiver.log import DeliveryLog
from tests.receiver.request import RequestReader
from tests.receiver.script import Deed, decode_base64, parse_script
from tests.receiver.verify import Verdict


def arrival(target: str = "/sink", body: bytes = b"hi", delivery: str = "d", connection: int = 1) -> Arrival:
    reader = RequestReader()
    head = f"POST {target} HTTP/1.1\r\nRelay-Delivery-Id: {delivery}\r\nRelay-Attempt: 3\r\n"
    reader.feed(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    request = reader.next()
    assert request is not None
    return Arrival(request, connection, Verdict(verified=True, reason=None), Moment(1_000_000, 2_000_000))


def answered(log: DeliveryLog, entry: Entry, status: int = 200) -> None:
    entry.status = status
    log.end(entry, Outcome.ANSWERED)


def test_an_entry_shows_what_arrived_and_what_became_of_it() -> None:
    log = DeliveryLog()
    entry = log.arrive(arrival(body=b"\xff\x00"))
    assert entry.full()["outcome"] == "open"
    answered(log, entry, 503)
    shown = entry.full()
    assert (shown["status"], shown["outcome"], shown["attempt"], shown["verified"]) == (
        503,
        "answered",
        3,
        True,
    )
    assert (shown["received_at"], shown["received_mono_ms"]) == (1.0, 2.0)
    assert shown["answered_mono_ms"] > 2
    assert (shown["body_base64"], shown["body_text"], shown["body_length"]) == ("/wA=", None, 2)
    assert shown["header_lines"][0] == "Relay-Delivery-Id: d"


def test_a_big_body_is_kept_as_its_digest_unless_asked_for() -> None:
    log, body = DeliveryLog(), b"x" * 4097
    dropped, kept = log.arrive(arrival("/sink", body)), log.arrive(arrival("/sink?keep", body))
    assert (dropped.full()["body_base64"], dropped.full()["body_length"]) == (None, 4097)
    assert kept.body == body
    assert dropped.sha256() == kept.sha256()


def test_in_flight_is_counted_per_path_and_its_highest_kept() -> None:
    log = DeliveryLog()
    first, second = log.arrive(arrival("/sink/a?x=1")), log.arrive(arrival("/sink/a?x=2", connection=2))
    answered(log, first)
    answered(log, log.arrive(arrival("/sink/a")))
    log.end(second, Outcome.LEFT)
    log.end(second, Outcome.ANSWERED)
    assert log.stats()["paths"]["/sink/a"] == {
        "count": 3,
        "verified": 3,
        "connections": 2,
        "in_flight": 0,
        "max_in_flight": 2,
        "statuses": {"200": 2},
        "outcomes": {"answered": 2, "left": 1},
    }


def test_memory_is_bounded_and_says_what_it_forgot() -> None:
    log = DeliveryLog(capacity=2)
    for name in "abc":
        log.arrive(arrival(delivery=name))
    assert [entry.delivery_id for entry in log.find({})] == ["b", "c"]
    assert (log.stats()["received"], log.stats()["forgotten"]) == (3, 1)
    assert [entry.delivery_id for entry in log.find({"after": 2})] == ["c"]
    assert [entry.delivery_id for entry in log.find({"after": 1})] == ["b", "c"]


def test_finding_filters_and_limits() -> None:
    log = DeliveryLog()
    for index in range(6):
        log.arrive(arrival(f"/sink/{index % 2}", delivery=str(index // 2)))
    assert [entry.number for entry in log.find({"delivery_id": "1"})] == [3, 4]
    assert [entry.number for entry in log.find({"path": "/sink/1"}, 2)] == [4, 6]
    assert [entry.number for entry in log.find({"after": 2}, 2)] == [3, 4]
    assert log.count({"path": "/sink/0", "verified": True, "outcome": "open"}) == 3
    assert log.count({"verified": False}) == 0


def test_what_was_in_flight_at_a_reset_does_not_count_afterwards() -> None:
    log = DeliveryLog()
    old = log.arrive(arrival())
    log.clear()
    new = log.arrive(arrival())
    log.end(old, Outcome.LEFT)
    assert (new.number, log.count({})) == (2, 1)
    assert log.stats()["paths"]["/sink"]["in_flight"] == 1


def test_the_file_gets_a_line_for_each_delivery() -> None:
    lines: list[bytes] = []
    log = DeliveryLog(write=lines.append)
    entry = log.arrive(arrival())
    log.persist(entry)
    (line,) = lines
    assert line.endswith(b"\n")
    assert json.loads(line) == json.loads(json.dumps(entry.brief()))


def test_waiting_ends_with_the_last_one_wanted() -> None:
    async def scenario() -> int:
        log = DeliveryLog()
        waiting = asyncio.create_task(log.wait({"delivery_id": "b", "outcome": "answered"}, 1, 5))
        await asyncio.sleep(0)
        entry = log.arrive(arrival(delivery="b"))
        await asyncio.sleep(0)
        assert not waiting.done()
        answered(log, entry)
        return len(await waiting)

    assert asyncio.run(scenario()) == 1


def test_waiting_in_vain_ends_at_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        asyncio.run(DeliveryLog().wait({}, 1, 0.01))


def test_scripted_answers_are_taken_in_turn_and_the_last_repeats() -> None:
    script = parse_script([{"status": 500, "delay_ms": 5}, {"do": "rst"}, {"raw_b64": "eHg"}])
    steps = [script.take() for _ in range(4)]
    assert steps[0].delay_s == 0.005
    assert steps[1].act is Deed.RST
    assert steps[2] == steps[3]


@pytest.mark.parametrize(
    "answers",
    [
        None,
        [],
        [1],
        [{"statuss": 1}],
        [{"status": 99}],
        [{"status": True}],
        [{"do": "x"}],
        [{"raw_b64": "?"}],
        [{"delay_ms": -1}],
        [{"delay_ms": "x"}],
        [{"headers": 5}],
    ],
)
def test_a_script_that_cannot_be_played_is_refused(answers: object) -> None:
    with pytest.raises(ValueError, match=r"answer"):
        parse_script(answers)


@pytest.mark.parametrize("text", ["-_8=", "+/8=", " /8", "-_8"])
def test_base64_is_taken_in_either_alphabet(text: str) -> None:
    assert decode_base64(text) == b"\xfb\xff"
