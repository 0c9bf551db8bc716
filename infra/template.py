"""CloudFormation templates as values: read, settle, merge.

Reading turns the short tags (!Ref, !Sub, !GetAtt …) into their long form, so that a template is plain JSON.
Nothing here talks to AWS or to an emulator.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

HERE: Final = Path(__file__).parent
RESOURCES: Final = HERE / "resources.yaml"
NETWORK: Final = HERE / "network.yaml"
MERGE: Final = HERE / "merge_template.yaml"

_NO_VALUE: Final = "AWS::NoValue"
_PLACEHOLDER: Final = re.compile(r"\$\{([^!}]+)\}")


class _Loader(yaml.SafeLoader):
    """A safe loader of its own, so that the tags below stay unknown to everybody else's."""


def _tagged(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    """Give a short tag in its long form."""
    value: Any
    match node:
        case yaml.ScalarNode():
            value = loader.construct_scalar(node)
        case yaml.SequenceNode():
            value = loader.construct_sequence(node, deep=True)
        case yaml.MappingNode():
            value = loader.construct_mapping(node, deep=True)
        case _:
            raise TypeError(node)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _tagged)


def read(path: Path) -> dict[str, Any]:
    """Read a YAML template into plain dictionaries with long-form intrinsics."""
    with path.open(encoding="utf-8") as text:
        template: dict[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506  a SafeLoader with more tags
    return template


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Lay `over` on `base`: dictionaries merge, anything else is replaced; neither argument changes."""
    merged = dict(base)
    for key, value in over.items():
        match merged.get(key), value:
            case dict(below), dict(above):
                merged[key] = merge(below, above)
            case _:
                merged[key] = value
    return merged


def settle(template: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Give the resources that exist under these parameters, with everything known filled in.

    A reference to another resource stays as it is; `values` may also name pseudo parameters.
    """
    defaults = {name: str(about["Default"]) for name, about in template["Parameters"].items()}
    known = {**defaults, **values}
    holds = {name: _equal(rule, known) for name, rule in template["Conditions"].items()}
    settled = {name: _settled(about, known, holds) for name, about in template["Resources"].items()}
    return {name: about for name, about in settled.items() if holds.get(about.get("Condition"), True)}


def _equal(rule: Mapping[str, Any], known: Mapping[str, str]) -> bool:
    """Say whether an `Fn::Equals` holds; other conditions have no use on an emulator."""
    left, right = (_settled(side, known, {}) for side in rule["Fn::Equals"])
    return bool(left == right)


def _settled(node: Any, known: Mapping[str, str], holds: Mapping[str, bool]) -> Any:  # noqa: ANN401  any JSON
    """Fill in one node and everything below it."""
    match node:
        case {"Ref": str(name)} if name in known:
            return known[name]
        case {"Fn::Sub": str(text)}:
            return _PLACEHOLDER.sub(lambda found: known.get(found[1], found[0]), text)
        case {"Fn::If": [str(condition), yes, no]}:
            return _settled(yes if holds[condition] else no, known, holds)
        case dict():
            filled = {key: _settled(value, known, holds) for key, value in node.items()}
            return {key: value for key, value in filled.items() if value != {"Ref": _NO_VALUE}}
        case list():
            return [_settled(item, known, holds) for item in node]
        case _:
            return node
