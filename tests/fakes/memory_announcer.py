"""A channel in a list: what owners were told, every copy of it."""

from chalicelib.domain.notice import Notice
from tests.fakes.faults import Faults, Step


class MemoryAnnouncer:
    """Implements `Announcer`; `heard` is what a subscriber of the topic has received."""

    def __init__(self, heard: list[Notice] | None = None) -> None:
        """Publish to nobody yet, or to the subscriber that others publish to."""
        self.heard = [] if heard is None else heard
        self.faults = Faults()

    def publish(self, notice: Notice) -> None:
        """Hand a notice to the channel."""
        with self.faults.around(Step("publish", (notice,))), self.faults.write():
            self.heard.append(notice)
