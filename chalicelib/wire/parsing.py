"""How a body is read: strict JSON into a model, and faults told in the words of the caller."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, WithJsonSchema

from chalicelib.domain import event as events
from chalicelib.domain import ids
from chalicelib.domain.errors import ErrorCode, RelayError

BODY_MAX = 131_072
_SHOWN_MAX = 5
_EPOCH = datetime.fromtimestamp(0, UTC)
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_DIGITS_MAX = 20
_FRACTION_MAX = 40
_PYDANTIC = re.compile(
    r"^(?:Input|String|List|Dictionary) should (?:be|have) |(?: after validation)?, not \w+$"
)
_EXPECTED = {
    "missing": "a value",
    "string_unicode": "text without half surrogate pairs",
    "dict_type": "a JSON object",
}
STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)


def one_of(words: Iterable[str]) -> WithJsonSchema:
    """Say in the contract which words a choice has; `choice` refuses the others in plain ones."""
    return WithJsonSchema({"type": "string", "enum": [str(each) for each in words]})


Model = TypeVar("Model", bound=BaseModel)


def parse(model: type[Model], body: bytes, *, max_bytes: int = BODY_MAX) -> Model:
    """Read a JSON body as a model; raises RelayError naming the field at fault."""
    if len(body) > max_bytes:
        raise events.too_large(len(body), max_bytes)
    text = events.json_text(body)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_once,
            parse_int=_whole,
            parse_float=_fraction,
            parse_constant=events.refuse_constant,
        )
    except ValueError as error:
        raise RelayError(
            ErrorCode.BODY_NOT_JSON, f"The body is not valid JSON: {error}.", expected="a JSON object"
        ) from error
    return checked(model, value)


def checked(model: type[Model], value: object) -> Model:
    """Read a parsed JSON value as a model; raises RelayError naming the field at fault."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _first_fault(error, model) from None


def times(since: str | None, until: str | None) -> tuple[int, int]:
    """Read which time a list is asked for, as Unix ms; raises RelayError."""
    since_ms = 0 if since is None else queried_ms(since, "since")
    until_ms = ids.END_MS if until is None else queried_ms(until, "until")
    in_order(since_ms, until_ms, "a time before `until`")
    return since_ms, until_ms


def queried_ms(text: str, field: str) -> int:
    """Read a time out of a query as Unix ms; raises RelayError.

    A `+` that the query's encoding has turned into a space is read as it was meant.
    """
    return moment_ms(text.replace(" ", "+"), field)


def in_order(since_ms: int, until_ms: int, expected: str) -> None:
    """Refuse a time from which and one until which that are not in this order; raises RelayError."""
    if since_ms >= until_ms:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "`since` is not before `until`.",
            field="since",
            expected=expected,
        )


def moment_ms(text: str, field: str) -> int:
    """Read a time of RFC 3339 with its offset as Unix ms, not before 1970; raises RelayError.

    In UTC it lies before the year 10000, so that it can be told again.
    """
    try:
        moment = datetime.fromisoformat(text.upper()).astimezone(UTC) if _MOMENT.fullmatch(text) else None
    except (ValueError, OverflowError):
        moment = None
    if moment is None or moment < _EPOCH:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`{field}` is no time, or none that can be.",
            field=field,
            expected="a time since 1970 such as 2026-01-31T09:30:00Z",
        )
    return (moment - _EPOCH) // timedelta(milliseconds=1)


Kind = TypeVar("Kind", bound=StrEnum)


def choice(kind: type[Kind], text: str, field: str, among: Collection[Kind] = ()) -> Kind:
    """Read one of a fixed set of words, all of its kind or these, or raise RelayError naming them."""
    words = {each.value: each for each in among or kind}
    if text not in words:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`{field}` is not one of its words.",
            field=field,
            expected="one of: " + ", ".join(words),
        )
    return words[text]


def _first_fault(error: ValidationError, model: type[BaseModel]) -> RelayError:
    faults = error.errors()
    unknown = [str(fault["loc"][-1]) for fault in faults if fault["type"] == "extra_forbidden"]
    if unknown:
        found = next(fault for fault in faults if fault["type"] == "extra_forbidden")
        known = ", ".join(_model_at(model, found["loc"]).model_fields)
        shown = ", ".join(name[:100] for name in unknown[:_SHOWN_MAX])
        return RelayError(
            ErrorCode.FIELD_UNKNOWN,
            f"Unknown field: {shown}.",
            field=unknown[0][:100],
            expected=f"any of: {known}",
        )
    fault = faults[0]
    field = ".".join(str(part) for part in fault["loc"])
    if not field:
        return RelayError(ErrorCode.FIELD_INVALID, "This is not a JSON object.", expected="a JSON object")
    wrong = "is missing" if fault["type"] == "missing" else "is not valid"
    return RelayError(
        ErrorCode.FIELD_INVALID, f"`{field[:100]}` {wrong}.", field=field[:100], expected=_plain(fault)
    )


def _model_at(model: type[BaseModel], loc: Sequence[int | str]) -> type[BaseModel]:
    """Find the model of the object that a member belongs to."""
    for name in loc[:-1]:
        annotation = model.model_fields[str(name)].annotation
        kinds = (annotation, *get_args(annotation))
        model = next(each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel))
    return model


def _plain(fault: Mapping[str, Any]) -> str:
    """Say what pydantic expected in the words of the caller."""
    kind = str(fault["type"])
    return _EXPECTED.get(kind) or _PYDANTIC.sub("", str(fault["msg"]))


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS_MAX:
        raise ValueError("a number has too many digits")
    return int(digits)


def _fraction(digits: str) -> float:
    """Read a number that is not whole if it is kept as it was written."""
    try:
        if len(digits) <= _FRACTION_MAX and Decimal(digits) == Decimal(repr(number := float(digits))):
            return number
    except ArithmeticError:
        pass
    raise ValueError("a number has more digits than can be kept")


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Read an object in which no name stands twice: which of the two is meant cannot be known."""
    value: dict[str, Any] = {}
    for name, member in members:
        if name in value:
            raise RelayError(
                ErrorCode.BODY_NOT_JSON,
                f"The body has `{name[:100]}` more than once.",
                field=name[:100],
                expected="each name once in an object",
            )
        value[name] = member
    return value
