"""Redirects: which are followed, by which request, and what is said of those that are not."""

from dataclasses import replace
from urllib.parse import quote, urldefrag, urljoin, urlsplit

from chalicelib.adapters.http.fault import TransportFault
from chalicelib.domain.display import displayed_url
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Request, signed_anew
from chalicelib.domain.target import DEFAULT_PORTS

REDIRECTS_MAX = 3
_FOLLOWED = frozenset({307, 308})
_REDIRECTIONS = range(300, 400)
_SHOWN_MAX = 300
_RULE = "only 307 and 308 are followed, three times at most, and never from https to http"
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))


def next_hop(request: Request, reply: Reply, now_s: int) -> Request | None:
    """Give the request that follows a redirect, signed anew (now in Unix seconds); None: it is not followed.

    Raises TransportFault when it leads to what is no URL. Where to is checked as every request is.
    """
    location = reply.header("location")
    if reply.status not in _FOLLOWED or not location:
        return None
    url = _leads_to(request.url, location)
    if request.url.startswith("https:") and not url.startswith("https:"):
        return None
    return signed_anew(_taken_along(request, url), now_s)


def told(request: Request, reply: Reply) -> Reply:
    """Name in an answer where its redirect leads, in display form, as nobody has followed it."""
    location = reply.header("location")
    if reply.status not in _REDIRECTIONS or not location:
        return reply
    try:
        where = displayed_url(_leads_to(request.url, location))
    except TransportFault:
        where = "what is no URL"
    shown = where if len(where) <= _SHOWN_MAX else where[:_SHOWN_MAX] + "…"
    words = f"redirects to {shown}; {_RULE}"
    return replace(reply, detail=f"{reply.detail}; {words}" if reply.detail else words)


def _leads_to(url: str, location: str) -> str:
    """Say where a redirect leads, odd bytes percent-encoded; raises TransportFault when that is no URL."""
    try:
        return urldefrag(urljoin(url, quote(location.encode("latin-1"), _VISIBLE))).url
    except ValueError as error:
        raise TransportFault(Fault.REFUSED, "the redirect leads to what is no URL") from error


def _taken_along(request: Request, url: str) -> Request:
    """Give a request with another URL: to another origin without its owner's headers and authentication."""
    if _origin(request.url) == _origin(url):
        return replace(request, url=url)
    return replace(request, url=url, custom=(), auth=None)


def _origin(url: str) -> tuple[str, str | None, int | None] | None:
    """Give a URL's scheme, host and port, or None when its port is none: it will be refused."""
    parts = urlsplit(url)
    try:
        return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
