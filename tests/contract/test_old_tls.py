"""F062: servers whose TLS is too old, too weak or none are refused in words that their owners understand."""

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
import trustme

from chalicelib.adapters.http.connect import Way, open_checked
from chalicelib.adapters.http.fault import TransportFault
from chalicelib.adapters.http.tls import tls_context
from chalicelib.domain.outcome import Fault
from chalicelib.domain.target import Policy, Target

HERE, NAME = "127.0.0.1", "good.example"
OPEN = Policy(allow_private=True, allowed_ports=None)
WITHIN_S = 5.0
LEGACY_SERVER_CONNECT = 0x4
"""OpenSSL's option, which this Python has no name for."""
DH_1024 = """-----BEGIN DH PARAMETERS-----
MIGHAoGBALmBhq7Q15NPJ/kTF/vsgRJWb+se82qf64qruLbQsRLZksgY+WjuCc/7
pxG9lUp3WhtOffOECno1D0nuUvjId4fyZmyUwaM/W7iFwwJjb91rLwR1HmRcxH0s
u9HCla7WBCJFwAQJtSeImQ+N85C4cD+s6ziXXKMoFL4LXEZy0e53AgEC
-----END DH PARAMETERS-----
"""
Meet = Callable[[socket.socket], None]


async def here(_: str) -> list[str]:
    return [HERE]


def shaking_hands(context: ssl.SSLContext) -> Meet:
    """Shake hands as OpenSSL does by itself: asyncio would keep its alerts back."""

    def meet(caller: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(caller, server_side=True) as wrapped:
            wrapped.recv(1)

    return meet


def saying(words: bytes) -> Meet:
    """Say this to whatever comes, and wait for the caller to hang up."""

    def meet(caller: socket.socket) -> None:
        caller.recv(1)
        caller.sendall(words)
        while caller.recv(65_536):
            pass

    return meet


def words_of(meet: Meet) -> str:
    """Shake hands with a server, which must fail as a matter of TLS, and give what is said of it."""
    with socket.create_server((HERE, 0)) as listener:

        def serve() -> None:
            caller, _ = listener.accept()
            with suppress(ConnectionError), caller:
                meet(caller)

        server = Thread(target=serve)
        server.start()
        target = Target("https", NAME, listener.getsockname()[1], "/")
        with pytest.raises(TransportFault) as caught:
            asyncio.run(open_checked(target, Way(OPEN, here), WITHIN_S))
        server.join(WITHIN_S)
    assert caught.value.fault is Fault.TLS_FAILED
    assert not caught.value.left
    return caught.value.detail.removeprefix("the TLS handshake failed: ")


def serving(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME, key_type=trustme.KeyType.RSA).configure_cert(context)
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_f062_a_server_that_speaks_old_tls_alone_is_refused(
    authority: trustme.CA, version: ssl.TLSVersion
) -> None:
    old = serving(authority)
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version = old.maximum_version = version
    old.set_ciphers("ALL:@SECLEVEL=0")
    assert words_of(shaking_hands(old)) == "the server speaks no TLS 1.2 or newer"


def test_f062_a_server_with_a_small_diffie_hellman_key_is_refused(
    authority: trustme.CA, tmp_path: Path
) -> None:
    (tmp_path / "dh.pem").write_text(DH_1024)
    weak = serving(authority)
    weak.maximum_version = ssl.TLSVersion.TLSv1_2
    weak.set_ciphers("DHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0")
    weak.load_dh_params(str(tmp_path / "dh.pem"))
    assert words_of(shaking_hands(weak)) == "the server's Diffie-Hellman key is too small"


def test_f062_a_server_that_does_not_secure_renegotiation_is_refused(authority: trustme.CA) -> None:
    """No library of today can be such a server, so its first words are written here: without an extension."""
    hello = b"\x03\x03" + bytes(32) + b"\x00" + b"\xc0\x2f" + b"\x00"
    handshake = b"\x02" + struct.pack(">I", len(hello))[1:] + hello
    record = b"\x16\x03\x03" + struct.pack(">H", len(handshake)) + handshake
    assert words_of(saying(record)) == "the server renegotiates in the old, unsafe way"


def test_f062_no_old_protocol_or_weak_key_is_offered() -> None:
    context = tls_context()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert not context.options & LEGACY_SERVER_CONNECT
    assert context.security_level >= 2


def test_a_server_that_speaks_something_else_is_told_so(authority: trustme.CA) -> None:
    meet = saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert words_of(meet) == "the server speaks something else than TLS"


def test_a_server_that_hangs_up_in_the_handshake_is_told_so(authority: trustme.CA) -> None:
    assert "broke off" in words_of(lambda caller: caller.close())


def test_a_server_with_no_cipher_in_common_is_told_so(authority: trustme.CA) -> None:
    strange = serving(authority)
    strange.maximum_version = ssl.TLSVersion.TLSv1_2
    strange.set_ciphers("AES128-SHA:@SECLEVEL=0")
    assert words_of(shaking_hands(strange)) == "the server found nothing in common to speak"
