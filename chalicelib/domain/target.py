"""Where a request may go: the one policy over URLs and addresses.

Registration and every send use these functions alike. Nothing is resolved or connected here.
"""

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from chalicelib.domain.errors import ErrorCode, RelayError

URL_MAX = 2048
HOST_MAX = 253
DEFAULT_PORTS = {"https": 443, "http": 80}
_PRINTABLE = re.compile(r"[!-~]+", re.ASCII)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_LITERAL_V6 = re.compile(r"\[[^\[\]]*\](:[^\[\]]*)?")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_UNSAFE_IN_ASCII_HOST = re.compile(r"[^a-z0-9._-]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Policy:
    """What this installation lets requests go to; the defaults are those of production."""

    require_https: bool = True
    allow_private: bool = False
    allowed_ports: frozenset[int] | None = frozenset({443})


@dataclass(frozen=True, slots=True)
class Target:
    """A checked URL: lower-case scheme and A-label host, explicit port, path and query as given."""

    scheme: str
    host: str
    port: int
    path: str = field(repr=False)

    @property
    def authority(self) -> str:
        """Give the Host header's value: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if DEFAULT_PORTS[self.scheme] == self.port else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Give the normal form that is stored, compared and sent to."""
        return f"{self.scheme}://{self.authority}{self.path}"


def parse_target(url: str, policy: Policy) -> Target:
    """Check a URL against the syntax rules and the policy; raises RelayError naming the rule.

    Host names pass here and are checked again when they resolve; literal addresses are checked now.
    """
    if len(url) > URL_MAX:
        raise _bad(f"The URL has {len(url)} characters.", f"at most {URL_MAX} characters")
    parts = _split(url)
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS or (policy.require_https and scheme != "https"):
        raise _bad("The URL's scheme is not allowed.", "https" if policy.require_https else "https or http")
    port = _port(parts, scheme)
    if policy.allowed_ports is not None and port not in policy.allowed_ports:
        allowed = ", ".join(str(each) for each in sorted(policy.allowed_ports))
        raise _bad(f"Port {port} is not allowed.", f"one of the ports {allowed}")
    host = _host(parts)
    literal = _literal(host)
    if literal is not None and not address_allowed(literal, policy):
        raise not_allowed()
    path = parts.path or "/"
    return Target(scheme, host, port, path + (f"?{parts.query}" if "?" in url else ""))


def same_place(one: str, other: str) -> bool:
    """Say whether two URLs in normal form most likely mean one place: equal but for an end of `/` or `?`."""
    return one.removesuffix("?").rstrip("/") == other.removesuffix("?").rstrip("/")


def not_allowed() -> RelayError:
    """Make the one answer to a destination that is not public; it never names the address."""
    return RelayError(
        ErrorCode.DESTINATION_NOT_ALLOWED,
        "The URL leads to an address that requests may not be sent to.",
        field="url",
        expected="a public address",
    )


_V4_REFUSED = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24"
        " 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24"
        " 198.18.0.0/15"
        " 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
    ).split()
)
_V6_PUBLIC = IPv6Network("2000::/3")
_V6_REFUSED = tuple(
    IPv6Network(block) for block in "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20".split()
)


def address_allowed(address: str, policy: Policy) -> bool:
    """Say whether a resolved or literal address may be connected to.

    IPv4 by a list of what is refused, IPv6 by 2000::/3 less its special blocks; a zone id is
    refused. With the development switch every address is allowed.
    """
    if policy.allow_private:
        return True
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        if parsed.scope_id is not None or parsed not in _V6_PUBLIC:
            return False
        return not any(parsed in block for block in _V6_REFUSED)
    return _v4_allowed(parsed)


def _v4_allowed(address: IPv4Address) -> bool:
    return not any(address in block for block in _V4_REFUSED)


def _bad(detail: str, expected: str) -> RelayError:
    return RelayError(ErrorCode.URL_INVALID, detail, field="url", expected=expected)


def _split(url: str) -> SplitResult:
    if not url.isprintable() or " " in url or "\\" in url:
        raise _bad("The URL has control characters, blanks or backslashes.", "printable characters only")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _bad("The URL cannot be read.", "a URL such as https://example.com/hook") from error
    if not parts.netloc or not parts.hostname:
        raise _bad("The URL has no host.", "a URL such as https://example.com/hook")
    if "[" in parts.netloc and not _LITERAL_V6.fullmatch(parts.netloc):
        raise _bad("The URL has something beside its IPv6 address.", "an address such as [2606:4700::1111]")
    if "@" in parts.netloc:
        raise _bad("The URL has a user name or password.", "a URL without them; use custom headers")
    if "#" in url:
        raise _bad("The URL has a fragment.", "a URL without the part from # on")
    rest = parts.path + parts.query
    if rest and not _PRINTABLE.fullmatch(rest):
        raise _bad("The URL's path or query is not ASCII.", "other characters percent-encoded as UTF-8")
    return parts


def _port(parts: SplitResult, scheme: str) -> int:
    if parts.netloc.endswith(":"):
        raise _bad("The URL's port is empty.", "a port from 1 to 65535, or no colon")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port is None:
        return DEFAULT_PORTS[scheme]
    if port == 0 or not re.search(r":[0-9]{1,5}$", parts.netloc, re.ASCII):
        raise _bad("The URL's port is not valid.", "a port from 1 to 65535")
    return port


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").lower()
    if ":" in host:
        return _v6_literal(host)
    if host.isascii() and not parts.netloc.isascii():
        raise _look_alike()
    name = _a_labels(host).removesuffix(".")
    labels = name.split(".")
    if len(name) > HOST_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise _bad("The URL's host is not valid.", "a host name of labels up to 63 characters, 253 in all")
    if _NUMERIC_LABEL.fullmatch(labels[-1]) and not _dotted_quad(name):
        raise _bad("The URL's host is a number.", "a host name, or an address in plain dotted form")
    return name


def _v6_literal(host: str) -> str:
    try:
        return str(IPv6Address(host))
    except ValueError as error:
        raise _bad("The URL's IPv6 address is not valid.", "an address such as [2606:4700::1111]") from error


def _a_labels(host: str) -> str:
    if host.isascii() and _UNSAFE_IN_ASCII_HOST.search(host):
        raise _bad("The URL's host has characters no host name has.", "letters, digits, dots and hyphens")
    return ".".join(_a_label(label) for label in host.split("."))


def _a_label(label: str) -> str:
    try:
        if label.isascii():
            if label.startswith("xn--"):
                _check_a_label(label)
            return label
        coded = label.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise _bad("The URL's host cannot be written as a DNS name.", "a valid international name") from error
    if not coded.startswith("xn--"):
        raise _look_alike()
    return coded


def _check_a_label(label: str) -> None:
    """Raise UnicodeError unless a label is the one encoding of something that can be shown.

    Which letters a registry admits is its own business, and newer than this Python's tables.
    """
    coded = label.removeprefix("xn--").encode("ascii")
    shown = coded.decode("punycode")
    if shown.isascii() or not shown.isprintable() or shown.encode("punycode") != coded:
        raise UnicodeError("not the encoding of a name")


def _look_alike() -> RelayError:
    return _bad("The URL's host has look-alike characters.", "plain letters, digits and dots")


def _dotted_quad(name: str) -> bool:
    return _literal(name) is not None


def _literal(host: str) -> str | None:
    try:
        return str(ip_address(host))
    except ValueError:
        return None
