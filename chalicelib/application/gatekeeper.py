"""The gatekeeper: changes gates and remembers how each was last seen, which is a place to start from."""

from dataclasses import dataclass

from chalicelib.application.ports import Gates
from chalicelib.application.visit import Visit
from chalicelib.domain.change import Change
from chalicelib.domain.gate import Gate

_KNOWN_MAX = 10_000


class KnownGates:
    """Gates as this process last saw them: a place to start asking from, never the truth."""

    def __init__(self) -> None:
        """Know nothing."""
        self._gates: dict[tuple[str, str], Gate] = {}

    def get(self, key: tuple[str, str]) -> Gate | None:
        """Give the last gate seen."""
        return self._gates.get(key)

    def put(self, key: tuple[str, str], gate: Gate | None) -> None:
        """Remember a gate, or that there is none; forgets all when there are too many."""
        if gate is None:
            self._gates.pop(key, None)
            return
        if len(self._gates) >= _KNOWN_MAX:
            self._gates.clear()
        self._gates[key] = gate


@dataclass(frozen=True, slots=True)
class Gatekeeper:
    """Reads and changes the gates of visits."""

    gates: Gates
    known: KnownGates

    def of(self, visit: Visit) -> Gate | None:
        """Give the gate of a visit as last seen."""
        return self.known.get(visit.gate_key)

    def read(self, visit: Visit) -> Gate | None:
        """Read the gate of a visit."""
        gate = self.gates.read([visit.gate_key]).get(visit.gate_key)
        self.known.put(visit.gate_key, gate)
        return gate

    def seen(self, visit: Visit, gate: Gate | None) -> None:
        """Remember the gate of a visit."""
        self.known.put(visit.gate_key, gate)

    def change(self, visit: Visit, change: Change) -> Gate | None:
        """Make a change of a visit's gate if its tests hold; the gate as it is then."""
        (answer,) = self.gates.change([(visit.gate_key, change)])
        self.known.put(visit.gate_key, answer.gate)
        return answer.gate
