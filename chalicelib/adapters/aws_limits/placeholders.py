"""The #name and :value placeholders of one request, and whether each of them is used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.dynamodb_values import check_value, value_size
from chalicelib.adapters.aws_limits.refusal import check_bytes, refuse, utf8_bytes

if TYPE_CHECKING:
    from chalicelib.adapters.aws_limits.dynamodb_values import AttributeValue
    from chalicelib.adapters.aws_limits.refusal import Params

_NAMES = "ExpressionAttributeNames"
_VALUES = "ExpressionAttributeValues"
_FORMS = {_NAMES: re.compile(r"#[A-Za-z0-9_]{1,254}"), _VALUES: re.compile(r":[A-Za-z0-9_]{1,254}")}
LARGEST_BYTES = 2 * 1_048_576


class Placeholders:
    """The placeholders that one request defines; `where` is the request's place in the call."""

    def __init__(self, request: Params, where: str) -> None:
        """Refuse malformed or bad placeholders right away."""
        self._where = where
        self._names: Params = request.get(_NAMES) or {}
        self._values: Params = request.get(_VALUES) or {}
        self._unused = {*self._names, *self._values}
        for parameter in (_NAMES, _VALUES):
            _check_forms(request, parameter, where)
        self._check_sizes()

    def name(self, placeholder: str, where: str) -> str:
        """Return the attribute name that a # placeholder stands for."""
        if placeholder not in self._names:
            refuse(where, f"uses {placeholder}, which {_NAMES} does not define")
        self._unused.discard(placeholder)
        return str(self._names[placeholder])

    def value(self, placeholder: str, where: str) -> AttributeValue:
        """Return the value that a : placeholder stands for."""
        if placeholder not in self._values:
            refuse(where, f"uses {placeholder}, which {_VALUES} does not define")
        self._unused.discard(placeholder)
        content: AttributeValue = self._values[placeholder]
        return content

    def refuse_unused(self) -> None:
        """Refuse placeholders that no expression of the request used."""
        for parameter, defined in ((_NAMES, self._names), (_VALUES, self._values)):
            unused = sorted(self._unused & set(defined))
            if unused:
                refuse(f"{self._where}{parameter}", f"defines {', '.join(unused)}, which no expression uses")

    def _check_sizes(self) -> None:
        for placeholder, content in self._values.items():
            check_value(content, f"{self._where}{_VALUES}.{placeholder}")
        size = sum(utf8_bytes(name) for name in self._names.values())
        size += sum(value_size(content) for content in self._values.values())
        check_bytes(size, LARGEST_BYTES, f"{self._where}{_VALUES}")


def _check_forms(request: Params, parameter: str, where: str) -> None:
    defined = request.get(parameter)
    if defined is not None and not defined:
        refuse(f"{where}{parameter}", "must be left out when it holds nothing")
    for placeholder in defined or ():
        if not _FORMS[parameter].fullmatch(placeholder):
            sign = "#" if parameter == _NAMES else ":"
            refuse(f"{where}{parameter}", f"{placeholder} must be {sign} and 1 to 254 of A-Z a-z 0-9 _")
