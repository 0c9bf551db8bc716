"""Client certificates and authorities of one endpoint, over real TLS: used for it, and for nothing else."""

import asyncio
import gc
import os
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from chalicelib.adapters.http.fault import TransportFault
from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.own_tls import CONTEXTS_MAX, OpenSslCertificates, own_context
from chalicelib.adapters.http.sender import GuardedSender, SendLimits
from chalicelib.adapters.http.tls import tls_context
from chalicelib.adapters.http.transport import GuardedTransport, Timeouts
from chalicelib.domain.auth import Auth, ClientCertificate, Tls
from chalicelib.domain.outcome import Fault
from chalicelib.domain.request import Request
from chalicelib.domain.secret import Secret
from chalicelib.domain.target import Policy

OPEN = Policy(require_https=False, allow_private=True, allowed_ports=None)
HERE, NAME, OTHER = "127.0.0.1", "good.example", "other.example"
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS, ids=["1.2", "1.3"])
NOT_TAKEN = "the TLS handshake failed: the server "


async def here(_: str) -> list[str]:
    return [HERE]


@dataclass
class Met:
    """Which client certificates a server has met, a name each; and how many connections there were."""

    port: int = 0
    names: list[str] = field(default_factory=list)
    connections: int = 0


def serving(
    leaf: trustme.LeafCert,
    clients: trustme.CA | None = None,
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    *,
    required: bool = True,
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    leaf.configure_cert(context)
    if clients is not None:
        clients.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


class Serving(socketserver.ThreadingTCPServer):
    """A server of blocking sockets: unlike one of asyncio's, it says why it refuses a handshake."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext, met: Met, answer: bytes) -> None:
        super().__init__((HERE, 0), Meeting)
        self.context, self.met, self.answer = context, met, answer


class Meeting(socketserver.BaseRequestHandler):
    """Answers every request of one connection, and lets a refused peer read why."""

    def handle(self) -> None:
        server = cast("Serving", self.server)
        server.met.connections += 1
        unready = server.context.wrap_socket(self.request, server_side=True, do_handshake_on_connect=False)
        with unready as sock, suppress(OSError):
            try:
                sock.do_handshake()
                self._answer(sock, server)
            except ssl.SSLError:
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(4_096):
                    pass

    def _answer(self, sock: ssl.SSLSocket, server: Serving) -> None:
        peer = sock.getpeercert() or {}
        while sock.recv(4_096):
            server.met.names.append(str(peer.get("subjectAltName", "nobody")))
            sock.sendall(server.answer)


@contextmanager
def listening(context: ssl.SSLContext, answer: bytes = b"") -> Iterator[Met]:
    """Answer every request, 200 unless told otherwise."""
    met = Met()
    with Serving(context, met, answer or b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as server:
        met.port = server.server_address[1]
        running = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        running.start()
        try:
            yield met
        finally:
            server.shutdown()
            running.join()


def client(authority: trustme.CA, name: str = "relay.example", **fields: Any) -> Auth[Secret]:  # noqa: ANN401 - as trustme takes them
    leaf = authority.issue_cert(name, **fields)
    chain = "".join(each.bytes().decode() for each in leaf.cert_chain_pems)
    return Auth(certificate=ClientCertificate(chain, Secret(leaf.private_key_pem.bytes().decode())))


def trusting(authority: trustme.CA) -> Auth[Secret]:
    return Auth(authorities=authority.cert_pem.bytes().decode())


def to(port: int, auth: Auth[Secret] | None = None, host: str = NAME) -> Request:
    return Request(f"https://{host}:{port}/", (("Content-Length", "0"),), b"", auth=auth)


async def sent(transport: GuardedTransport, request: Request) -> int:
    answer = await transport.send(request)
    assert answer.body is not None
    async for _ in answer.body.pieces():
        pass
    answer.body.close()
    return answer.status


async def fault_of(transport: GuardedTransport, request: Request) -> tuple[Fault, str]:
    with pytest.raises(TransportFault) as caught:
        await sent(transport, request)
    return caught.value.fault, caught.value.detail


def through(talk: Callable[[GuardedTransport], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        transport = GuardedTransport(OPEN, Timeouts(), here)
        await talk(transport)
        await transport.aclose()
        await asyncio.sleep(0)

    asyncio.run(run())


@EACH_VERSION
def test_a_client_certificate_is_shown_to_its_endpoint(
    authority: trustme.CA, version: ssl.TLSVersion
) -> None:
    async def talk(transport: GuardedTransport) -> None:
        clients = trustme.CA()
        with listening(serving(authority.issue_cert(NAME), clients, version)) as met:
            assert await sent(transport, to(met.port, client(clients))) == 200
            assert met.names == ["(('DNS', 'relay.example'),)"]

    through(talk)


@EACH_VERSION
def test_whoever_has_none_is_told_that_one_is_asked_for(
    authority: trustme.CA, version: ssl.TLSVersion
) -> None:
    async def talk(transport: GuardedTransport) -> None:
        with listening(serving(authority.issue_cert(NAME), trustme.CA(), version)) as met:
            fault, words = await fault_of(transport, to(met.port))
            assert fault is Fault.TLS_FAILED
            if version is ssl.TLSVersion.TLSv1_3:
                assert words == NOT_TAKEN + "asks for a client certificate"
            assert met.names == []

    through(talk)


@EACH_VERSION
def test_one_that_is_not_trusted_or_has_expired_is_told_apart(
    authority: trustme.CA, version: ssl.TLSVersion
) -> None:
    async def talk(transport: GuardedTransport) -> None:
        clients = trustme.CA()
        old = datetime.now(UTC) - timedelta(days=400)
        expired = client(clients, not_before=old, not_after=old + timedelta(days=1))
        with listening(serving(authority.issue_cert(NAME), clients, version)) as met:
            stranger = await fault_of(transport, to(met.port, client(trustme.CA())))
            assert stranger == (
                Fault.TLS_FAILED,
                NOT_TAKEN + "does not trust who issued the client certificate",
            )
            late = await fault_of(transport, to(met.port, expired))
            assert late == (Fault.TLS_FAILED, NOT_TAKEN + "finds the client certificate expired")
            assert met.names == []

    through(talk)


def test_an_authority_is_trusted_for_its_endpoint_alone(authority: trustme.CA) -> None:
    async def talk(transport: GuardedTransport) -> None:
        own = trustme.CA()
        with listening(serving(own.issue_cert(NAME))) as met:
            assert await sent(transport, to(met.port, trusting(own))) == 200
            fault, _ = await fault_of(transport, to(met.port))
            assert fault is Fault.CERTIFICATE_UNTRUSTED
            fault, _ = await fault_of(transport, to(met.port, trusting(trustme.CA())))
            assert fault is Fault.CERTIFICATE_UNTRUSTED
        with listening(serving(authority.issue_cert(NAME))) as met:
            assert await sent(transport, to(met.port, trusting(own))) == 200

    through(talk)


def test_an_authority_may_be_any_certificate_of_the_chain_but_names_still_count(
    authority: trustme.CA,
) -> None:
    async def talk(transport: GuardedTransport) -> None:
        between = trustme.CA().create_child_ca()
        leaf = between.issue_cert(NAME)
        for pem in (between.cert_pem, leaf.cert_chain_pems[0]):
            auth: Auth[Secret] = Auth(authorities=pem.bytes().decode())
            with listening(serving(leaf)) as met:
                assert await sent(transport, to(met.port, auth)) == 200
                fault, _ = await fault_of(transport, to(met.port, auth, OTHER))
                assert fault is Fault.CERTIFICATE_NAME

    through(talk)


def test_connections_are_used_again_by_whoever_has_the_same_certificate_and_by_nobody_else(
    authority: trustme.CA,
) -> None:
    async def talk(transport: GuardedTransport) -> None:
        clients = trustme.CA()
        one, other = client(clients, "one.example"), client(clients, "other.example")
        ways = [one, other, None, trusting(clients), Auth(certificate=one.certificate, authorities="")]
        context = serving(authority.issue_cert(NAME), clients, required=False)
        with listening(context) as met:
            for _ in range(3):
                for auth in ways:
                    assert await sent(transport, to(met.port, auth)) == 200
            assert met.connections == 4
            names = ["one", "other", None, None, "one"]
            assert met.names == [f"(('DNS', '{each}.example'),)" if each else "nobody" for each in names] * 3

    through(talk)


def test_a_redirect_to_another_origin_gets_neither_certificate_nor_trust(authority: trustme.CA) -> None:
    clients = trustme.CA()

    async def talk(transport: GuardedTransport) -> None:
        sender = GuardedSender(transport, SendLimits(), BackgroundLoop())
        optional = serving(authority.issue_cert(NAME, OTHER), clients, required=False)
        with listening(optional) as there:
            away = f"HTTP/1.1 307 x\r\nLocation: https://{OTHER}:{there.port}/\r\nContent-Length: 0\r\n\r\n"
            with listening(optional, away.encode()) as here_first:
                reply = await sender.send(to(here_first.port, client(clients)))
                assert reply.status == 200
                assert here_first.names == ["(('DNS', 'relay.example'),)"]
                assert there.names == ["nobody"]
            own = trustme.CA()
            with listening(
                serving(own.issue_cert(NAME)), away.replace(OTHER, "x." + OTHER).encode()
            ) as first:
                reply = await sender.send(to(first.port, trusting(own)))
                assert (reply.status, reply.fault) == (None, Fault.CERTIFICATE_NAME)

    through(talk)


def test_a_context_is_made_once_for_what_it_is_made_with_and_not_for_ever(authority: trustme.CA) -> None:
    clients = trustme.CA()
    certificate = client(clients).certificate
    first = own_context(Tls(certificate))
    assert own_context(Tls(certificate)) is first
    assert first is not tls_context()
    assert (first.verify_mode, first.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert first.minimum_version is ssl.TLSVersion.TLSv1_2
    for number in range(CONTEXTS_MAX):
        own_context(Tls(authorities=clients.cert_pem.bytes().decode() + "\n" * number))
    assert own_context.cache_info().currsize == CONTEXTS_MAX
    assert own_context(Tls(certificate)) is not first


@pytest.mark.parametrize("in_memory", [True, False])
def test_no_key_is_left_in_a_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_memory: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create")
    certificate = client(trustme.CA()).certificate
    assert certificate is not None
    gc.collect()
    files = len(list(Path("/proc/self/fd").iterdir()))
    assert OpenSslCertificates().certificate_fault(certificate) is None
    assert len(list(Path("/proc/self/fd").iterdir())) == files
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_used_is_told_in_plain_words() -> None:
    authority, of = trustme.CA(), OpenSslCertificates()
    one, other = client(authority).certificate, client(authority).certificate
    assert one is not None
    assert other is not None
    assert of.certificate_fault(one) is None
    mixed = ClientCertificate(one.chain, other.key)
    assert of.certificate_fault(mixed) == "a key that belongs to the certificate"
    read = "a certificate and its private key that OpenSSL can read"
    encrypted = load_pem_private_key(one.key.reveal().encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hush")
    )
    for key in ("", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", encrypted.decode()):
        assert of.certificate_fault(ClientCertificate(one.chain, Secret(key))) == read
    assert of.authorities_fault(authority.cert_pem.bytes().decode()) is None
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert of.authorities_fault(broken) == "certificates that OpenSSL can read"
