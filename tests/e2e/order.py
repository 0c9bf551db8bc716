"""Inversions: what was first received after something that was posted only once it had been acknowledged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Posted:
    """An event as its producer saw it (seconds): when it was first posted, when it was acknowledged.

    `name` is what its receipt is known by: a delivery's or an event's id.
    """

    endpoint: str
    name: str
    posted_s: float
    acknowledged_s: float


def inversions(posted: Sequence[Posted], first_received: Mapping[str, int]) -> list[tuple[Posted, Posted]]:
    """Give pairs of one endpoint's events whose second was acknowledged before the first was posted.

    `first_received` says for each name as how manieth it came; what never came is left out.
    """
    came = [each for each in posted if each.name in first_received]
    found = []
    acknowledged = sorted(came, key=lambda each: each.acknowledged_s)
    done, latest = 0, None
    for each in sorted(came, key=lambda each: each.posted_s):
        while done < len(acknowledged) and acknowledged[done].acknowledged_s < each.posted_s:
            place = first_received[acknowledged[done].name]
            if latest is None or place > first_received[latest.name]:
                latest = acknowledged[done]
            done += 1
        if latest is not None and first_received[latest.name] > first_received[each.name]:
            found.append((latest, each))
    return found
