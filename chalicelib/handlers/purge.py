"""The purge function: each minute, what is to be purged is removed."""

from dataclasses import asdict
from typing import Any

from chalicelib import bootstrap


def handle(context: Any) -> None:  # noqa: ANN401 - Lambda's context object
    """Go on with every purge that is due while there is time, and log what went."""
    did = bootstrap.purge_all().run(context.get_remaining_time_in_millis)
    bootstrap.log().info("purges.worked_off", extra=asdict(did))
