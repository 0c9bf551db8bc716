"""docs/producers.md shows the outbox that is tested, and its numbers are those that are kept."""

import json
import re
from typing import Any

from chalicelib.application.ingest import IDEMPOTENCY_SECONDS
from chalicelib.settings import Settings
from chalicelib.wire.bodies import BatchBody
from infra.package import ROOT

PAGE = (ROOT / "docs/producers.md").read_text(encoding="utf-8")
OUTBOX = (ROOT / "docs/examples/outbox.py").read_text(encoding="utf-8")


def test_the_code_it_shows_stands_in_the_file_that_is_run() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert shown in OUTBOX


def test_keys_are_remembered_for_as_long_as_it_says_and_the_outbox_trusts_them_for_less() -> None:
    hours = IDEMPOTENCY_SECONDS // 3_600
    assert f"remembered {hours} hours" in PAGE
    assert f"within {hours} hours of the event's acceptance" in PAGE
    assert f"SURE_FOR_S = {hours - 1} * 3600" in OUTBOX


def test_the_batch_it_shows_is_one() -> None:
    (shown,) = (
        each for each in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL) if "events" in json.loads(each)
    )
    assert len(BatchBody.model_validate_json(shown).events) == 2


def test_the_bounds_it_names_are_the_defaults() -> None:
    limits: dict[str, Any] = {name: field.default for name, field in Settings.model_fields.items()}
    assert f"at most {limits['payload_max_bytes']:,} bytes" in PAGE
    assert f"more than {limits['inline_fanout_max']} endpoints" in PAGE
    batch = f"up to {limits['batch_max_events']} events in at most {limits['batch_max_bytes'] // 2**20} MiB"
    assert batch in PAGE
