"""The verdict of the chaos run: what was lost, what came twice, what came in the wrong order.

Lost, duplicates and inversions come from the producers' 202 answers and the receiver's log alone, by event
and endpoint. What Relay tells explains duplicates and says how each delivery ended.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.bench.chaos_load import Accepted, Target
from tests.e2e.order import Posted, inversions

Record = Mapping[str, Any]
Pair = tuple[str, str]
UNKNOWN = "unknown"
GOOD = 200


@dataclass(frozen=True, slots=True)
class Evidence:
    """All there is to judge by; `told` has what the API says of each event at each path."""

    targets: Sequence[Target]
    accepted: Sequence[Accepted]
    received: Sequence[Record]
    told: Mapping[Pair, Record] = field(default_factory=dict)

    def owed(self) -> dict[Pair, Target]:
        """Give what the 202 answers promised: each event at each path that takes its type."""
        by_type = {each.type: each for each in self.targets}
        return {
            (event.event_id, path): by_type[event.type]
            for event in self.accepted
            for path in by_type[event.type].paths
        }

    def receipts(self) -> dict[Pair, list[Record]]:
        """Give what the receiver's log has of each event at each path, in its order."""
        found: defaultdict[Pair, list[Record]] = defaultdict(list)
        for each in self.received:
            found[each["event_id"], each["path"]].append(each)
        return found


def verdict(evidence: Evidence) -> dict[str, Any]:
    """Give the figures; the names of what is wrong end up in `faults`, which is empty when all is well."""
    owed, receipts = evidence.owed(), evidence.receipts()
    lost = sorted(pair for pair, target in owed.items() if not _arrived(target, receipts.get(pair, [])))
    twice = {pair: good for pair in owed if len(good := _good(receipts.get(pair, []))) > 1}
    unexplained = sorted(
        pair for pair, good in twice.items() if not _explained(good, evidence.told.get(pair))
    )
    wrong_order = _inversions(evidence, receipts)
    endings = Counter(_ending(evidence.told.get(pair)) for pair in owed)
    faults = {
        "lost": lost,
        "unexplained_duplicates": unexplained,
        "inversions": wrong_order,
        "under_two_ids": sorted(pair for pair in owed if len(_ids(receipts.get(pair, []))) > 1),
        "never_owed": sorted(pair for pair in receipts if pair not in owed),
        "not_ended": sorted(pair for pair in owed if _ending(evidence.told.get(pair)) not in _ENDINGS),
        "dead_elsewhere": sorted(
            pair for pair, target in owed.items() if not target.dies and _is_dead(evidence.told.get(pair))
        ),
    }
    return {
        "accepted": len(evidence.accepted),
        "deliveries": len(owed),
        "succeeded": endings["succeeded"],
        "dead": sum(count for ending, count in endings.items() if ending.startswith("dead")),
        "endings": dict(endings),
        "lost": len(lost),
        "duplicates": sum(len(good) - 1 for good in twice.values()),
        "unexplained_duplicates": len(unexplained),
        "unknown": sum(_unknown(each) for each in evidence.told.values()),
        "inversions": len(wrong_order),
        "faults": {name: found[:20] for name, found in faults.items() if found},
    }


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


def _inversions(evidence: Evidence, receipts: Mapping[Pair, Sequence[Record]]) -> list[Pair]:
    found: list[Pair] = []
    for target in evidence.targets:
        if target.kind != "ordered":
            continue
        (path,) = target.paths
        posted = [
            Posted(path, each.event_id, each.posted_s, each.acknowledged_s)
            for each in evidence.accepted
            if each.type == target.type
        ]
        first = {
            each.name: receipts[each.name, path][0]["number"]
            for each in posted
            if (each.name, path) in receipts
        }
        found += [(later.name, path) for _, later in inversions(posted, first)]
    return sorted(found)


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
