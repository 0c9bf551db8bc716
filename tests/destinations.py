"""Where requests may go: one table of destinations, each with the one outcome it must have.

The release gate (`make gate`) holds registration and sending to it alike. Each row stands for a way in that
somebody has found somewhere: an address that is not public, a spelling of one, a name that leads to one.
"""

from chalicelib.domain.errors import ErrorCode

NOT_ALLOWED, INVALID = ErrorCode.DESTINATION_NOT_ALLOWED.value, ErrorCode.URL_INVALID.value

INNER = {
    "loopback": "127.0.0.1",
    "loopback beyond its first": "127.8.9.10",
    "private ten": "10.0.0.5",
    "private from 172.16": "172.16.0.1",
    "private to 172.31": "172.31.255.254",
    "private 192.168": "192.168.1.1",
    "instance metadata": "169.254.169.254",
    "container credentials": "169.254.170.2",
    "f084 carrier-grade NAT": "100.64.0.1",
    "f084 carrier-grade NAT to its end": "100.127.255.254",
    "f084 this network": "0.0.0.0",  # noqa: S104 - refused here, not bound
    "f084 this network beyond its first": "0.1.2.3",
    "f084 protocol assignments": "192.0.0.1",
    "f084 documentation": "203.0.113.1",
    "f084 benchmarking": "198.18.0.1",
    "f084 relays of 6to4": "192.88.99.1",
    "f084 reserved": "240.0.0.1",
    "f084 broadcast": "255.255.255.255",
    "f083 multicast": "224.0.0.1",
    "IPv6 loopback": "::1",
    "IPv6 unspecified": "::",
    "f082 mapped loopback": "::ffff:127.0.0.1",
    "f082 mapped metadata": "::ffff:a9fe:a9fe",
    "f082 mapped and public": "::ffff:8.8.8.8",
    "f083 compatible": "::127.0.0.1",
    "f083 translated (SIIT)": "::ffff:0:7f00:1",
    "f083 NAT64": "64:ff9b::a9fe:a9fe",
    "f083 NAT64 of one network": "64:ff9b:1::7f00:1",
    "f083 6to4": "2002:7f00:1::1",
    "f083 Teredo": "2001:0:7f00:1::1",
    "f083 segment routing": "5f00::1",
    "f083 documentation": "2001:db8::1",
    "f083 documentation, newer": "3fff::1",
    "f083 site-local": "fec0::1",
    "f083 IPv6 multicast": "ff02::1",
    "f084 unique local": "fd00:ec2::254",
    "link-local": "fe80::1",
    "link-local with a zone": "fe80::1%eth0",
    "public with a zone": "2606:4700::1111%eth0",
    "discard": "100::1",
    "not assigned": "4000::1",
}
"""Addresses that no request may reach, however it was led there: literally, by a name, by a redirect."""

ODD = {
    "decimal": "2130706433",
    "hexadecimal": "0x7f000001",
    "hexadecimal in capitals": "0X7F000001",
    "octal": "017700000001",
    "dotted hexadecimal": "0x7f.0x0.0x0.0x1",
    "dotted octal": "0177.0.0.1",
    "zeros before": "127.000.000.001",
    "two parts": "127.1",
    "three parts": "127.0.1",
    "mixed parts": "169.0xfea9fe",
    "too many parts": "1.127.0.0.1",
    "too large a part": "127.0.0.256",
    "public, in decimal": "134744072",
    "f088 percent-encoded": "127.0.0.%31",
    "f088 percent-encoded name": "ex%61mple.com",
    "f088 full-width digits": "\uff11\uff12\uff17.0.0.1",
    "f088 circled digits": "\u2460\u2461\u2466.0.0.1",
    "f088 full-width letters": "\uff45xample.com",
    "f088 other full stops": "127\u30020\u30020\u30021",
    "f063 two trailing dots": "hooks.example.com..",
    "dots alone": "..",
    "f086 userinfo": "user@example.com",
    "f086 userinfo and an inner host": "example.com:pass@169.254.169.254",
    "f086 userinfo like a host": "example.com:80@10.0.0.5",
    "a backslash before an inner host": "example.com\\@10.0.0.5",
    "a fragment before an inner host": "example.com#@10.0.0.5",
    "brackets around a name": "[example.com]",
    "brackets around IPv4": "[127.0.0.1]",
    "something beside the brackets": "10.0.0.1[2606:4700::1111]",
    "brackets not closed": "[::1",
    "another port": "example.com:8443",
    "a port of loopback": "127.0.0.1:22",
    "port 0": "example.com:0",
    "a port too large": "example.com:65979",
    "a blank": "example .com",
    "a line's end": "example.com\r\nHost: inner",
    "nothing": "",
}
"""Hosts as a URL may have them that are none, or have two readings: refused as `url_invalid`."""

ALSO_INNER = {
    "a dot after loopback": "127.0.0.1.",
    "a dot after metadata": "169.254.169.254.",
    "f082 mapped, written out": "[0:0:0:0:0:ffff:7f00:1]",
    "f082 mapped in capitals": "[::FFFF:10.0.0.5]",
    "a zone percent-encoded": "[fe80::1%25eth0]",
}
"""Other spellings of inner addresses as hosts: read as what they are."""

PUBLIC = {
    "a name": ("hooks.example.com", "hooks.example.com"),
    "f063 a name with its trailing dot": ("hooks.example.com.", "hooks.example.com"),
    "a name in capitals": ("HOOKS.example.COM", "hooks.example.com"),
    "a name beyond ASCII": ("m\u00fcnchen.example.com", "xn--mnchen-3ya.example.com"),
    "IPv4": ("8.8.8.8", "8.8.8.8"),
    "IPv4 with its trailing dot": ("8.8.8.8.", "8.8.8.8"),
    "IPv6": ("[2606:4700::1111]", "[2606:4700::1111]"),
    "IPv6, written out": ("[2606:4700:0:0:0:0:0:1111]", "[2606:4700::1111]"),
}
"""Hosts that requests may go to, and how they are stored and asked for."""

PUBLIC_V4, PUBLIC_V6 = "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


REFUSED: dict[str, tuple[str, str]] = {
    **{name: (f"https://{_host(address)}/in", NOT_ALLOWED) for name, address in INNER.items()},
    **{name: (f"https://{host}/in", NOT_ALLOWED) for name, host in ALSO_INNER.items()},
    **{name: (f"https://{host}/in", INVALID) for name, host in ODD.items()},
    "http": ("http://example.com/in", INVALID),
    "http to loopback": ("http://127.0.0.1/in", INVALID),
    "another scheme": ("ftp://example.com/in", INVALID),
    "a file": ("file:///etc/passwd", INVALID),
    "no scheme": ("//example.com/in", INVALID),
}
"""URLs that are refused, and the code that a registration of each gets."""

REFERENCES = frozenset({"no scheme", "nothing", "a fragment before an inner host"})
"""Those that are good as a reference to a URL, as redirects have it: they lead to public hosts there."""

ANSWERS: dict[str, list[str]] = {
    **{f"{name}, alone": [address] for name, address in INNER.items()},
    **{f"{name}, after a public one": [PUBLIC_V4, address] for name, address in INNER.items()},
    **{f"{name}, before public ones": [address, PUBLIC_V6, PUBLIC_V4] for name, address in INNER.items()},
    "what is no address": ["127.1"],
    "a network": ["93.184.215.14/32"],
}
"""Answers to a name, A and AAAA: a name with any one of these answers is refused at each of its sends."""
