"""The stand-ins of chat platforms, held to what the platforms document: Relay's tests can only trust that."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.receiver import Receiver

TELEGRAM = "/telegram/bot123456789:AAstand-in-credential_0123456789abc/sendMessage"
DISCORD = "/discord/api/v10/webhooks/1234567890/stand-in-credential_0123456789"
SLACK = "/slack/services/T01ABCDEF/B01ABCDEF/standincredential0123"
ANSWERS: dict[str, tuple[str, object, int, str]] = {
    "Telegram takes 4,096": (TELEGRAM, {"chat_id": -5, "text": "x" * 4_096}, 200, '"ok": true'),
    "Telegram takes a name": (TELEGRAM, {"chat_id": "@name", "text": "x"}, 200, '"ok": true'),
    "Telegram refuses 4,097": (TELEGRAM, {"chat_id": 5, "text": "x" * 4_097}, 400, "message is too long"),
    "Telegram counts an emoji twice": (TELEGRAM, {"chat_id": 5, "text": "😀" * 2_049}, 400, "too long"),
    "Telegram refuses nothing": (TELEGRAM, {"chat_id": 5, "text": " \n"}, 400, "text is empty"),
    "Telegram knows its chats": (TELEGRAM, {"chat_id": "name", "text": "x"}, 400, "chat not found"),
    "Telegram knows its bots": ("/telegram/bot1:short/sendMessage", {}, 401, "Unauthorized"),
    "Telegram knows its methods": ("/telegram/bot1:short/getMe", {}, 404, "Not Found"),
    "Discord takes 2,000": (DISCORD, {"content": "x" * 2_000}, 204, ""),
    "Discord refuses 2,001": (DISCORD, {"content": "x" * 2_001}, 400, "50035"),
    "Discord refuses 11 embeds": (DISCORD, {"content": "x", "embeds": [{}] * 11}, 400, "50035"),
    "Discord refuses nothing": (DISCORD, {"content": ""}, 400, "50006"),
    "Discord knows its webhooks": ("/discord/api/v10/webhooks/1/short", {"content": "x"}, 404, "10015"),
    "Slack takes a text": (SLACK, {"text": "x"}, 200, "ok"),
    "Slack refuses nothing": (SLACK, {}, 400, "no_text"),
    "Slack refuses what is no JSON object": (SLACK, ["x"], 400, "invalid_payload"),
    "Slack knows its webhooks": ("/slack/services/T1/B1/short", {"text": "x"}, 404, "no_service"),
}


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def posted(receiver: Receiver, path: str, value: object) -> httpx.Response:
    with httpx.Client(timeout=10, trust_env=False) as client:
        return client.post(receiver.url(path), json=value)


@pytest.mark.parametrize("name", ANSWERS)
def test_each_answers_as_its_platform_does(receiver: Receiver, name: str) -> None:
    path, value, status, said = ANSWERS[name]
    answer = posted(receiver, path, value)
    assert (answer.status_code, said in answer.text) == (status, True), answer.text


@pytest.mark.parametrize(
    "key, path, value",
    [
        ("telegram/-5", TELEGRAM, {"chat_id": -5, "text": "x"}),
        ("discord/1234567890", DISCORD, {"content": "x"}),
        ("slack/T01ABCDEF/B01ABCDEF", SLACK, {"text": "x"}),
    ],
)
def test_each_can_be_scripted_by_its_chat(receiver: Receiver, key: str, path: str, value: Any) -> None:  # noqa: ANN401 - JSON
    receiver.script(key, {"status": 429, "body": json.dumps({"retry_after": 1})}, {"status": 200})
    assert [posted(receiver, path, value).status_code for _ in range(2)] == [429, 200]
    receiver.reset()
