"""The files of infra/grafana that are made from the catalogue."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from infra.template import HERE
from infra.watching import prometheus

GRAFANA: Final = HERE / "grafana"
_MADE: Final = "# Made by `python -m infra.watching` from infra/watching/alarms.py.\n"


def texts() -> Mapping[Path, str]:
    """Give each file with its content."""
    board = json.dumps(prometheus.dashboard(), indent=2) + "\n"
    rules = _MADE + yaml.safe_dump(prometheus.alerts(), sort_keys=False, width=200)
    return {GRAFANA / "dashboards" / "relay.json": board, GRAFANA / "alerts.yml": rules}


def write() -> None:
    """Write them."""
    for path, text in texts().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
