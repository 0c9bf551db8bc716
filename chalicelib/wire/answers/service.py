"""What Relay says about itself."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from typing_extensions import TypedDict


class AliveAnswer(TypedDict):
    """The function runs."""

    status: Literal["ok"]


class ReadyAnswer(TypedDict):
    """Whether Relay can work, and what of it cannot."""

    status: Literal["ok", "unavailable"]
    failing: list[str]


class EgressRegion(TypedDict):
    """Where requests come from in a region: the range in use, and the one that stands ready."""

    region: str
    active: str
    standby: str


class EgressRangesAnswer(TypedDict):
    """A version of the ranges that requests come from; dates are ISO 8601.

    `upcoming` is the next version, once it has been announced.
    """

    version: int
    announced_on: str
    effective_on: str
    ranges: list[EgressRegion]
    upcoming: "EgressRangesAnswer | None"


def egress_ranges(versions: Sequence[Mapping[str, Any]], today: str) -> EgressRangesAnswer:
    """Show the version in force on a day (ISO 8601), and the next one if it has been announced."""
    current, upcoming = versions[0], None
    for each in versions[1:]:
        if each["effective_on"] <= today:
            current = each
        else:
            upcoming = _egress_version(each)
            break
    return {**_egress_version(current), "upcoming": upcoming}


def _egress_version(of: Mapping[str, Any]) -> EgressRangesAnswer:
    ranges: list[EgressRegion] = [
        {"region": region, "active": pair["active"], "standby": pair["standby"]}
        for region, pair in of["ranges"].items()
    ]
    return {
        "version": of["version"],
        "announced_on": of["announced_on"],
        "effective_on": of["effective_on"],
        "ranges": ranges,
        "upcoming": None,
    }
