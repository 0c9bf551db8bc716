"""Chats on the whole stack: each platform stood in for, with the answers it documents."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.customer import Customer, Record, moment
from tests.e2e.stack import PLATFORMS

HTML_1015 = "<html><head><title>Access denied</title></head><body>error code: 1015</body></html>"
CREDENTIALS = {
    "telegram": "987654321:AAe2e-telegram-credential_0123456789",
    "discord": "e2e-discord-credential_0123456789abcdefghijklmnopqrstuvwxyz",
    "slack": "e2eslackcredential0123456789",
}
WRITTEN_IN = {"telegram": "text", "discord": "content", "slack": "text"}
GONE_FOR_GOOD: dict[str, Record] = {
    "telegram": {
        "status": 403,
        "body": '{"ok":false,"error_code":403,"description":"Forbidden"}',
    },
    "discord": {"status": 404, "body": '{"message":"Unknown Webhook","code":10015}'},
    "slack": {"status": 404, "body": "channel_not_found"},
}
EACH = pytest.mark.parametrize("platform", PLATFORMS)


@dataclass(frozen=True, slots=True)
class Chat:
    """A registered chat, the one event type it takes, and the path its messages are posted to."""

    id: str
    type: str
    path: str


class Chats:
    """Registers chats, each with a number of its own."""

    def __init__(self, customer: Customer) -> None:
        self.customer = customer
        self._made = 0

    def made(self, platform: str, *answers: Record, **fields: object) -> Chat:
        """Register a chat that is answered so, or as its platform usually does."""
        self._made += 1
        number = 700_000_000_000 + self._made
        credential = CREDENTIALS[platform]
        address, path = {
            "telegram": (f"-{number}", f"bot{credential}/sendMessage"),
            "discord": (f"{number}", f"api/v10/webhooks/{number}/{credential}"),
            "slack": (f"T{number}/B1E2E", f"services/T{number}/B1E2E/{credential}"),
        }[platform]
        if answers:
            body = {"key": f"{platform}/{address}", "answers": list(answers)}
            self.customer.receiver.post("/script", json=body).raise_for_status()
        event_type = f"chats.{platform}.n{self._made}"
        given = {"transport": platform, "url": f"{platform}://{address}", "secret": credential}
        answer = self.customer.register({**given, "event_types": [event_type], **fields})
        assert answer.status_code == 201, answer.text
        return Chat(answer.json()["id"], event_type, f"/{platform}/{path}")

    def received(self, chat: Chat) -> list[Record]:
        """Give what the stand-in got for a chat."""
        return [
            each for each in self.customer.received(path=chat.path) if chat.type in (each["body_text"] or "")
        ]


@pytest.fixture(scope="session")
def chats(customer: Customer) -> Chats:
    return Chats(customer)


def attempts(customer: Customer, delivery_id: str, times: int) -> list[Any]:
    return list(customer.tried(delivery_id, times, within_s=90)["attempts"])


@EACH
def test_an_event_arrives_with_its_type_first(customer: Customer, chats: Chats, platform: str) -> None:
    chat = chats.made(platform)
    posted = customer.post(chat.type, '{"note":"😊 & <b>"}'.encode())
    customer.ended(posted.delivery_id)
    (got,) = chats.received(chat)
    text = json.loads(got["body_text"])[WRITTEN_IN[platform]]
    assert text.startswith(f"{chat.type}\n\n")
    assert "😊" in text
    (attempt,) = attempts(customer, posted.delivery_id, 1)
    assert (attempt["outcome"], attempt["status"]) == ("success", 204 if platform == "discord" else 200)


@EACH
def test_f137_f140_a_payload_of_any_length_is_a_message_its_platform_takes(
    customer: Customer, chats: Chats, platform: str
) -> None:
    chat = chats.made(platform)
    posted = customer.post(chat.type, "😀_&".encode() * 30_000, "text/plain; charset=utf-8")
    assert customer.ended(posted.delivery_id)["status"] == "succeeded"


@EACH
def test_a_permanent_error_is_terminal(customer: Customer, chats: Chats, platform: str) -> None:
    chat = chats.made(platform, GONE_FOR_GOOD[platform])
    posted = customer.post(chat.type)
    ended = customer.ended(posted.delivery_id)
    assert (ended["status"], len(ended["attempts"])) == ("dead", 1)
    assert CREDENTIALS[platform] not in json.dumps(ended)


def test_f135_telegrams_wait_in_the_body_is_obeyed(customer: Customer, chats: Chats) -> None:
    body = json.dumps({"ok": False, "error_code": 429, "parameters": {"retry_after": 4}})
    taken = {"status": 200, "body": '{"ok":true}'}
    chat = chats.made("telegram", {"status": 429, "body": body}, taken)
    posted = customer.post(chat.type)
    customer.ended(posted.delivery_id, within_s=90)
    first, second = chats.received(chat)
    assert second["received_at"] - first["answered_at"] >= 4_000
    assert [each["outcome"] for each in attempts(customer, posted.delivery_id, 2)] == ["deferred", "success"]


def test_f139_discords_fraction_is_rounded_up(customer: Customer, chats: Chats) -> None:
    body = json.dumps({"message": "You are being rate limited.", "retry_after": 1.529, "global": True})
    chat = chats.made("discord", {"status": 429, "body": body}, {"status": 204})
    posted = customer.post(chat.type)
    customer.ended(posted.delivery_id, within_s=90)
    first, second = chats.received(chat)
    assert second["received_at"] - first["answered_at"] >= 2_000


@pytest.mark.parametrize("body", [HTML_1015, '{"message": "blocked", "code": 0}'], ids=["page", "code 0"])
def test_f139_a_ban_without_a_wait_pauses_for_minutes(customer: Customer, chats: Chats, body: str) -> None:
    chat = chats.made("discord", {"status": 429, "body": body})
    posted = customer.post(chat.type)
    (attempt,) = attempts(customer, posted.delivery_id, 1)
    assert attempt["outcome"] == "deferred"
    assert moment(customer.delivery(posted.delivery_id)["next_attempt_at"]) - moment(attempt["at"]) >= 300


def test_slacks_wait_in_its_header_is_obeyed(customer: Customer, chats: Chats) -> None:
    limited = {"status": 429, "body": "rate_limited", "headers": {"Retry-After": "3"}}
    chat = chats.made("slack", limited, {"status": 200, "body": "ok"})
    posted = customer.post(chat.type)
    customer.ended(posted.delivery_id, within_s=90)
    first, second = chats.received(chat)
    assert second["received_at"] - first["answered_at"] >= 3_000
