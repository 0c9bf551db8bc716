"""What Relay says about itself."""

from typing import Literal

from typing_extensions import TypedDict


class AliveAnswer(TypedDict):
    """The function runs."""

    status: Literal["ok"]


class ReadyAnswer(TypedDict):
    """Whether Relay can work, and what of it cannot."""

    status: Literal["ok", "unavailable"]
    failing: list[str]
