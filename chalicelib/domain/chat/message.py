"""The request of a message: built from an endpoint and an event, and again from what history keeps of it.

Never signed, and its credential stands in its URL: that URL is sent to, and nowhere stored or shown.
"""

import json

from chalicelib.domain.chat import platform, text
from chalicelib.domain.chat.platform import PLATFORMS, Origins
from chalicelib.domain.endpoint import Endpoint, Transport
from chalicelib.domain.event import Event
from chalicelib.domain.request import VERSION, Request
from chalicelib.domain.secret import Secret
from chalicelib.domain.sent import Sent

_MEDIA_TYPE = "application/json; charset=utf-8"


def build(endpoint: Endpoint, event: Event, credential: Secret, origins: Origins) -> Request:
    """Build the request that tells a chat of an event."""
    written = body(endpoint.transport, endpoint.url, event)
    url = platform.built_url(endpoint.transport, endpoint.url, origins, credential)
    headers = _headers(written, f"Relay/{VERSION}")
    return Request(url, headers, written, signed_with=(credential,), address=endpoint.url)


def body(transport: Transport, url: str, event: Event) -> bytes:
    """Write what the chat at an address is posted about an event."""
    row = PLATFORMS[transport]
    message = text.rendered(event, row.escapes, row.text_max)
    return json.dumps(platform.body(transport, url, message), ensure_ascii=False).encode()


def again(sent: Sent, written: bytes) -> tuple[tuple[str, str], ...]:
    """Give the headers of a message of the past, from what was kept of it and its body."""
    return _headers(written, sent.agent)


def _headers(written: bytes, agent: str) -> tuple[tuple[str, str], ...]:
    return (
        ("Content-Type", _MEDIA_TYPE),
        ("Content-Length", str(len(written))),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),
        ("User-Agent", agent),
    )
