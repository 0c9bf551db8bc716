"""Spans that are kept where a test can look at them."""

from collections.abc import Mapping
from typing import Any


class KeptSpans:
    """Keeps documents in the order in which they were written."""

    def __init__(self) -> None:
        self.documents: list[Mapping[str, Any]] = []

    def write(self, document: Mapping[str, Any]) -> None:
        self.documents.append(document)
