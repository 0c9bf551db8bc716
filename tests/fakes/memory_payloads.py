"""Bodies in a dictionary."""

from tests.fakes.faults import Faults, Step


class MemoryPayloads:
    """Implements `Payloads`; `kept` may be emptied as retention would."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.kept: dict[str, bytes] = {}
        self.faults = Faults()

    def put(self, key: str, body: bytes) -> None:
        """Keep a body."""
        with self.faults.around(Step("put", (key,))), self.faults.write():
            self.kept[key] = bytes(body)

    def get(self, key: str) -> bytes | None:
        """Give a body back, or None when it is gone."""
        with self.faults.around(Step("get")):
            return self.kept.get(key)
