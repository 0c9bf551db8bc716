"""What Relay says about itself."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from typing_extensions import TypedDict

from chalicelib.domain.gauging import Failing


class AliveAnswer(TypedDict):
    """The function runs."""

    status: Literal["ok"]


class ReadyAnswer(TypedDict):
    """Whether Relay can work, what of it cannot, and what that means, a sentence each."""

    status: Literal["ok", "unavailable"]
    failing: list[Failing]
    reasons: list[str]


_MEANS: Final[Mapping[Failing, str]] = {
    Failing.STORE: "The store does not answer.",
    Failing.CANARY: (
        "No message has come through each of the shards within 3 minutes: the function measure does not run,"
        " or the deliver function of a shard does not."
    ),
    Failing.LATENESS: (
        "A delivery that nothing holds has been due for more than a minute, or the function measure has not"
        " come round for 3 minutes, so that nobody knows."
    ),
}


def ready(failing: Sequence[Failing]) -> ReadyAnswer:
    """Show what keeps Relay from being ready, if anything does."""
    reasons = [_MEANS[each] for each in failing]
    return {"status": "unavailable" if failing else "ok", "failing": list(failing), "reasons": reasons}


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
