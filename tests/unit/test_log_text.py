"""A log line for a person: one line that says exactly its keys, whatever their values hold."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.telemetry import as_text

NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1).filter(
    lambda name: name not in {"timestamp", "level", "message", "location", "service", "stack_trace"}
)
VALUES = st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.lists(st.text(), max_size=3))
PAIR = re.compile(r' ([a-z_]+)=("(?:[^"\\]|\\.)*"|[^ "=\\]+)')
AT = "2026-11-30T21:49:30.002+00:00"


def test_it_begins_with_when_how_bad_and_what() -> None:
    line = {
        "level": "INFO",
        "location": "a:1",
        "message": "delivery.attempted",
        "timestamp": AT,
        "status": 200,
    }
    assert as_text(line) == f"{AT} INFO    delivery.attempted status=200"


def test_what_could_be_taken_for_another_line_or_key_is_quoted() -> None:
    line = {
        "timestamp": AT,
        "level": "ERROR",
        "message": "a\nb",
        "fault": 'x outcome=success\r\n"\x1b[31m\u2028',
    }
    assert as_text(line) == (f'{AT} ERROR   "a\\nb" fault="x outcome=success\\r\\n\\"\\u001b[31m\\u2028"')


@given(st.dictionaries(NAMES, VALUES, max_size=6), st.text())
def test_it_is_one_line_of_printable_ascii_that_says_these_keys_and_no_others(
    told: dict[str, object], message: str
) -> None:
    text = as_text({"timestamp": AT, "level": "INFO", "message": message, **told})
    assert re.fullmatch("[ -~]+", text)
    lead = f"{AT} INFO    "
    rest = text.removeprefix(lead)
    said, end = json.JSONDecoder().raw_decode(rest) if rest.startswith('"') else (message, len(message))
    assert said == message
    pairs = PAIR.findall(rest[end:])
    assert "".join(f" {name}={value}" for name, value in pairs) == rest[end:]
    read = {name: json.loads(value) if value.startswith('"') else value for name, value in pairs}
    assert read == {name: each if isinstance(each, str) else dumped(each) for name, each in told.items()}


def dumped(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
