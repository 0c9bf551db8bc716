"""The command that rebuilds: it says what it did, in sentences, and what kept it from doing it."""

import sys

import pytest

from chalicelib.application.rebuild import Rebuilt
from infra import rebuild
from tests.handlers.relay import Relay, typed
from tests.receiver import Receiver


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say on the command line that senders are stopped."""
    monkeypatch.setattr(sys, "argv", ["rebuild", "--senders-are-stopped"])


def remove(relay: Relay, table: str) -> int:
    """Remove every row of a table; how many."""
    found = relay.rows(table)
    for row in found:
        key = {name: row[name] for name in ("pk", "sk") if name in row}
        relay.aws("dynamodb").delete_item(TableName=relay.made.tables[table], Key=key)
    return len(found)


def test_what_was_lost_is_made_again_and_told(
    relay: Relay, receiver: Receiver, stopped: None, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = relay.endpoint(url=receiver.url("/status/404"), event_types=["dead"])
    relay.event(b"{}", typed("dead"))
    relay.deliver_all()
    relay.endpoint(event_types=["owed"])
    said = relay.event(b"{}", typed("owed"))
    paths = [f"/v1/deliveries/{said['delivery_ids'][0]}"]
    paths += [f"/v1/endpoints/{dead['id']}/{what}" for what in ("deliveries", "dead-letters")]
    before = [relay.get(path).json for path in paths]
    assert [remove(relay, table) for table in ("owed", "dead-letters", "gates")] == [1, 1, 2]
    assert rebuild.main() == 0
    told = capsys.readouterr().out
    assert "Went through the history of 2 endpoints.\n" in told
    assert "Made again: 2 gates, 1 owed row, 1 dead letter.\n" in told
    assert "Left alone" not in told
    assert [relay.get(path).json for path in paths] == before


def test_what_stays_unexplained_is_told() -> None:
    told = rebuild.said(Rebuilt(1, 0, 0, 1, 1, 0, 2))
    assert told.splitlines() == [
        "Went through the history of 1 endpoint.",
        "Made again: 0 gates, 0 owed rows, 0 dead letters.",
        "Put right: 1 owed row.",
        "Removed, as it had ended or moved on: 1 owed row.",
        "Left alone, as history knows nothing of it: 2 owed rows.",
    ]


def test_a_store_that_fails_is_told_in_a_sentence(
    relay: Relay, stopped: None, capsys: pytest.CaptureFixture[str]
) -> None:
    relay.endpoint()
    relay.drop_table("history")
    assert rebuild.main() == 1
    assert capsys.readouterr().err.startswith("The rebuild did not come to its end: ")


def test_it_refuses_to_run_while_nobody_says_that_senders_are_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["rebuild"])
    with pytest.raises(SystemExit):
        rebuild.main()
    assert "--senders-are-stopped" in capsys.readouterr().err
