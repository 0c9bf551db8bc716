"""What stood in the way of an answer: raised below the sender, recorded above it."""

from chalicelib.domain.outcome import BEFORE_SENDING, Fault


class TransportFault(Exception):  # noqa: N818 - a recorded outcome of the endpoint, not our error
    """What stood in the way of an answer: the fault, and plain words for the endpoint's owner.

    `left` says whether something of the request may have been sent by then.
    """

    def __init__(self, fault: Fault, detail: str, *, left: bool | None = None) -> None:
        """Keep the fault and the words; the fault says whether something has left, unless it was told."""
        super().__init__(detail)
        self.fault = fault
        self.detail = detail
        self.left = fault not in BEFORE_SENDING if left is None else left
