"""Bodies in a dictionary."""

from collections.abc import Sequence

from tests.fakes.faults import Faults, Step


class MemoryPayloads:
    """Implements `Payloads` and `Shelf`; `kept` may be emptied as retention would."""

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

    def listed(self, after: str, limit: int) -> list[str]:
        """Give the keys of at most `limit` bodies in order, the first one after a text."""
        with self.faults.around(Step("listed")):
            return sorted(each for each in self.kept if each > after)[:limit]

    def remove(self, keys: Sequence[str]) -> None:
        """Forget bodies; one that is gone already is no error."""
        with self.faults.around(Step("remove", tuple(keys))):
            for key in keys:
                with self.faults.write():
                    self.kept.pop(key, None)
