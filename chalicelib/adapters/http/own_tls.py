"""TLS for endpoints that ask for a client certificate, or whose authority only their owner trusts."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from chalicelib.adapters.http.tls import new_context, tls_context
from chalicelib.domain.auth import ClientCertificate, Tls
from chalicelib.domain.secret import Secret

CONTEXTS_MAX = 256
_KEYS = {
    "KEY_VALUES_MISMATCH": "a key that belongs to the certificate",
    "EE_KEY_TOO_SMALL": "a key that is not too weak: RSA of 2,048 bits, or an elliptic curve",
}


def context_for(tls: Tls | None) -> ssl.SSLContext:
    """Give the context that connections to an endpoint are made with; raises ssl.SSLError."""
    return tls_context() if tls is None else own_context(tls)


@lru_cache(CONTEXTS_MAX)
def own_context(tls: Tls) -> ssl.SSLContext:
    """Make the one context of an endpoint's own TLS: all that is trusted everywhere, and this besides.

    An authority counts as it is given, whoever has issued it. Raises ssl.SSLError.
    """
    context = new_context()
    if tls.authorities:
        context.load_verify_locations(cadata=tls.authorities)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if tls.certificate:
        _load(context, tls.certificate)
    return context


class OpenSslCertificates:
    """Tries what owners give, by the library that will use it."""

    def certificate_fault(self, of: ClientCertificate[Secret]) -> str | None:
        """Say what would be right instead of a certificate and key that cannot be used, else None."""
        try:
            _load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), of)
        except ssl.SSLError as error:
            return _KEYS.get(error.reason or "", "a certificate and its private key that OpenSSL can read")
        return None

    def authorities_fault(self, pem: str) -> str | None:
        """Say what would be right instead of certificates that cannot be trusted, else None."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
        except ssl.SSLError:
            return "certificates that OpenSSL can read"
        return None


def _load(context: ssl.SSLContext, certificate: ClientCertificate[Secret]) -> None:
    """Load a certificate and key; without a passphrase, which OpenSSL would ask a terminal for."""
    with _file(certificate.chain + certificate.key.reveal()) as path:
        context.load_cert_chain(path, password=lambda: b"")


@contextmanager
def _file(text: str) -> Iterator[str]:
    """Give the name of a file with this text: OpenSSL is told of keys by name alone.

    It is in memory where the system has such files, else only this user can read it; and is gone at once.
    """
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("certificate")
        try:
            os.write(file, text.encode())
            yield f"/proc/self/fd/{file}"
        finally:
            os.close(file)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "certificate.pem")
        path.touch(0o600)
        path.write_text(text)
        yield str(path)
