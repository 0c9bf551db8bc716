"""The stages that Relay is deployed as: one file each below infra/stages."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from chalicelib.settings import SettingsError
from chalicelib.settings import load as check
from infra.template import HERE

STAGES: Final = HERE / "stages"
_MEMBERS: Final = frozenset({"parameters", "prefix", "region", "settings"})


class StageError(Exception):
    """Why a stage cannot be deployed: one sentence for a person."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One Relay: where it is, what its names begin with, and what is particular to it."""

    name: str
    prefix: str
    region: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Of the template, those without a default of their own choice left out."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """`RELAY_…` variables that every function is given."""

    @property
    def stack(self) -> str:
        """Name its stack."""
        return self.prefix.rstrip("-")


def load(name: str, stages: Path = STAGES) -> Stage:
    """Read a stage; StageError names those there are when it is none, or says what is wrong in its file."""
    there = sorted(path.stem for path in stages.glob("*.toml"))
    if name not in there:
        raise StageError(f"There is no stage {name!r}; infra/stages has {', '.join(there)}.")
    try:
        about = tomllib.loads((stages / f"{name}.toml").read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise StageError(f"The stage {name} cannot be read: {error}.") from error
    if strange := about.keys() ^ _MEMBERS:
        raise StageError(f"The stage {name} lacks, or should not have: {', '.join(sorted(strange))}.")
    settings = _texts(about["settings"])
    try:
        check({"RELAY_RESOURCE_PREFIX": about["prefix"], **settings})
    except SettingsError as error:
        raise StageError(f"The settings of the stage {name} do not work: {error}.") from error
    return Stage(name, about["prefix"], about["region"], _texts(about["parameters"]), settings)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Give values as CloudFormation and the environment have them."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()
    }
