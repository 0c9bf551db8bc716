"""What the documents name is there: routes, settings, metrics, decisions, and the glossary's words."""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from chalicelib.domain import metrics
from chalicelib.domain.bulk_replay import BulkState
from chalicelib.domain.delivery import Status
from chalicelib.domain.gate.record import Breaker, HoldReason, Queue
from chalicelib.domain.notice import NoticeKind
from chalicelib.domain.outcome import DeathReason, Outcome
from chalicelib.settings import Settings
from chalicelib.wire.operations import OPERATIONS
from infra.functions import FUNCTIONS
from infra.package import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
GLOSSARY = dict(
    re.findall(
        r"^\| ([^|]+) \| ([^|]+) \|$", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
)
CASES = dict(
    re.findall(
        r"^\| (F\d{3}) \| [^|]+ \| ([^|]+) \|$",
        (DOCS / "decisions/field-cases.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
DESIGNED = (
    "tenant; event, event type; endpoint; subscription; fan-out; delivery; attempt; generation; owed;"
    " history; lane; bell; shard; gate; hold; breaker; dead letter; replay"
).split("; ")
"""The words that the design fixes; the glossary may have more."""
VARIABLE = re.compile(r'os\.environ(?:\.get\(|\.pop\(|\[)"([A-Z_]+)"|"([A-Z_]+)" in os\.environ')
SUFFIXES = ("_bucket", "_count", "_sum")


def each_page(pages: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages, ids=[str(page.relative_to(ROOT)) for page in pages])


@each_page(PAGES)
def test_every_route_that_is_named_exists(page: Path) -> None:
    routes = {(each.method, _shape(each.path)) for each in OPERATIONS}
    named = re.findall(r"\b(GET|POST|PATCH|DELETE) (/[\w/{}.-]*\w}?)", page.read_text(encoding="utf-8"))
    assert [each for each in named if (each[0], _shape(each[1])) not in routes] == []


@each_page(PAGES)
def test_every_setting_that_is_named_exists(page: Path) -> None:
    known = {name.upper() for name in Settings.model_fields}
    named = re.findall(r"`RELAY_([A-Z0-9_]*[A-Z0-9])\b", page.read_text(encoding="utf-8"))
    assert set(named) <= known


def test_every_variable_that_the_tools_read_is_documented() -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "infra").rglob("*.py"))
    read = {name for pair in VARIABLE.findall(sources) for name in pair if name}
    assert {"EMULATOR", "LOCALSTACK_HOST"} <= read
    assert [each for each in sorted(read) if f"`{each}`" not in page] == []


@each_page(PAGES)
def test_every_metric_that_is_named_exists(page: Path) -> None:
    known = {metric.name for metric in metrics.CATALOGUE}
    named = re.findall(r"`(relay_[a-z_]+)[`{\[]", page.read_text(encoding="utf-8"))
    plain = {_without_suffix(name) for name in named}
    assert plain <= known


def test_the_page_on_operations_tells_what_every_metric_is_good_for() -> None:
    page = (DOCS / "operations.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(relay_[a-z_]+)` \| (?:`([a-z_]+)` )?\|", page, re.MULTILINE))
    assert told == {metric.name: metric.label for metric in metrics.CATALOGUE}


def test_the_architecture_has_every_function() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8").replace("` … `", "`, `")
    named = set(re.findall(r"`([a-z][a-z_0-9]*)`", page))
    assert {each.name for each in FUNCTIONS if not re.fullmatch("deliver_shard_[123]", each.name)} <= named


@each_page(PAGES)
def test_no_page_is_an_island(page: Path) -> None:
    if page == ROOT / "README.md":
        return
    others = " ".join(each.read_text(encoding="utf-8") for each in PAGES if each != page)
    assert re.search(
        rf"\]\((?:[\w./-]*/)?{re.escape(page.name)}[#)]|\]\((?:\w+/)*{page.parent.name}\)", others
    )


def test_every_decision_stands_in_the_index_with_its_title() -> None:
    index = (DOCS / "decisions/README.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| \[\d{4}\]\((\d{4}-[\w-]+\.md)\) \| (.+) \|$", index, re.MULTILINE))
    kept = {path.name: _title(path) for path in sorted(DOCS.glob("decisions/[0-9]*.md"))}
    assert told == kept
    assert list(told) == list(kept)


@pytest.mark.parametrize("case, tests", CASES.items(), ids=CASES)
def test_a_field_case_is_answered_where_it_says(case: str, tests: str) -> None:
    named = [ROOT / each for each in re.findall(r"`(tests/[\w/]+\.py)`", tests)]
    assert named
    assert [path.name for path in named if case.lower() not in path.read_text(encoding="utf-8").lower()] == []


def test_numbers_of_decisions_are_given_once() -> None:
    numbers = [path.name[:4] for path in DOCS.glob("decisions/[0-9]*.md")]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("word", DESIGNED)
def test_the_glossary_has_every_word_of_the_design(word: str) -> None:
    assert word in GLOSSARY


@pytest.mark.parametrize(
    "word, values",
    [
        ("delivery", Status),
        ("attempt", Outcome),
        ("hold", HoldReason),
        ("breaker", Breaker),
        ("dead letter", DeathReason),
        ("shard", [each for each in Queue if each is not Queue.SHARD]),
        ("notice", NoticeKind),
        ("replay", BulkState),
    ],
)
def test_the_glossary_has_all_that_a_word_may_be(word: str, values: type[StrEnum] | list[Queue]) -> None:
    assert [each for each in values if f"`{each}`" not in GLOSSARY[word]] == []


def _shape(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].partition(": ")[2]


def _without_suffix(name: str) -> str:
    return next((name.removesuffix(each) for each in SUFFIXES if name.endswith(each)), name)
