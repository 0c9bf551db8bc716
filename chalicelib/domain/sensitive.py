"""What of a payload is sensitive: paths into JSON, in a small part of what JSONPath has.

`$` is the whole value; `.name` and `['any name']` a member of an object; `[3]` an item of an array; `.*` and
`[*]` each member or item. A marked object or array is marked with all that it holds.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

from chalicelib.domain.errors import ErrorCode, RelayError

PATHS_MAX = 50
PATH_MAX = 256
FIELD = "sensitive_paths"
_STEP = re.compile(
    r"\.(?P<name>[\w$-]+)|\[(?P<index>0|[1-9][0-9]{0,5})\]|(?P<any>\.\*|\[\*\])|\['(?P<quoted>(?:[^'\\]|\\['\\])*)'\]"
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

Step = str | int | None
"""A member's name, an item's index, or any of either."""

Path = tuple[Step, ...]


def valid_paths(texts: Sequence[str], field: str = FIELD) -> tuple[str, ...]:
    """Give paths back, each once, or refuse the first that is none, naming the place in it."""
    if len(texts) > PATHS_MAX:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"There are {len(texts)} sensitive paths.",
            field=field,
            expected=f"at most {PATHS_MAX}; a wildcard such as $.items[*].name takes many at once",
        )
    for number, text in enumerate(texts):
        parse(text, f"{field}.{number}")
    return tuple(dict.fromkeys(texts))


def parse(text: str, field: str = FIELD) -> Path:
    """Read a path such as `$.items[*].name`; raises RelayError naming the character at fault, from 1."""
    if len(text) > PATH_MAX:
        _refuse(field, PATH_MAX, f"it has more than {PATH_MAX} characters")
    if not text.startswith("$"):
        _refuse(field, 0, "a path begins with $")
    steps: list[Step] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            _refuse(field, at, "no step begins here")
        steps.append(_step(found))
        at = found.end()
    return tuple(steps)


def below(live: Iterable[Path], step: str | int) -> tuple[Path, ...]:
    """Follow paths to a member or an item: what is left of those that go on there; an empty one marks it."""
    return tuple(path[1:] for path in live if path and _fits(path[0], step))


def _fits(wanted: Step, step: str | int) -> bool:
    return wanted is None or wanted == step


def _step(found: re.Match[str]) -> Step:
    if found["any"]:
        return None
    if found["index"] is not None:
        return int(found["index"])
    return found["name"] if found["name"] is not None else _ESCAPED.sub(r"\1", found["quoted"])


def _refuse(field: str, at: int, why: str) -> NoReturn:
    raise RelayError(
        ErrorCode.FIELD_INVALID,
        f"The path is not valid at character {at + 1}: {why}.",
        field=field,
        expected="a path such as $.card.number, $.items[*].name, $.items[0] or $['an odd name']",
    )
