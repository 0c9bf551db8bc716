"""The page and its plots are made from the figures alone, and every figure that the page tells is there."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.infra.simulation.test_runs import told
from tests.simulation import page
from tests.simulation.measured import CASES

FIGURES = {
    "runs": {"twentieth": json.loads(told(7)), "full": json.loads(told(8))},
    "measured": {
        name: {each: [value, value] for each, value in of.measured.items()} for name, of in CASES.items()
    },
    "one_gate": {
        "expected_mean_ms": 9_995.9,
        "found_mean_ms": 9_974.4,
        "late_at_most_ms": 5.0,
        "early": 0,
        "sent": 1,
        "could": 1,
    },
    "sweeps_s": {"1000": [5.3, 0.4], "40000": [213.6, 15.0]},
    "took_s": 700,
    "cpu_s": 1_300,
}


def test_the_page_tells_every_figure_and_leaves_no_gap(tmp_path: Path) -> None:
    page.write(FIGURES, tmp_path / "scale.md", tmp_path / "scale")
    text = (tmp_path / "scale.md").read_text()
    assert "{" not in text
    assert "213.6" in text


def test_every_plot_that_the_page_shows_is_there_and_is_well_formed(tmp_path: Path) -> None:
    page.write(FIGURES, tmp_path / "scale.md", tmp_path / "scale")
    drawn = {f"scale/{each.name}" for each in (tmp_path / "scale").iterdir()}
    shown = {part.partition(")")[0] for part in (tmp_path / "scale.md").read_text().split("](")[1:]}
    assert drawn == {each for each in shown if each.endswith(".svg")}
    for each in (tmp_path / "scale").iterdir():
        assert ET.parse(each).getroot().tag.endswith("svg")  # noqa: S314 - written just above
