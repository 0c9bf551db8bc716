"""Targets: only public addresses, however they are spelled, and one spelling for one place."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.target import Policy, address_allowed, not_allowed, parse_target
from tests.unit.domain.examples import FEW

STRICT = Policy()
DEVELOPMENT = Policy(require_https=False, allow_private=True, allowed_ports=None)
ANY_PORT = Policy(allowed_ports=None)


def normal(url: str, policy: Policy = STRICT) -> str:
    return parse_target(url, policy).url


def refusal(url: str, policy: Policy = STRICT) -> RelayError:
    with pytest.raises(RelayError) as told:
        parse_target(url, policy)
    return told.value


def is_refused(url: str, policy: Policy = STRICT) -> bool:
    try:
        parse_target(url, policy)
    except RelayError:
        return True
    return False


# The special blocks of the IANA registries, with an address just outside at either end where that is public.
SPECIAL_V4 = [
    ("0.0.0.0/8", None, "1.0.0.0"),
    ("10.0.0.0/8", "9.255.255.255", "11.0.0.0"),
    ("100.64.0.0/10", "100.63.255.255", "100.128.0.0"),
    ("127.0.0.0/8", "126.255.255.255", "128.0.0.0"),
    ("169.254.0.0/16", "169.253.255.255", "169.255.0.0"),
    ("172.16.0.0/12", "172.15.255.255", "172.32.0.0"),
    ("192.0.0.0/24", "191.255.255.255", "192.0.1.0"),
    ("192.0.2.0/24", "192.0.1.255", "192.0.3.0"),
    ("192.88.99.0/24", "192.88.98.255", "192.88.100.0"),
    ("192.168.0.0/16", "192.167.255.255", "192.169.0.0"),
    ("198.18.0.0/15", "198.17.255.255", "198.20.0.0"),
    ("198.51.100.0/24", "198.51.99.255", "198.51.101.0"),
    ("203.0.113.0/24", "203.0.112.255", "203.0.114.0"),
    ("224.0.0.0/4", "223.255.255.255", None),
    ("240.0.0.0/4", None, None),
]


@pytest.mark.parametrize("block, before, after", SPECIAL_V4)
def test_f084_special_ipv4_blocks_are_refused_to_their_edges(
    block: str, before: str | None, after: str | None
) -> None:
    network = IPv4Network(block)
    for inside in (network[0], network[1], network[-1]):
        assert not address_allowed(str(inside), STRICT)
        assert is_refused(f"https://{inside}/")
    for outside in filter(None, (before, after)):
        assert address_allowed(outside, STRICT)
        assert normal(f"https://{outside}/") == f"https://{outside}/"


@pytest.mark.parametrize(
    "address",
    [
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - refused here, not bound
        "192.0.0.1",
        "198.18.0.1",
        "203.0.113.1",
        "240.0.0.1",
        "255.255.255.255",
        "169.254.170.2",
        "169.254.169.254",
        "fd00:ec2::254",
    ],
)
def test_f084_addresses_that_are_neither_private_nor_public_are_refused(address: str) -> None:
    assert not address_allowed(address, STRICT)
    host = f"[{address}]" if ":" in address else address
    assert refusal(f"https://{host}/").code is ErrorCode.DESTINATION_NOT_ALLOWED


@FEW
@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_f084_no_allowed_ipv4_address_is_special_to_python_either(address: IPv4Address) -> None:
    if address_allowed(str(address), STRICT):
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize(
    "host", ["[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[0:0:0:0:0:ffff:7f00:1]", "[::FFFF:10.0.0.5]"]
)
def test_f082_ipv4_inside_ipv6_is_refused(host: str) -> None:
    assert refusal(f"https://{host}/").code is ErrorCode.DESTINATION_NOT_ALLOWED
    assert not address_allowed(host.strip("[]"), STRICT)


@pytest.mark.parametrize(
    "address",
    [
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::1",
        "::127.0.0.1",
        "fec0::1",
        "ff02::1",
        "224.0.0.1",
        "2001:0:7f00:1::1",
        "5f00::1",
        "3fff::1",
        "3fff:fff:ffff::1",
        "2001:db8::1",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:1ff:ffff::1",
        "100::1",
        "fc00::1",
        "fe80::1",
        "fe80::1%eth0",
        "2606:4700::1111%eth0",
        "::",
        "::1",
        "4000::1",
        "1fff:ffff::1",
    ],
)
def test_f083_transition_and_other_special_prefixes_are_refused(address: str) -> None:
    assert not address_allowed(address, STRICT)
    host = f"[{address.replace('%', '%25')}]" if ":" in address else address
    assert refusal(f"https://{host}/").code is ErrorCode.DESTINATION_NOT_ALLOWED


@FEW
@given(st.integers(0, 2**32 - 1))
@example(0x7F000001)
@example(0x08080808)
def test_f083_no_way_of_writing_ipv4_into_ipv6_is_allowed(address: int) -> None:
    prefixes = [0, 0xFFFF << 32, 0xFFFF0000 << 32, 0x64FF9B << 96, 0x64FF9B0001 << 80]
    embedded = [
        *(prefix | address for prefix in prefixes),
        0x2002 << 112 | address << 80,
        0x20010000 << 96 | address,
    ]
    for each in embedded:
        assert not address_allowed(str(IPv6Address(each)), STRICT)


@FEW
@given(
    st.integers(0, 2**128 - 1).map(IPv6Address) | st.integers(0x2 << 124, (0x4 << 124) - 1).map(IPv6Address)
)
def test_f083_no_allowed_ipv6_address_is_special_to_python_either(address: IPv6Address) -> None:
    if address_allowed(str(address), STRICT):
        assert address.is_global
        assert not address.is_multicast
        assert address.ipv4_mapped is None
        assert address.sixtofour is None
        assert address.teredo is None


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "1.1.1.1", "2606:4700::1111", "2001:4860:4860::8888", "2a00::1"]
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert address_allowed(address, STRICT)


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f000001", "2130706433", "1.2.3.4/32", "\uff11.1.1.1"]
)
def test_what_is_no_address_is_not_allowed(text: str) -> None:
    assert not address_allowed(text, STRICT)


def test_the_development_switch_allows_private_addresses() -> None:
    assert address_allowed("127.0.0.1", DEVELOPMENT)
    assert normal("http://127.0.0.1:9099/a", DEVELOPMENT) == "http://127.0.0.1:9099/a"
    assert normal("http://localhost/a", DEVELOPMENT) == "http://localhost/a"
    assert normal("http://[::1]:8080/a", DEVELOPMENT) == "http://[::1]:8080/a"


def spellings(address: int) -> list[str]:
    """Write an IPv4 address in the ways that resolvers read and people do not."""
    a, b, c, d = address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255
    return [
        str(address),
        hex(address),
        f"0{address:o}",
        f"{a}.{address & 0xFFFFFF}",
        f"{a}.{b}.{c << 8 | d}",
        f"0x{a:x}.{b}.{c}.{d}",
        f"{a}.{b}.{c}.0x{d:x}",
        f"{a}.{b}.{c}.0{d:o}",
        f"{a:03d}.{b}.{c}.{d:03d}",
        f"{a}.{b}.{c}.{d}.",
        f"{a}.{b}.{c}.%3{d % 10}",
        f"[::ffff:{a}.{b}.{c}.{d}]",
    ]


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.5", "169.254.169.254", "192.168.1.1", "0.0.0.8"])
def test_f084_a_private_address_is_refused_in_every_spelling(address: str) -> None:
    for host in spellings(int(IPv4Address(address))):
        assert is_refused(f"https://{host}/"), host
        assert is_refused(f"https://{host.upper()}/"), host


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com:pass@169.254.169.254/",
        "https://a@10.0.0.1/",
        "https://example.com:80@10.0.0.5/",
        "https://user@example.com/",
        "https://:@example.com/",
        "https://@example.com/",
        "https://example.com%40a@example.com/",
    ],
)
def test_f086_userinfo_is_refused(url: str) -> None:
    fault = refusal(url)
    assert fault.code is ErrorCode.URL_INVALID
    assert "user name" in fault.detail


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.%31/",
        "https://\uff11\uff12\uff17.0.0.1/",
        "https://①②⑦.0.0.1/",
        "https://127。0。0。1/",
        "https://\uff45xample.com/",
        "https://ex%61mple.com/",
        "https://m\u00fcn%31.example/",
        "https://\u212aelvin.example/",
    ],
)
def test_f088_a_host_that_only_decodes_to_another_is_refused(url: str) -> None:
    assert refusal(url).code is ErrorCode.URL_INVALID


@pytest.mark.parametrize(
    "url, stored",
    [
        ("https://ex_ample.example.com/", "https://ex_ample.example.com/"),
        ("https://_dmarc.example.com/", "https://_dmarc.example.com/"),
        ("https://münchen.example/", "https://xn--mnchen-3ya.example/"),
        ("https://MÜNCHEN.example/", "https://xn--mnchen-3ya.example/"),
        ("https://XN--MNCHEN-3YA.example/", "https://xn--mnchen-3ya.example/"),
        ("https://☃.example/", "https://xn--n3h.example/"),
        ("https://xn--fa-hia.example/", "https://xn--fa-hia.example/"),
        ("https://xn--strae-oqa.example/", "https://xn--strae-oqa.example/"),
        ("https://例え.テスト/", "https://xn--r8jz45g.xn--zckzah/"),
    ],
)
def test_f092_working_hosts_are_stored_in_ascii(url: str, stored: str) -> None:
    assert normal(url) == stored


@pytest.mark.parametrize(
    "url",
    [
        "https://faß.example/",
        "https://ex。ample.com/",
        "https://xn--a.example/",
        "https://xn--.example/",
        "https://xn--example-.example/",
        "https://xn---7a.example/",
        f"https://{'a' * 64}.example/",
        f"https://{'.'.join(['a' * 63] * 4)}/",
        f"https://{'ü' * 60}.example/",
        "https://a..b/",
        "https://.example.com/",
        "https://-a-.example/",
        "https://a-.example/",
        "https://exa mple.com/",
        "https://exam!ple.com/",
    ],
)
def test_f092_hosts_that_cannot_be_are_refused_and_raise_nothing_else(url: str) -> None:
    assert refusal(url).code is ErrorCode.URL_INVALID


def test_f092_the_longest_name_and_label_are_good() -> None:
    longest = ".".join(["a" * 63] * 3 + ["b" * 61])
    assert len(longest) == 253
    assert normal(f"https://{longest}/") == f"https://{longest}/"
    assert is_refused(f"https://{longest}b/")


def test_f063_one_trailing_dot_is_dropped_and_two_are_refused() -> None:
    assert normal("https://hooks.example.com./h") == "https://hooks.example.com/h"
    assert is_refused("https://hooks.example.com../h")
    assert is_refused("https://./h")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/h",
        "https://EXAMPLE.com:443/h",
        "HTTPS://example.com/h",
        "https://example.com.:0443/h",
    ],
)
def test_f094_one_place_has_one_spelling(url: str) -> None:
    assert normal(url) == "https://example.com/h"


@pytest.mark.parametrize(
    "url, stored",
    [
        ("https://example.com/h/", "https://example.com/h/"),
        ("https://example.com/h?", "https://example.com/h?"),
        ("https://example.com/h?b=2&a=1", "https://example.com/h?b=2&a=1"),
        ("https://example.com/H/%2f//../a;x", "https://example.com/H/%2f//../a;x"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com?x=1", "https://example.com/?x=1"),
    ],
)
def test_f094_path_and_query_are_kept_as_given(url: str, stored: str) -> None:
    assert normal(url) == stored


@pytest.mark.parametrize("url", ["https://example.com/h#x", "https://example.com/h#"])
def test_f094_a_fragment_is_refused(url: str) -> None:
    assert "fragment" in refusal(url).detail


@pytest.mark.parametrize("size", [2_049, 8_193, 70_000])
def test_f095_a_url_over_the_limit_is_refused_naming_it(size: int) -> None:
    start = "https://example.com/"
    fault = refusal(start + "a" * (size - len(start)))
    assert (fault.code, fault.expected) == (ErrorCode.URL_INVALID, "at most 2048 characters")


def test_f095_a_url_of_2048_characters_is_good() -> None:
    longest = "https://example.com/".ljust(2_048, "a")
    assert normal(longest) == longest


@pytest.mark.parametrize(
    "port", ["0", "65536", "99999", "", "+443", "4_43", "-1", "\uff14\uff14\uff13", "443:443", "x", "000443"]
)
def test_f095_what_is_no_port_is_refused_under_any_policy(port: str) -> None:
    assert refusal(f"https://example.com:{port}/", ANY_PORT).code is ErrorCode.URL_INVALID


@pytest.mark.parametrize("port", [22, 25, 80, 8443])
def test_f095_ports_are_those_of_the_policy(port: int) -> None:
    assert "443" in refusal(f"https://example.com:{port}/").expected
    assert normal(f"https://example.com:{port}/", ANY_PORT) == f"https://example.com:{port}/"
    assert normal(f"https://example.com:{port}/", Policy(allowed_ports=frozenset({port})))
    assert is_refused("https://example.com/", Policy(allowed_ports=frozenset({port})))


@pytest.mark.parametrize(
    "url",
    [
        "https:///h",
        "http:",
        "ftp:",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "//example.com/",
        "example.com",
        "https:example.com",
        "https:/example.com",
        "",
        "https://",
        "https://:443/",
        "https://[::1",
        "https://[]/",
        "https://[example.com]/",
        "https://[1.2.3.4]/",
        "https://10.0.0.1[2606:4700::1111]/",
        "https://[2606:4700::1111]example.com/",
        "https://exa\tmple.com/",
        "https://example.com/a\nb",
        "https://example.com/a b",
        "https://example.com\\@10.0.0.1/",
        "https://example.com/a\\b",
        "https://example.com/caf\u00e9",
        "https://example.com/?q=\u200b",
        " https://example.com/",
        "https://\ud83d.example/",
        "https://example.com/\ud83d",
    ],
)
def test_f095_odd_urls_are_refused_in_words(url: str) -> None:
    fault = refusal(url)
    assert fault.code in {ErrorCode.URL_INVALID, ErrorCode.DESTINATION_NOT_ALLOWED}
    assert (fault.detail + fault.expected).encode()


@pytest.mark.parametrize("url", ["https:///h", "https://", "https://:443/", "https:example.com"])
def test_f095_a_url_without_a_host_is_told_so(url: str) -> None:
    assert refusal(url).detail == "The URL has no host."


def test_https_is_needed_unless_the_policy_says_otherwise() -> None:
    assert "https" in refusal("http://example.com/", Policy(allowed_ports=None)).expected
    relaxed = Policy(require_https=False, allowed_ports=None)
    assert normal("http://example.com:80/a", relaxed) == "http://example.com/a"
    assert normal("http://example.com:443/a", relaxed) == "http://example.com:443/a"
    assert is_refused("http://127.0.0.1/a", relaxed)
    assert "https or http" in refusal("ftp://example.com/", relaxed).expected


@pytest.mark.parametrize(
    "url, host",
    [
        ("https://Example.com/", "example.com"),
        ("https://example.com:8443/", "example.com:8443"),
        ("https://[2606:4700::1111]/", "[2606:4700::1111]"),
        ("https://[2606:4700:0:0::1111]:8443/", "[2606:4700::1111]:8443"),
    ],
)
def test_the_host_header_has_the_port_only_where_it_says_something(url: str, host: str) -> None:
    assert parse_target(url, ANY_PORT).authority == host


def test_f089_the_refusal_never_names_the_address() -> None:
    fault = refusal("https://169.254.169.254/latest")
    assert (fault.code, fault.detail, fault.expected) == (
        not_allowed().code,
        not_allowed().detail,
        not_allowed().expected,
    )
    assert "169" not in str(fault) + fault.expected


hosts = st.text(alphabet="abc019.-_%:[]xn\u00fc\u3002\uff11\u00df\u2603\u0130", min_size=1, max_size=12)


@FEW
@given(
    scheme=st.sampled_from(["https", "http", "HTTPS", "ftp", ""]),
    host=hosts | st.text(min_size=1, max_size=8),
    rest=st.text(alphabet="/?#a%é@:\\ ", max_size=8),
    policy=st.sampled_from([STRICT, DEVELOPMENT, ANY_PORT]),
)
@example(scheme="https", host="xn--99999999", rest="", policy=STRICT)
@example(scheme="https", host="xn--zzzzzzzzzzzzz", rest="", policy=STRICT)
def test_a_url_is_refused_in_words_or_has_a_normal_form_that_stays(
    scheme: str, host: str, rest: str, policy: Policy
) -> None:
    try:
        target = parse_target(f"{scheme}://{host}{rest}", policy)
    except RelayError:
        return
    again = parse_target(target.url, policy)
    assert again == target
    assert target.url.isascii()
    assert target.host == target.host.lower()
    assert host.isascii() or "xn--" in target.host


@FEW
@given(host=hosts)
def test_a_literal_address_in_an_accepted_url_is_a_public_one(host: str) -> None:
    try:
        target = parse_target(f"https://{host}/", ANY_PORT)
    except RelayError:
        return
    try:
        literal = ip_address(target.host)
    except ValueError:
        assert not target.host.rpartition(".")[2].isdigit()
        return
    assert literal.is_global
