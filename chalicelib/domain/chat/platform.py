"""The platforms: one row each says how a chat is addressed, what it can take, and how a message is built.

Whatever is the same for every chat stands elsewhere, and is driven by these rows.
Source: docs/decisions/0022.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from chalicelib.domain.endpoint import Limits, Transport
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret

_SUPPRESS_EMBEDS = 4
_MARKDOWN = r"\*_~`|<>[]()#"


@dataclass(frozen=True, slots=True)
class Platform:
    """What Relay knows of a platform.

    `address` is the pattern of an endpoint's URL, `credential` that of its secret, each with words for its
    owner; `text_max` counts UTF-16 code units. `path` takes address and credential,
    `body` address and text.
    """

    address: re.Pattern[str]
    address_is: str
    credential: re.Pattern[str]
    credential_is: str
    placeholder: str
    text_max: int
    limits: Limits
    path: Callable[[re.Match[str], str], str]
    body: Callable[[re.Match[str], str], Mapping[str, object]]
    escapes: Mapping[str, str] = field(default_factory=dict)


def _telegram_body(of: re.Match[str], text: str) -> dict[str, object]:
    chat = of["name"] or int(of["number"])
    return {"chat_id": chat, "text": text, "link_preview_options": {"is_disabled": True}}


def _discord_body(_: re.Match[str], text: str) -> dict[str, object]:
    return {"content": text, "allowed_mentions": {"parse": []}, "flags": _SUPPRESS_EMBEDS}


def _slack_body(_: re.Match[str], text: str) -> dict[str, object]:
    return {"text": text, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}


PLATFORMS: Mapping[Transport, Platform] = MappingProxyType(
    {
        Transport.TELEGRAM: Platform(
            re.compile(
                r"telegram://(?:(?P<number>-?[1-9][0-9]{0,15})|(?P<name>@[A-Za-z][A-Za-z0-9_]{3,31}))",
                re.ASCII,
            ),
            "telegram://<chat id>: a number such as telegram://-1001234567890, or a public name with its @",
            re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{30,64}", re.ASCII),
            "the bot's token as BotFather gave it, such as 123456789:AA…",
            "BOT_TOKEN",
            4_096,
            Limits(1, 1),
            lambda _, credential: f"/bot{credential}/sendMessage",
            _telegram_body,
        ),
        Transport.DISCORD: Platform(
            re.compile(r"discord://(?P<webhook>[1-9][0-9]{5,19})", re.ASCII),
            "discord://<webhook id>: the number in the webhook's URL, such as discord://1234567890123456789",
            re.compile(r"[A-Za-z0-9_-]{20,128}", re.ASCII),
            "the webhook's token: the last part of the webhook's URL",
            "WEBHOOK_TOKEN",
            2_000,
            Limits(2, 1),
            lambda of, credential: f"/api/v10/webhooks/{of['webhook']}/{credential}",
            _discord_body,
            {character: f"\\{character}" for character in _MARKDOWN},
        ),
        Transport.SLACK: Platform(
            re.compile(r"slack://(?P<workspace>[TE][A-Z0-9]{2,20})/(?P<webhook>B[A-Z0-9]{2,20})", re.ASCII),
            "slack://<workspace>/<webhook>: from the webhook's URL, such as slack://T01234567/B01234567",
            re.compile(r"[A-Za-z0-9]{16,64}", re.ASCII),
            "the webhook's secret: the last part of the webhook's URL",
            "WEBHOOK_SECRET",
            4_000,
            Limits(1, 1),
            lambda of, credential: f"/services/{of['workspace']}/{of['webhook']}/{credential}",
            _slack_body,
            {"&": "&amp;", "<": "&lt;", ">": "&gt;"},
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Origins:
    """Where each platform is reached: scheme, host, perhaps port and the beginning of a path."""

    telegram: str = "https://api.telegram.org"
    discord: str = "https://discord.com"
    slack: str = "https://hooks.slack.com"

    def of(self, transport: Transport) -> str:
        """Give the origin of a chat's platform."""
        return str(getattr(self, transport.value))


OFFICIAL = Origins()


def is_chat(transport: Transport) -> bool:
    """Say whether an endpoint of a transport is a chat."""
    return transport in PLATFORMS


def transport_of(url: str) -> Transport | None:
    """Say which platform's address a URL is in its normal form, None for no chat's."""
    return next((each for each, row in PLATFORMS.items() if row.address.fullmatch(url)), None)


def address(transport: Transport, url: str) -> str:
    """Give a chat's address in its normal form; raises RelayError naming the pattern."""
    scheme, separator, rest = url.partition("://")
    normal = scheme.lower() + separator + rest
    if not PLATFORMS[transport].address.fullmatch(normal):
        raise RelayError(
            ErrorCode.URL_INVALID,
            f"The URL is not the address of a {transport.value} endpoint.",
            field="url",
            expected=PLATFORMS[transport].address_is,
        )
    return normal


def credential(transport: Transport, given: str) -> Secret:
    """Take a chat's credential; raises RelayError, which never repeats it."""
    row = PLATFORMS[transport]
    if not row.credential.fullmatch(given):
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            f"`secret` is not the credential of a {transport.value} endpoint.",
            field="secret",
            expected=row.credential_is,
        )
    return Secret(given)


def built_url(transport: Transport, url: str, origins: Origins, with_: Secret | None = None) -> str:
    """Build the URL that messages to an address are posted to; without a credential it has a placeholder."""
    row = PLATFORMS[transport]
    path = row.path(_read(row, url), with_.reveal() if with_ else row.placeholder)
    return origins.of(transport).rstrip("/") + path


def body(transport: Transport, url: str, text: str) -> Mapping[str, object]:
    """Build what is posted to an address, as a value to be written as JSON."""
    row = PLATFORMS[transport]
    return row.body(_read(row, url), text)


def _read(row: Platform, url: str) -> re.Match[str]:
    found = row.address.fullmatch(url)
    if found is None:
        raise ValueError("a stored address is not in its normal form")
    return found
