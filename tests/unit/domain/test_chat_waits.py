"""The waits that platforms ask for in bodies and headers, and what becomes of answers that ask for none."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.chat.waits import NO_HINT_S, heard
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.outcome import DeathReason, Outcome, Reply, Verdict, judge
from tests.unit.domain.chats import CHATS

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
MINUTES = NO_HINT_S
TELEGRAM, DISCORD, SLACK = CHATS
F135 = {"ok": False, "error_code": 429, "parameters": {"retry_after": 41}}
HTML_1015 = b"<html><title>Access denied | error code: 1015</title></html>"
WAITS: dict[str, tuple[Transport, bytes | dict[str, object], str | None, int]] = {
    "Telegram in its body": (TELEGRAM, F135, None, 41),
    "Telegram in both": (TELEGRAM, F135, "40", 41),
    "Telegram without parameters": (TELEGRAM, {"ok": False, "error_code": 429}, None, MINUTES),
    "Telegram with odd parameters": (TELEGRAM, {"parameters": [41]}, None, MINUTES),
    "Discord with a fraction, globally": (DISCORD, {"retry_after": 0.529, "global": True}, None, 1),
    "Discord with a longer fraction": (DISCORD, {"retry_after": 64.57, "global": False}, "65", 65),
    "Discord in its header alone": (DISCORD, b"", "65", 65),
    "Discord with a fraction in its header": (DISCORD, b"", "1.2", 2),
    "Discord in milliseconds": (DISCORD, {"retry_after": 64_570}, "65", 65),
    "Discord in milliseconds below a second": (DISCORD, {"retry_after": 529}, "1", 1),
    "Discord with two seconds, not milliseconds": (DISCORD, {"retry_after": 2}, "1", 2),
    "Discord as text": (DISCORD, {"retry_after": "3.1"}, None, 4),
    "Discord's HTML page 1015": (DISCORD, HTML_1015, None, MINUTES),
    "Discord with code 0 and no wait": (DISCORD, {"message": "blocked", "code": 0}, None, MINUTES),
    "Discord with a wait that is none": (DISCORD, {"retry_after": None}, None, MINUTES),
    "Discord with a truth": (DISCORD, {"retry_after": True}, None, MINUTES),
    "Discord with a list": (DISCORD, b"[1, 2]", None, MINUTES),
    "Discord with a negative wait": (DISCORD, {"retry_after": -1}, None, MINUTES),
    "Discord with no number": (DISCORD, b'{"retry_after": NaN}', None, MINUTES),
    "Discord with more than any number": (DISCORD, b'{"retry_after": 1e400}', None, 3_600_000),
    "Slack in its header": (SLACK, b"rate_limited", "30", 30),
    "Slack with a date": (SLACK, b"", "Sat, 31 Jan 2026 09:31:00 GMT", 60),
    "Slack without a hint": (SLACK, b"rate_limited", None, MINUTES),
    "Slack with a header that is none": (SLACK, b"", "soon", MINUTES),
    "a body that is cut": (TELEGRAM, json.dumps(F135).encode()[:60], None, MINUTES),
    "a body that nests without end": (DISCORD, b"[" * 100_000, None, MINUTES),
}
TERMINAL: dict[str, tuple[Transport, int, bytes]] = {
    "Telegram, a chat that is not there": (
        TELEGRAM,
        400,
        b'{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}',
    ),
    "Telegram, a wrong token": (TELEGRAM, 401, b'{"ok":false,"error_code":401,"description":"Unauthorized"}'),
    "Telegram, blocked": (
        TELEGRAM,
        403,
        b'{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}',
    ),
    "Telegram, an unknown bot": (TELEGRAM, 404, b'{"ok":false,"error_code":404,"description":"Not Found"}'),
    "Discord, unknown webhook": (DISCORD, 404, b'{"message":"Unknown Webhook","code":10015}'),
    "Discord, a wrong token": (DISCORD, 401, b'{"message":"Invalid Webhook Token","code":50027}'),
    "Discord, a form it refuses": (DISCORD, 400, b'{"code":50035,"message":"Invalid Form Body"}'),
    "Slack, a wrong payload": (SLACK, 400, b"invalid_payload"),
    "Slack, prohibited": (SLACK, 403, b"action_prohibited"),
    "Slack, no channel": (SLACK, 404, b"channel_not_found"),
}


def judged(transport: Transport, reply: Reply) -> Verdict:
    return judge(heard(transport, reply, NOW), NOW)


def too_many(body: bytes | dict[str, object], header: str | None) -> Reply:
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Reply(429, headers=(("retry-after", header),) if header else (), body=said)


@pytest.mark.parametrize("name", WAITS)
def test_f135_f139_a_wait_is_obeyed_wherever_it_is_said_and_never_cut_short(name: str) -> None:
    transport, body, header, seconds = WAITS[name]
    verdict = judged(transport, too_many(body, header))
    assert (verdict.outcome, verdict.retry_after) == (Outcome.DEFERRED, timedelta(seconds=seconds))
    assert verdict.holds_endpoint


@given(st.floats(0, 3_600), st.sampled_from([TELEGRAM, DISCORD]))
def test_f139_a_fraction_is_rounded_up_never_down(seconds: float, transport: Transport) -> None:
    body = {"retry_after": seconds, "parameters": {"retry_after": seconds}}
    asked = judged(transport, too_many(body, None)).retry_after
    assert asked is not None
    assert 0 <= asked.total_seconds() - seconds <= 1


@pytest.mark.parametrize("name", TERMINAL)
def test_f140_permanent_errors_of_platforms_are_terminal(name: str) -> None:
    transport, status, body = TERMINAL[name]
    verdict = judged(transport, Reply(status, body=body))
    assert (verdict.outcome, verdict.death) == (Outcome.PERMANENT, DeathReason.PERMANENT_FAILURE)
    assert not verdict.disables_endpoint


def test_an_archived_slack_channel_disables_its_endpoint() -> None:
    assert judged(SLACK, Reply(410, body=b"channel_is_archived")).disables_endpoint


@pytest.mark.parametrize("transport, status", [(TELEGRAM, 200), (DISCORD, 204), (SLACK, 200)])
def test_f140_what_platforms_answer_to_a_message_taken_is_a_success(
    transport: Transport, status: int
) -> None:
    assert judged(transport, Reply(status)).outcome is Outcome.SUCCESS


@pytest.mark.parametrize("transport", CHATS)
@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_platform_that_fails_is_tried_again(transport: Transport, status: int) -> None:
    assert judged(transport, Reply(status, body=b'{"retry_after": 9}')).outcome is Outcome.RETRYABLE


def test_of_other_transports_only_the_header_counts() -> None:
    verdict = judged(Transport.HTTP, too_many({"retry_after": 41, **F135}, None))
    assert (verdict.outcome, verdict.retry_after) == (Outcome.RETRYABLE, None)
