"""Spans: what becomes of them is nobody's business here."""

from collections.abc import Mapping
from typing import Any, Protocol


class Spans(Protocol):
    """Takes the documents of spans; one that gets lost is no error."""

    def write(self, document: Mapping[str, Any]) -> None:
        """Hand a span over, without waiting for anybody."""
        ...
