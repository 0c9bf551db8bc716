"""docs/errors.md has every word that attempts and dead letters use, and no other; codes: test_problems.py."""

import re
from enum import StrEnum

import pytest

from chalicelib.domain.outcome import DeathReason, Fault, Outcome
from infra.package import ROOT

PAGE = (ROOT / "docs/errors.md").read_text(encoding="utf-8").partition("## What an attempt came to\n")[2]
TABLES = dict(zip((Outcome, Fault, DeathReason), re.split(r"\n\n(?=\| `)", PAGE)[1:], strict=True))


@pytest.mark.parametrize("words", TABLES)
def test_every_word_has_a_row_and_no_other(words: type[StrEnum]) -> None:
    first = re.findall(r"^\| (`[^|]*) \|", TABLES[words], re.MULTILINE)[1:]
    named = [each for cell in first for each in re.findall(r"`([a-z_]+)`", cell)]
    assert sorted(named) == sorted(words)
