"""The verdict of the chaos run sees what it is there to see."""

from typing import Any

import pytest

from tests.bench.chaos_load import Accepted, Target
from tests.bench.chaos_replays import Replayed
from tests.bench.chaos_verdict import Evidence, Record, Sending, verdict

HEALTHY = Target("healthy", "t.healthy", ("/verify/a",))
ORDERED = Target("ordered", "t.ordered", ("/flaky/o",))
REFUSING = Target("refusing", "t.refusing", ("/status/404/r",), dies=True)
CROWD = Target("crowd", "t.crowd", ("/verify/b", "/verify/c"))
DIGEST = "the digest"
TARGETS = (HEALTHY, ORDERED, REFUSING, CROWD)


def accepted(event_id: str, target: Target, posted_s: float = 0.0, acknowledged_s: float = 1.0) -> Accepted:
    return Accepted(event_id, target.type, posted_s, acknowledged_s, 1, "inline", (), DIGEST)


def receipt(event_id: str, path: str, number: int = 1, **fields: object) -> Record:
    usual = {
        "generation": 0,
        "body_sha256": DIGEST,
        "status": 200,
        "attempt": 1,
        "delivery_id": f"d-{event_id}-{path}",
    }
    return {"event_id": event_id, "path": path, "number": number, **usual, **fields}


def told(*outcomes: str, status: str = "succeeded", reason: str | None = None) -> Record:
    attempts = [{"attempt": number, "outcome": each} for number, each in enumerate(outcomes, 1)]
    return {"status": status, "reason": reason, "attempts": attempts}


def judged(
    events: list[Accepted],
    received: list[Record],
    told_of: dict[tuple[str, str], Record] | None = None,
    *replays: Replayed,
) -> dict[str, Any]:
    told: dict[Sending, Record] = {(*pair, 0): each for pair, each in (told_of or {}).items()}
    return verdict(Evidence(TARGETS, events, received, told, replays))


def test_all_is_well_when_everything_came_once() -> None:
    pair, dead = ("e1", "/verify/a"), ("e2", "/status/404/r")
    found = judged(
        [accepted("e1", HEALTHY), accepted("e2", REFUSING)],
        [receipt(*pair), receipt(*dead, status=404)],
        {pair: told("success"), dead: told("permanent", status="dead", reason="permanent_failure")},
    )
    assert (found["succeeded"], found["dead"], found["lost"]) == (1, 1, 0)
    assert found["faults"] == {}


@pytest.mark.parametrize("status", [None, 500])
def test_what_was_never_answered_well_is_lost(status: int | None) -> None:
    received = [receipt("e1", "/verify/a", status=status)] if status else []
    found = judged([accepted("e1", HEALTHY)], received, {("e1", "/verify/a"): told("success")})
    assert found["lost"] == 1


def test_each_endpoint_of_an_event_is_owed_it() -> None:
    found = judged([accepted("e1", CROWD)], [receipt("e1", "/verify/b")])
    assert (found["deliveries"], found["lost"]) == (2, 1)
    assert found["faults"]["lost"] == [("e1", "/verify/c", 0)]


@pytest.mark.parametrize(
    "attempts, outcomes, unexplained",
    [
        ((1, 2), ("unknown", "success"), 0),
        ((1, 2), ("success",), 1),
        ((1, 2), ("retryable", "success"), 1),
        ((1, 1), ("unknown",), 1),
        ((1, 2, 3), ("unknown", "unknown", "success"), 0),
        ((1, 2, 3), ("unknown", "success", "success"), 1),
    ],
)
def test_a_duplicate_is_explained_by_an_unknown_attempt_alone(
    attempts: tuple[int, ...], outcomes: tuple[str, ...], unexplained: int
) -> None:
    pair = ("e1", "/verify/a")
    received = [receipt(*pair, number=place, attempt=each) for place, each in enumerate(attempts, 1)]
    found = judged([accepted("e1", HEALTHY)], received, {pair: told(*outcomes)})
    assert found["duplicates"] == len(attempts) - 1
    assert found["unexplained_duplicates"] == unexplained


def test_a_duplicate_under_another_id_is_a_fault() -> None:
    pair = ("e1", "/verify/a")
    received = [receipt(*pair), receipt(*pair, number=2, attempt=2, delivery_id="another")]
    found = judged([accepted("e1", HEALTHY)], received, {pair: told("unknown", "success")})
    assert found["faults"]["under_two_ids"] == [(*pair, 0)]


def test_what_nobody_was_promised_is_a_fault() -> None:
    assert judged([], [receipt("e1", "/verify/a")])["faults"]["never_owed"] == [("e1", "/verify/a", 0)]


@pytest.mark.parametrize("acknowledged_s, wrong", [(1.0, 1), (3.0, 0)])
def test_an_inversion_needs_an_acknowledgement_before_the_second_post(
    acknowledged_s: float, wrong: int
) -> None:
    events = [accepted("e1", ORDERED, 0.0, acknowledged_s), accepted("e2", ORDERED, 2.0, 4.0)]
    received = [receipt("e2", "/flaky/o", 1), receipt("e1", "/flaky/o", 2)]
    assert judged(events, received)["inversions"] == wrong


@pytest.mark.parametrize(
    "ending, fault",
    [
        (told(status="pending"), "not_ended"),
        (told(status="dead", reason="no_reason_of_ours"), "not_ended"),
        (told(status="dead", reason="poisoned"), "dead_elsewhere"),
    ],
)
def test_how_a_delivery_ended_is_looked_at(ending: Record, fault: str) -> None:
    pair = ("e1", "/verify/a")
    found = judged([accepted("e1", HEALTHY)], [receipt(*pair)], {pair: ending})
    assert found["faults"][fault] == [(*pair, 0)]


@pytest.mark.parametrize(
    "generations, lost, unasked",
    [((0, 1, 2), 0, 0), ((0, 2), 1, 0), ((0, 1), 1, 0), ((0, 1, 2, 3), 0, 1)],
)
def test_each_generation_that_was_promised_is_owed_and_no_other(
    generations: tuple[int, ...], lost: int, unasked: int
) -> None:
    pair = ("e1", "/verify/a")
    received = [receipt(*pair, number=each, generation=each) for each in generations]
    found = judged([accepted("e1", HEALTHY)], received, None, Replayed(*pair, generation=2, asked=2))
    assert (found["lost"], found["duplicates"]) == (lost, 0)
    assert len(found["faults"].get("never_owed", [])) == unasked


@pytest.mark.parametrize("generations", [(0,), (0, 1)])
def test_a_replay_whose_answer_was_lost_may_have_begun(generations: tuple[int, ...]) -> None:
    pair = ("e1", "/verify/a")
    received = [receipt(*pair, number=each, generation=each) for each in generations]
    found = judged([accepted("e1", HEALTHY)], received, None, Replayed(*pair, generation=0, asked=1))
    assert found["lost"] == 0
    assert "never_owed" not in found["faults"]


def test_bytes_that_are_not_those_posted_are_a_fault() -> None:
    pair = ("e1", "/verify/a")
    found = judged([accepted("e1", HEALTHY)], [receipt(*pair, body_sha256="another")])
    assert found["faults"]["other_bytes"] == [(*pair, 0)]
