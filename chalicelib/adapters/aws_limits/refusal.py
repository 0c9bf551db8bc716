"""The one refusal, and the small checks that every service's rules share.

Texts never carry what was sent, which may be a payload or a secret, only where it stood and its rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NoReturn

Params = Mapping[str, Any]


class AwsWouldRefuse(RuntimeError):  # noqa: N818 - it says what would happen, and is read so in tests
    """A call that AWS would turn down.

    A RuntimeError, so that no handler of botocore errors takes it for an outage.
    """

    def __init__(self, parameter: str, rule: str, call: str = "") -> None:
        """Name the parameter, the rule, and the call once it is known."""
        super().__init__(f"{call or 'call'}: {parameter}: {rule}")
        self.parameter = parameter
        self.rule = rule
        self.call = call

    def in_call(self, call: str) -> AwsWouldRefuse:
        """Return the same refusal with the call named, such as `sqs.SendMessage`."""
        return AwsWouldRefuse(self.parameter, self.rule, call)


def refuse(where: str, rule: str) -> NoReturn:
    """Raise the refusal of the parameter at `where`."""
    raise AwsWouldRefuse(where, rule)


def utf8(text: str) -> bytes:
    """Return the text as bytes, even with half a surrogate pair, which takes three."""
    return text.encode("utf-8", "surrogatepass")


def utf8_bytes(text: str) -> int:
    """Return how many bytes the text takes on the wire."""
    return len(utf8(text))


def check_range(params: Params, name: str, lowest: int, highest: int, where: str = "") -> None:
    """Refuse a whole number that is given and lies outside lowest..highest."""
    number = params.get(name)
    if number is not None and not lowest <= int(number) <= highest:
        refuse(f"{where}{name}", f"must lie between {lowest} and {highest}, is {int(number)}")


def check_count(items: Collection[object], lowest: int, highest: int, where: str) -> None:
    """Refuse a list with fewer than `lowest` or more than `highest` entries."""
    if not lowest <= len(items) <= highest:
        refuse(where, f"must hold {lowest} to {highest} entries, holds {len(items)}")


def check_bytes(size: int, highest: int, where: str) -> None:
    """Refuse more bytes than `highest`."""
    if size > highest:
        refuse(where, f"must take at most {highest} bytes, takes {size}")


def check_distinct(items: Iterable[object], where: str, what: str) -> None:
    """Refuse two equal entries; those that are None are not known and are left alone."""
    seen: set[object] = set()
    for place, item in enumerate(items):
        if item is not None and item in seen:
            refuse(f"{where}[{place}]", f"{what} must be distinct within one call")
        seen.add(item)
