"""Gates as ingest last saw them: enough to spare a bell that nobody needs, never the truth.

They are read along with the subscriptions, so that looking costs no call of its own.
"""

from collections.abc import Iterable, Mapping

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Key
from chalicelib.application.ports import Subscriber
from chalicelib.domain import gate as gates
from chalicelib.domain.change import Record
from chalicelib.domain.gate import Gate

LOOK_AGAIN_MS = 1_000
TRUSTED_MS = 2_000
_ASKED_AT_ONCE = 100
_KNOWN_MAX = 10_000


class SeenGates:
    """Remembers which endpoints took a type of event, and their gates for a second or two."""

    def __init__(self) -> None:
        """Know nothing."""
        self._takers: dict[tuple[str, str], tuple[str, ...]] = {}
        self._gates: dict[Key, tuple[int, Gate | None]] = {}

    def remember(self, tenant: str, found: Mapping[str, tuple[Subscriber, ...]]) -> None:
        """Remember who takes each type."""
        if len(self._takers) > _KNOWN_MAX:
            self._takers.clear()
        for event_type, subscribers in found.items():
            self._takers[tenant, event_type] = tuple(each.endpoint_id for each in subscribers)

    def due(self, tenant: str, event_types: Iterable[str], now_ms: int, beside: int) -> list[Key]:
        """Name the gates to look at again: as many as cost no call more, beside so many other keys."""
        takers = {each for kind in event_types for each in self._takers.get((tenant, kind), ())}
        at = (keys.gate(tenant, each) for each in sorted(takers))
        return [each for each in at if self._age_ms(each, now_ms) >= LOOK_AGAIN_MS][
            : -beside % _ASKED_AT_ONCE
        ]

    def put(self, records: Mapping[Key, Record | None], now_ms: int) -> None:
        """Remember gates as they were read."""
        if len(self._gates) > _KNOWN_MAX:
            self._gates.clear()
        for key, record in records.items():
            self._gates[key] = (now_ms, gates.read(record) if record else None)

    def gates(self, endpoints: Iterable[tuple[str, str]], now_ms: int) -> dict[tuple[str, str], Gate]:
        """Give the gates that were seen in the last two seconds."""
        found: dict[tuple[str, str], Gate] = {}
        for owner in endpoints:
            at = keys.gate(*owner)
            gate = self._gates[at][1] if self._age_ms(at, now_ms) < TRUSTED_MS else None
            if gate is not None:
                found[owner] = gate
        return found

    def _age_ms(self, at: Key, now_ms: int) -> int:
        seen = self._gates.get(at)
        return now_ms - seen[0] if seen else LOOK_AGAIN_MS + TRUSTED_MS
