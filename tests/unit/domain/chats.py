"""An endpoint of each platform with its credential, for the tests of chats."""

from typing import Any

from chalicelib.domain.chat.platform import PLATFORMS
from chalicelib.domain.endpoint import Endpoint, Transport
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import SignatureForm
from tests.unit.domain.examples import endpoint

CHATS = tuple(PLATFORMS)
ADDRESSES = {
    Transport.TELEGRAM: "telegram://-1001234567890",
    Transport.DISCORD: "discord://1234567890123456789",
    Transport.SLACK: "slack://T01ABCDEF/B01ABCDEF",
}
CREDENTIALS = {
    Transport.TELEGRAM: Secret("987654321:AAtelegram-credential_0123456789abc"),
    Transport.DISCORD: Secret("discord-credential_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"),
    Transport.SLACK: Secret("slackcredential0123456789"),
}
BUILT = {
    Transport.TELEGRAM: "https://api.telegram.org/bot{}/sendMessage",
    Transport.DISCORD: "https://discord.com/api/v10/webhooks/1234567890123456789/{}",
    Transport.SLACK: "https://hooks.slack.com/services/T01ABCDEF/B01ABCDEF/{}",
}
WRITTEN_IN = {Transport.TELEGRAM: "text", Transport.DISCORD: "content", Transport.SLACK: "text"}


def chat(transport: Transport, **changes: Any) -> Endpoint:  # noqa: ANN401 - any field, as in replace()
    """Make a chat that takes everything, with some fields changed."""
    return endpoint(transport=transport, url=ADDRESSES[transport], signature=SignatureForm.NONE, **changes)
