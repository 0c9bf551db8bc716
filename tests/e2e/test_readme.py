"""The first page is true: its commands are typed as they stand, and what they show is what it says.

Only the ports differ: a test's stack has its own. `make` lines are recognised and not run.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local.processes import ROOT
from tests.e2e.reading import README, Reader, blocks, walk
from tests.e2e.stack import RelayStack

PAGES = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]*)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
MODULE = re.compile(r"`([\w/]+\.py)`")
TASK = re.compile(r"^([a-z-]+):.*## ", re.MULTILINE)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with RelayStack(tmp_path_factory.mktemp("stack")) as stack:
        yield Reader(stack.ports, tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def walked(reader: Reader) -> dict[str, Any]:
    """Walk the whole page once, and give what each of its steps showed."""
    return walk(reader)


def test_registering_shows_the_secret(walked: dict[str, Any]) -> None:
    assert walked["endpoint"]["secret"].startswith("whsec_")
    assert walked["endpoint"]["event_types"] == ["order.*"]
    assert walked["secrets"]["secrets"] == 1


def test_posting_answers_as_shown(walked: dict[str, Any]) -> None:
    accepted = walked["accepted"]
    assert list(accepted) == ["event_id", "delivery_ids", "fan_out"]
    assert len(accepted["delivery_ids"]) == 1
    assert accepted["fan_out"] == "inline"


def test_the_delivery_arrives_with_its_signature_verified(walked: dict[str, Any]) -> None:
    (seen,) = walked["received"]
    assert seen["verified"] is True
    assert (seen["path"], seen["status"]) == ("/verify", 200)
    assert seen["event_id"] == walked["accepted"]["event_id"]
    assert [seen["delivery_id"]] == walked["accepted"]["delivery_ids"]


def test_the_delivery_is_shown_with_its_attempt(walked: dict[str, Any]) -> None:
    delivery = walked["delivery"]
    assert delivery["status"] == "succeeded"
    assert delivery["event_id"] == walked["accepted"]["event_id"]
    (attempt,) = delivery["attempts"]
    assert (attempt["attempt"], attempt["outcome"], attempt["status"]) == (1, "success", 200)


def test_the_receiver_lists_the_faults_that_the_page_names(reader: Reader) -> None:
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"`/([a-z0-9]+)[^`]*`", text.partition("## See it misbehave")[2]))
    listed = set(re.findall(r"^  /([a-z0-9]+)", reader.types("curl -s http://127.0.0.1:9099/"), re.MULTILINE))
    assert len(named) > 5
    assert named <= listed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_the_documents_works(reader: Reader, walked: dict[str, Any], page: Path) -> None:
    if page != README:
        for block in blocks(page):
            reader.types(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_task_that_is_named_exists(page: Path) -> None:
    tasks = set(TASK.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`make ([a-z-]+)", text) + re.findall(
        r"^make ([a-z-]+)", "".join(blocks(page)), re.MULTILINE
    )
    assert set(named) <= tasks


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_documents_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        where, _, heading = link.partition("#")
        target = (page.parent / where).resolve() if where else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not heading or heading in anchors(target), f"{page.name} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_is_named_exists(page: Path) -> None:
    for name in MODULE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / name).exists() or (ROOT / "chalicelib" / name).exists(), f"{page.name} names {name}"


def anchors(page: Path) -> set[str]:
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
