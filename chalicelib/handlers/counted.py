"""What every function that counts does as it ends: what no other call took along is stored."""

from chalicelib import bootstrap


def flush() -> None:
    """Store what was counted; what cannot be stored waits for the next call, and nothing fails by it."""
    _tell(stored=bootstrap.counting().flush())


def flush_soon() -> None:
    """Store what was counted unless that was done a moment ago: then the next call stores it along."""
    _tell(stored=bootstrap.counting().flush_soon())


def flush_waiting() -> None:
    """Store what an earlier request of this process left to the next, whatever that asks for."""
    if bootstrap.counting().waits:
        flush_soon()


def _tell(*, stored: bool) -> None:
    if not stored:
        bootstrap.log().warning("counts.delayed")
