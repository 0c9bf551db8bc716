"""The way of `make newcomer`, but for making environments: a fresh clone delivers what the README posts."""

from pathlib import Path

from infra.local.processes import ROOT
from tests.e2e import newcomer
from tests.e2e.reading import Reader, walk
from tests.e2e.stack import Ports


def test_a_fresh_clone_delivers_what_the_readme_posts(tmp_path: Path) -> None:
    checkout = newcomer.clone(tmp_path / "relay")
    environments = (".venv", ".venv-emulator")
    for each in environments:
        (checkout / each).symlink_to(ROOT / each)
    ports = Ports()
    with newcomer.started(checkout, ports, 120, *(f"{each}/ready" for each in environments)):
        shown = walk(Reader(ports, tmp_path))
    assert shown["received"][0]["verified"] is True
    assert not (checkout / ".relay/dev.json").exists(), "it was not stopped by Ctrl-C"
