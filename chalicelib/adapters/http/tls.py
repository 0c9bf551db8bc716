"""TLS as every request gets it: which authorities count, and what a failed handshake is called."""

import ssl
from functools import cache
from pathlib import Path

from chalicelib.domain.outcome import Fault

_EXPIRED, _NOT_YET_VALID, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64
"""OpenSSL's numbers of what is wrong with a certificate."""
_WRONG_CERTIFICATE = {
    _EXPIRED: (Fault.CERTIFICATE_EXPIRED, "the certificate has expired"),
    _NOT_YET_VALID: (Fault.CERTIFICATE_EXPIRED, "the certificate is not valid yet"),
    _OTHER_NAME: (Fault.CERTIFICATE_NAME, "the certificate is for another host name"),
    _OTHER_ADDRESS: (Fault.CERTIFICATE_NAME, "the certificate is for another address"),
}
_TOO_OLD = "the server speaks no TLS 1.2 or newer"
_NOT_TAKEN = "the server does not take the client certificate"
_WRONG_PROTOCOL = {
    "UNSUPPORTED_PROTOCOL": _TOO_OLD,
    "TLSV1_ALERT_PROTOCOL_VERSION": _TOO_OLD,
    "WRONG_VERSION_NUMBER": "the server speaks something else than TLS",
    "DH_KEY_TOO_SMALL": "the server's Diffie-Hellman key is too small",
    "UNSAFE_LEGACY_RENEGOTIATION_DISABLED": "the server renegotiates in the old, unsafe way",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the server found nothing in common to speak",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server asks for a client certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": _NOT_TAKEN,
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": _NOT_TAKEN,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _NOT_TAKEN,
    "TLSV1_ALERT_ACCESS_DENIED": _NOT_TAKEN,
    "TLSV1_ALERT_UNKNOWN_CA": "the server does not trust who issued the client certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the server finds the client certificate expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the server finds the client certificate revoked",
}
"""OpenSSL's reasons of what endpoints get wrong most; others are told in its own words."""


@cache
def tls_context() -> ssl.SSLContext:
    """Make the one TLS context of the process, for every endpoint that has no TLS of its own."""
    return new_context()


def new_context() -> ssl.SSLContext:
    """Make a TLS context: TLS 1.2 and up, names and certificates verified.

    Authorities are looked up one by one in a folder; where there is none, all are read, which takes long.
    """
    folder = _authorities()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if folder else ssl.create_default_context()
    if folder:
        context.load_verify_locations(capath=folder)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def what_failed(error: ssl.SSLError) -> tuple[Fault, str]:
    """Say what a failed handshake failed at, in words for the endpoint's owner."""
    if isinstance(error, ssl.SSLCertVerificationError):
        unknown = (Fault.CERTIFICATE_UNTRUSTED, f"the certificate is not trusted: {error.verify_message}")
        return _WRONG_CERTIFICATE.get(error.verify_code, unknown)
    reason = error.reason or "no common protocol"
    words = _WRONG_PROTOCOL.get(reason, reason.lower().replace("_", " "))
    return Fault.TLS_FAILED, f"the TLS handshake failed: {words}"


def _authorities() -> str | None:
    """Find the folder of authorities that is shipped with a function, or the machine's own."""
    shipped = Path(__file__).with_name("authorities")
    if shipped.is_dir():
        return str(shipped)
    machine = ssl.get_default_verify_paths().capath
    return machine if machine and any(Path(machine).glob("*.0")) else None
