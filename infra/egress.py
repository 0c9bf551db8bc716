"""Whether the ranges that requests come from are the announced ones: `python -m infra.egress`.

Receivers keep them in firewalls, so that a change is a change of the interface: it needs a version of its
own in chalicelib/egress_ranges.json, announced long enough before it takes effect.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from infra.template import HERE, NETWORK, read

RECORD: Final = HERE.parent / "chalicelib" / "egress_ranges.json"
WINDOW: Final = timedelta(days=90)
"""How long before it takes effect a change has to be announced."""


def faults(network: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[str]:
    """Give one sentence for each way in which the template's ranges are not the announced ones."""
    versions = record["versions"]
    deployed = {
        region: {role.lower(): value for role, value in ranges.items()}
        for region, ranges in network["Metadata"]["EgressRanges"].items()
    }
    if deployed != versions[-1]["ranges"]:
        yield (
            "The ranges in infra/network.yaml are not those of the last version in"
            f" chalicelib/egress_ranges.json: add version {versions[-1]['version'] + 1}, announced"
            f" {WINDOW.days} days before it takes effect."
        )
    if [each["version"] for each in versions] != list(range(1, len(versions) + 1)):
        yield "The versions in chalicelib/egress_ranges.json are not numbered 1, 2, 3 …"
    for earlier, later in pairwise(versions):
        yield from _faults_of_a_change(earlier, later)


def _faults_of_a_change(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> Iterator[str]:
    announced, effective = (date.fromisoformat(later[f"{each}_on"]) for each in ("announced", "effective"))
    if announced < date.fromisoformat(earlier["announced_on"]):
        yield f"Version {later['version']} was announced before version {earlier['version']}."
    if effective - announced < WINDOW:
        yield (
            f"Version {later['version']} takes effect {(effective - announced).days} days after it was"
            f" announced; receivers need {WINDOW.days}."
        )


def main(network: Path = NETWORK, record: Path = RECORD) -> int:
    """Say what is wrong; the exit code is 1 when something is."""
    found = list(faults(read(network), json.loads(record.read_text(encoding="utf-8"))))
    print("\n".join(found or ["egress ranges: announced"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
