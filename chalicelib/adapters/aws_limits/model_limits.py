"""The limits that a service states in its own API model: longest strings, most entries, largest numbers.

botocore ships that model and checks only its minimums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chalicelib.adapters.aws_limits.refusal import refuse

if TYPE_CHECKING:
    from botocore.model import OperationModel, Shape

    from chalicelib.adapters.aws_limits.refusal import Params


def check_against_model(params: Params, model: OperationModel) -> None:
    """Refuse whatever exceeds a maximum of the call's API model."""
    if model.input_shape is not None:
        _check(params, model.input_shape, "")


def _check(value: Any, shape: Shape, where: str) -> None:  # noqa: ANN401 - walks values of every shape
    limit = shape.metadata.get("max")
    if limit is not None:
        _check_maximum(value, int(limit), where)
    for child, child_shape, name in _children(value, shape):
        _check(child, child_shape, f"{where}{name}".lstrip("."))


def _check_maximum(value: Any, limit: int, where: str) -> None:  # noqa: ANN401 - a number or something with a length
    if isinstance(value, int):
        if value > limit:
            refuse(where, f"must be at most {limit}, is {value}")
    elif hasattr(value, "__len__") and len(value) > limit:
        refuse(where, f"must have a length of at most {limit}, has {len(value)}")


def _children(value: Any, shape: Any) -> list[tuple[Any, Shape, str]]:  # noqa: ANN401 - botocore tells shapes by name
    match shape.type_name:
        case "structure":
            members = shape.members.items()
            return [(value[name], member, f".{name}") for name, member in members if name in value]
        case "list":
            return [(item, shape.member, f"[{place}]") for place, item in enumerate(value)]
        case "map":
            return [(item, shape.value, f".{key}") for key, item in value.items()]
        case _:
            return []
