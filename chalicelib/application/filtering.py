"""Filtering: which of those who take an event's type want it for what its payload says."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chalicelib.application.ports import Subscriber
from chalicelib.domain.pattern import Pattern

Members = Callable[[], Mapping[str, Any] | None]


def passing(
    members: Members, candidates: Sequence[Subscriber], filters: Mapping[str, Pattern]
) -> tuple[Subscriber, ...]:
    """Give the candidates whose filter an event passes; one without a filter (by id) is passed by all.

    `members` gives those of the event's body, None if it has none, and is asked only if there is a filter.
    """
    filtered = any(each.endpoint_id in filters for each in candidates)
    read = members() if filtered else None

    def passes(pattern: Pattern | None) -> bool:
        return pattern is None or (read is not None and pattern.matches(read))

    return tuple(each for each in candidates if passes(filters.get(each.endpoint_id)))
