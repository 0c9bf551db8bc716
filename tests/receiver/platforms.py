"""Stand-ins of chat platforms: what each documents to accept, to refuse and to answer. Nothing is kept.

A script under `telegram/<chat>`, `discord/<webhook>` or `slack/<workspace>/<webhook>` is played instead.
Sources: core.telegram.org/bots/api, discord.com/developers/docs/resources/webhook, docs.slack.dev/messaging.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.receiver.answer import Answer, as_json, build, plain
from tests.receiver.behaviours import Treatment, play
from tests.receiver.exchange import Exchange

Message = dict[str, Any]
_TELEGRAM = re.compile(r"bot(?P<token>[^/]+)/sendMessage")
_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]{30,}", re.ASCII)
_DISCORD = re.compile(r"api/v10/webhooks/(?P<webhook>[0-9]+)/(?P<token>[A-Za-z0-9_-]{20,})", re.ASCII)
_SLACK = re.compile(r"services/(?P<chat>T[A-Z0-9]+/B[A-Z0-9]+)/(?P<secret>[A-Za-z0-9]{16,})", re.ASCII)
_TELEGRAM_MAX, _DISCORD_MAX, _EMBEDS_MAX = 4_096, 2_000, 10


def telegram(exchange: Exchange) -> Treatment:
    """Take sendMessage as the Bot API does: 200 with the message, or an error with its description."""
    path, message = _TELEGRAM.fullmatch(exchange.target.rest), _message(exchange)
    if path is None:
        return _telegram_error(404, "Not Found")
    if not _TOKEN.fullmatch(path["token"]):
        return _telegram_error(401, "Unauthorized")
    if message is None:
        return _telegram_error(400, "Bad Request: can't parse JSON object")
    return _scripted(exchange, f"telegram/{message.get('chat_id')}", lambda: _sent(message))


def _sent(message: Message) -> Answer:
    chat, text = message.get("chat_id"), message.get("text")
    if isinstance(chat, bool) or not (isinstance(chat, int) or str(chat).startswith("@")):
        return _telegram_error(400, "Bad Request: chat not found")
    if not isinstance(text, str) or not text.strip():
        return _telegram_error(400, "Bad Request: message text is empty")
    if _utf16(text) > _TELEGRAM_MAX:
        return _telegram_error(400, "Bad Request: message is too long")
    if "parse_mode" in message:
        return _telegram_error(400, "Bad Request: can't parse entities")
    return as_json(200, {"ok": True, "result": {"message_id": 1, "chat": {"id": chat}, "text": text}})


def _telegram_error(status: int, description: str) -> Answer:
    return as_json(status, {"ok": False, "error_code": status, "description": description})


def discord(exchange: Exchange) -> Treatment:
    """Take a webhook's execution as Discord does: 204 with nothing, or an error with its code."""
    path, message = _DISCORD.fullmatch(exchange.target.rest), _message(exchange)
    if path is None:
        return as_json(404, {"message": "Unknown Webhook", "code": 10015})
    return _scripted(exchange, f"discord/{path['webhook']}", lambda: _executed(message))


def _executed(message: Message | None) -> Answer:
    if message is None:
        return as_json(400, {"message": "The request body contains invalid JSON.", "code": 50109})
    content, embeds = message.get("content", ""), message.get("embeds", [])
    if not content and not embeds:
        return as_json(400, {"message": "Cannot send an empty message", "code": 50006})
    if not isinstance(content, str) or _utf16(content) > _DISCORD_MAX or len(embeds) > _EMBEDS_MAX:
        return as_json(400, {"message": "Invalid Form Body", "code": 50035})
    return build(204)


def slack(exchange: Exchange) -> Treatment:
    """Take an incoming webhook as Slack does: 200 `ok`, or a word for what is wrong."""
    path, message = _SLACK.fullmatch(exchange.target.rest), _message(exchange)
    if path is None:
        return plain(404, "no_service")
    return _scripted(exchange, f"slack/{path['chat']}", lambda: _posted(message))


def _posted(message: Message | None) -> Answer:
    if message is None:
        return plain(400, "invalid_payload")
    return plain(200, "ok") if message.get("text") else plain(400, "no_text")


def _scripted(exchange: Exchange, key: str, usually: Callable[[], Answer]) -> Treatment:
    script = exchange.site.scripts.get(key)
    return usually() if script is None else play(exchange, script.take())


def _message(exchange: Exchange) -> Message | None:
    request = exchange.request
    if request.method != "POST" or not request.headers.get("content-type", "").startswith("application/json"):
        return None
    try:
        message = json.loads(request.body)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
