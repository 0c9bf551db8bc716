"""The verdict of the chaos run: what was lost, what came twice, what came in the wrong order.

Lost, duplicates, inversions and changed bytes come from the producers' 202 answers and the receiver's log
alone, by event and endpoint. What Relay tells explains duplicates and says how each delivery ended.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.bench.chaos_load import Accepted, Target
from tests.bench.chaos_replays import Replayed
from tests.e2e.order import Posted, inversions

Record = Mapping[str, Any]
Sending = tuple[str, str, int]
UNKNOWN = "unknown"
GOOD, SHOWN = 200, 20


@dataclass(frozen=True, slots=True)
class Evidence:
    """All there is to judge by. A sending is one generation of an event at a path.

    `told` has what the API said of each sending.
    """

    targets: Sequence[Target]
    accepted: Sequence[Accepted]
    received: Sequence[Record]
    told: Mapping[Sending, Record] = field(default_factory=dict)
    replays: Sequence[Replayed] = ()

    def owed(self) -> dict[Sending, Target]:
        """Give what 202 answers promised: each event at each path that takes its type, and each replay."""
        by_type = {each.type: each for each in self.targets}
        by_path = {path: each for each in self.targets for path in each.paths}
        first = {
            (event.event_id, path, 0): by_type[event.type]
            for event in self.accepted
            for path in by_type[event.type].paths
        }
        return first | {
            (each.event_id, each.path, generation): by_path[each.path]
            for each in self.replays
            for generation in range(1, each.generation + 1)
        }

    def perhaps(self) -> set[Sending]:
        """Give the replays that requests without an answer may have begun."""
        return {
            (each.event_id, each.path, generation)
            for each in self.replays
            for generation in range(1, each.asked + 1)
        }

    def receipts(self) -> dict[Sending, list[Record]]:
        """Give what the receiver's log has of each sending, in its order."""
        found: defaultdict[Sending, list[Record]] = defaultdict(list)
        for each in self.received:
            found[each["event_id"], each["path"], each["generation"]].append(each)
        return found


def verdict(evidence: Evidence) -> dict[str, Any]:
    """Give the figures; the names of what is wrong end up in `faults`, which is empty when all is well."""
    owed, receipts = evidence.owed(), evidence.receipts()
    twice = {each: good for each, found in receipts.items() if len(good := _good(found)) > 1}
    faults = _faults(evidence, owed, receipts, twice)
    endings = Counter(_ending(evidence.told.get(each)) for each in owed)
    return {
        "accepted": len(evidence.accepted),
        "replays": len(evidence.replays),
        "deliveries": len(owed),
        "succeeded": endings["succeeded"],
        "dead": sum(count for ending, count in endings.items() if ending.startswith("dead")),
        "endings": dict(endings),
        "lost": len(faults["lost"]),
        "duplicates": sum(len(good) - 1 for good in twice.values()),
        "unexplained_duplicates": len(faults["unexplained_duplicates"]),
        "unknown": sum(_unknown(each) for each in evidence.told.values()),
        "inversions": len(faults["inversions"]),
        "faults": {name: found[:SHOWN] for name, found in faults.items() if found},
    }


def _faults(
    evidence: Evidence,
    owed: Mapping[Sending, Target],
    receipts: Mapping[Sending, Sequence[Record]],
    twice: Mapping[Sending, Sequence[Record]],
) -> dict[str, list[Sending]]:
    told, allowed = evidence.told, owed.keys() | evidence.perhaps()
    bodies = {each.event_id: each.body_sha256 for each in evidence.accepted}
    faults: dict[str, Iterable[Sending]] = {
        "lost": (each for each, target in owed.items() if not _arrived(target, receipts.get(each, []))),
        "unexplained_duplicates": (
            each for each, good in twice.items() if not _explained(good, told.get(each))
        ),
        "inversions": _inversions(evidence, receipts),
        "under_two_ids": (each for each, found in receipts.items() if len(_ids(found)) > 1),
        "other_bytes": (
            each
            for each, found in receipts.items()
            if {one["body_sha256"] for one in found} - {bodies.get(each[0])}
        ),
        "never_owed": (each for each in receipts if each not in allowed),
        "not_ended": (each for each in owed if _ending(told.get(each)) not in _ENDINGS),
        "dead_elsewhere": (
            each for each, target in owed.items() if not target.dies and _is_dead(told.get(each))
        ),
    }
    return {name: sorted(found) for name, found in faults.items()}


def _arrived(target: Target, receipts: Sequence[Record]) -> bool:
    return bool(receipts) if target.dies else bool(_good(receipts))


def _good(receipts: Sequence[Record]) -> list[Record]:
    return [each for each in receipts if each["status"] == GOOD]


def _ids(receipts: Sequence[Record]) -> set[str]:
    return {each["delivery_id"] for each in receipts}


def _explained(good: Sequence[Record], told: Record | None) -> bool:
    """Say whether all but one of the requests that were answered well are attempts of unknown outcome."""
    outcomes = {each["attempt"]: each["outcome"] for each in (told or {}).get("attempts", [])}
    numbers = [each["attempt"] for each in good]
    known = [number for number in numbers if outcomes.get(number) != UNKNOWN]
    return len(set(numbers)) == len(numbers) and len(known) <= 1


def _inversions(evidence: Evidence, receipts: Mapping[Sending, Sequence[Record]]) -> list[Sending]:
    found: list[Sending] = []
    for target in evidence.targets:
        if target.kind != "ordered":
            continue
        (path,) = target.paths
        posted = [
            Posted(path, each.event_id, each.posted_s, each.acknowledged_s)
            for each in evidence.accepted
            if each.type == target.type
        ]
        came = {each.name: receipts.get((each.name, path, 0), []) for each in posted}
        first = {name: records[0]["number"] for name, records in came.items() if records}
        found += [(later.name, path, 0) for _, later in inversions(posted, first)]
    return found


_ENDINGS = frozenset(
    ["succeeded"]
    + [
        f"dead {reason}"
        for reason in (
            "permanent_failure attempts_exhausted expired refused payload_too_large endpoint_deleted"
            " unsubscribed skipped poisoned"
        ).split()
    ]
)


def _ending(told: Record | None) -> str:
    if told is None:
        return "unheard of"
    status: str = told["status"]
    return f"dead {told['reason']}" if status == "dead" else status


def _is_dead(told: Record | None) -> bool:
    return told is not None and told["status"] == "dead"


def _unknown(told: Record) -> int:
    return sum(each["outcome"] == UNKNOWN for each in told["attempts"])
