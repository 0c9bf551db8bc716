"""The ingress budget: how many bytes may be on their way through the node at once, weighted."""

from dataclasses import dataclass


@dataclass(slots=True)
class Budget:
    """`weight` stands for the copies that a byte has while it is under way."""

    limit_bytes: int
    weight: int
    used: int = 0

    def change(self, held_bytes: int, charged: int) -> int | None:
        """Charge for so many bytes in place of what was charged; None when that is too much."""
        wanted = held_bytes * self.weight
        if wanted > charged and self.used + wanted - charged > self.limit_bytes:
            return None
        self.used += wanted - charged
        return wanted
