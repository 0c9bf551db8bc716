"""An attempt's row of history: what it is written as, what that costs, and how older ones are read."""

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.adapters.aws_limits.dynamodb_values import item_size
from chalicelib.adapters.dynamodb import keys, render, rows
from chalicelib.domain import request as requests
from chalicelib.domain.chat import message
from chalicelib.domain.chat.platform import OFFICIAL
from chalicelib.domain.delivery import Attempt
from chalicelib.domain.outcome import Outcome
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import IDENTITY, SignatureForm
from tests.unit.domain.chats import CREDENTIALS, chat
from tests.unit.domain.examples import (
    DELIVERY_ID,
    ENDPOINT_ID,
    EVENT_ID,
    OTHER_SECRET,
    RECEIVED_MS,
    RECEIVED_S,
    SECRET,
    endpoint,
    event,
    owed,
)

TENANT = "tn_019a7afd-1e00-7bbb-bbbb-bbbbbbbbbbbb"
WRITE_UNIT = 1_024
URL = "https://hooks.example.com/v2/accounts/019a7afd/incoming/webhooks?source=relay"
PLAIN = Attempt(
    DELIVERY_ID,
    0,
    1,
    EVENT_ID,
    Outcome.SUCCESS,
    RECEIVED_MS + 42,
    200,
    response=b'{"ok":true}',
    queue_ms=42,
    connect_ms=80,
    first_byte_ms=120,
    total_ms=121,
    processing_ms=9,
    tls_ms=50,
)


def sent(form: SignatureForm, *secrets: Secret, custom: int = 0) -> Attempt:
    """Give the same attempt with what is kept of its request."""
    to = endpoint(
        url=URL, signature=form, headers=tuple((f"X-Header-{n}", Secret("v" * 40)) for n in range(custom))
    )
    request = requests.build(to, event(), owed(), secrets, RECEIVED_S)
    return replace(PLAIN, sent=requests.kept(to, request))


def record(attempt: Attempt) -> dict[str, Any]:
    """Write a row as it is stored, with its key."""
    key = keys.attempt(TENANT, ENDPOINT_ID, (attempt.delivery_id, attempt.generation, attempt.number))
    return {**key.parts, **rows.attempt_row(attempt)}


def size(attempt: Attempt) -> int:
    return item_size(render.attributes(record(attempt)))


def test_a_row_of_a_message_reads_as_it_was_written_and_has_no_credential() -> None:
    for transport, credential in CREDENTIALS.items():
        to = chat(transport)
        kept = requests.kept(to, message.build(to, event(), credential, OFFICIAL))
        attempt = replace(PLAIN, sent=kept)
        assert rows.attempt_of(record(attempt)) == attempt
        assert credential.reveal() not in str(record(attempt))


@pytest.mark.parametrize("form", IDENTITY)
def test_a_row_reads_as_it_was_written(form: SignatureForm) -> None:
    for attempt in (PLAIN, sent(form, SECRET), sent(form, SECRET, OTHER_SECRET, custom=3)):
        assert rows.attempt_of(record(attempt)) == attempt


def test_what_is_kept_of_a_request_makes_no_row_a_write_unit_dearer_in_the_common_case() -> None:
    """The bytes of these rows stand in docs/decisions/0017: they are the reason for what is kept."""
    common = sent(SignatureForm.RELAY, SECRET)
    assert (size(PLAIN), size(common)) == (266, 444)
    costly = sent(SignatureForm.RELAY, SECRET, OTHER_SECRET, custom=3)
    assert size(costly) == 545
    for attempt in (common, costly):
        assert size(replace(attempt, response=b"x" * 400)) <= WRITE_UNIT


def test_a_row_from_before_requests_were_kept_reads_as_one_without() -> None:
    old = record(PLAIN)
    old["took_ms"] = old["took_ms"][:4]
    assert rows.attempt_of(old) == replace(PLAIN, processing_ms=0, tls_ms=0)


def test_a_custom_header_s_value_is_in_no_row() -> None:
    assert "v" * 40 not in str(record(sent(SignatureForm.STANDARD, SECRET, custom=2)))
