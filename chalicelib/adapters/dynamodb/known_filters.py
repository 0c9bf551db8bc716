"""Filters as they were compiled in this process, by endpoint and by the mark that subscription rows carry.

The mark is of the filter's text, so what is known here is never stale: a changed filter has another.
"""

from collections.abc import Iterable

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Tables
from chalicelib.application.ports import Subscriber, Unavailable
from chalicelib.domain import pattern as patterns
from chalicelib.domain.errors import RelayError
from chalicelib.domain.pattern import Pattern

_KNOWN_MAX = 2_000


class KnownFilters:
    """Reads filters, each once."""

    def __init__(self, tables: Tables) -> None:
        """Know nothing; read from these tables."""
        self._tables = tables
        self._known: dict[tuple[str, str, str], Pattern] = {}

    def of(self, tenant: str, subscribers: Iterable[Subscriber]) -> dict[str, Pattern]:
        """Give the filters of those subscribers that have one, by endpoint id.

        What is not known yet is read as it is now, strongly consistent, in one call per hundred; an
        endpoint whose filter, or which itself, is gone by then is left out.
        """
        marks = {each.endpoint_id: each.filter for each in subscribers if each.filter}
        found = {each: self._known.get((tenant, each, mark)) for each, mark in marks.items()}
        unknown = [each for each, pattern in found.items() if pattern is None]
        read = self._read(tenant, unknown) if unknown else {}
        return {each: pattern for each, pattern in {**found, **read}.items() if pattern is not None}

    def _read(self, tenant: str, endpoint_ids: Iterable[str]) -> dict[str, Pattern]:
        records = self._tables.get([keys.endpoint(tenant, each) for each in endpoint_ids])
        if len(self._known) > _KNOWN_MAX:
            self._known.clear()
        found: dict[str, Pattern] = {}
        for at, record in records.items():
            if text := record.get("filter"):
                found[at.sk] = self._known[tenant, at.sk, patterns.mark(text)] = _compiled(text)
        return found


def _compiled(text: str) -> Pattern:
    try:
        return patterns.compiled(text)
    except RelayError as error:
        # Registered by a newer version of this code: that one will understand it.
        raise Unavailable("a filter could not be read") from error
