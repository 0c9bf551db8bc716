"""The first page is true: its commands are typed as they stand, and what they show is what it says.

Only the ports differ: a test's stack has its own. `make` lines are recognised and not run.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.local.processes import ROOT
from tests.e2e.stack import RelayStack

README = ROOT / "README.md"
PAGES = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]*)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
MODULE = re.compile(r"`([\w/]+\.py)`")
TASK = re.compile(r"^([a-z-]+):.*## ", re.MULTILINE)
# An answer that is an error ends the block, which curl by itself would only do with an option.
HONEST = f"""set -euo pipefail
curl() {{ command curl --fail-with-body "$@"; }}
make() {{ command make --no-print-directory -C {ROOT} "$@"; }}
"""


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who types what a page says, in a folder of their own."""

    stack: RelayStack
    folder: Path

    def types(self, block: str) -> str:
        """Run a block but for its `make` lines and give what was shown."""
        commands = "".join(line for line in block.splitlines(keepends=True) if not line.startswith("make "))
        ports = self.stack.ports
        here = commands.replace(":8080", f":{ports.api}").replace(":9099", f":{ports.receiver}")
        bash = shutil.which("bash") or "bash"
        typed = subprocess.run(
            [bash, "-c", HONEST + here],
            cwd=self.folder, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert typed.returncode == 0, f"{here}\nended with {typed.returncode}: {typed.stdout}{typed.stderr}"
        return typed.stdout

    def repeats(self, block: str, word: str) -> Any:  # noqa: ANN401 - whatever JSON is shown
        """Type a block again and again until a word is in what it shows."""
        shown = ""

        def has_come() -> bool:
            nonlocal shown
            shown = self.types(block)
            return word in shown

        self.stack.until(has_come, within_s=30)
        return json.loads(shown)


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with RelayStack(tmp_path_factory.mktemp("stack")) as stack:
        yield Reader(stack, tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def steps() -> list[str]:
    """Give the README's blocks after the first, which starts everything."""
    start, *steps = blocks(README)
    assert start == "make dev\nmake test\n"
    assert len(steps) == 5
    return steps


@pytest.fixture(scope="module")
def walked(reader: Reader, steps: list[str]) -> dict[str, Any]:
    """Walk the whole page once, and give what each of its steps showed."""
    register, hand_over, post, received, ask = steps
    return {
        "endpoint": json.loads(reader.types(register)),
        "secrets": json.loads(reader.types(hand_over)),
        "accepted": json.loads(reader.types(post)),
        "received": reader.repeats(received, "delivery_id"),
        "delivery": reader.repeats(ask, "succeeded"),
    }


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_the_documents_works(reader: Reader, walked: dict[str, Any], page: Path) -> None:
    if page != README:
        for block in blocks(page):
            reader.types(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_task_that_is_named_exists(page: Path) -> None:
    tasks = set(TASK.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`make ([a-z-]+)", text) + re.findall(
        r"^make ([a-z-]+)", "".join(blocks(page)), re.MULTILINE
    )
    assert set(named) <= tasks


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_within_the_documents_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        where, _, heading = link.partition("#")
        target = (page.parent / where).resolve() if where else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not heading or heading in anchors(target), f"{page.name} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_module_that_is_named_exists(page: Path) -> None:
    for name in MODULE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / name).exists() or (ROOT / "chalicelib" / name).exists(), f"{page.name} names {name}"


def anchors(page: Path) -> set[str]:
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
