"""Certificates are read as far as Relay shows them, and what is none breaks nothing."""

import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.certificate import Certificate, certificates, private_key, written
from tests.unit.domain.examples import FEW

AUTHORITY = trustme.CA()
LEAF = AUTHORITY.issue_cert("good.example")
PEM = LEAF.cert_chain_pems[0].bytes().decode()
KEY = LEAF.private_key_pem.bytes().decode()
DER = x509.load_pem_x509_certificate(PEM.encode()).public_bytes(Encoding.DER)


@given(st.datetimes(datetime(1980, 1, 1), datetime(9999, 12, 31)))  # noqa: DTZ001 - Hypothesis takes naive ones
@FEW
def test_until_when_it_is_good_is_read_as_others_read_it(moment: datetime) -> None:
    until = moment.replace(tzinfo=UTC, microsecond=0)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(until - timedelta(days=1)).not_valid_after(until)
    der = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)
    assert Certificate(der).expires_s == int(until.timestamp())


def test_its_fingerprint_is_what_openssl_prints(tmp_path: Path) -> None:
    file = tmp_path / "cert.pem"
    file.write_text(PEM)
    command = ["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", str(file)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (found,) = certificates(PEM)
    assert printed.partition("=")[2].strip().replace(":", "").lower() == found.fingerprint


def test_what_stands_around_certificates_is_left_out() -> None:
    root = AUTHORITY.cert_pem.bytes().decode()
    around = f"subject=/CN=x\n{PEM}\nBag Attributes\n{root.replace(chr(10), chr(13) + chr(10))}\n{KEY}"
    assert written(certificates(around)) == PEM + root
    assert written(certificates("nothing")) == ""


@pytest.mark.parametrize("inside", ["AAAA", "MIIB", "MA==", "A", "MIID////", "MIAw"])
def test_what_is_no_certificate_is_refused(inside: str) -> None:
    with pytest.raises(ValueError, match=r"no certificate|no base64"):
        certificates(f"-----BEGIN CERTIFICATE-----\n{inside}\n-----END CERTIFICATE-----\n")


@given(st.integers(0, len(DER) - 1), st.integers(0, 255))
def test_no_byte_of_a_certificate_can_break_the_reader(at: int, byte: int) -> None:
    for broken in (DER[:at] + bytes([byte]) + DER[at + 1 :], DER[:at]):
        with suppress(ValueError):
            assert isinstance(Certificate(broken).expires_s, int)


def test_a_key_is_found_alone_and_without_a_passphrase() -> None:
    parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    assert private_key(KEY) == KEY
    assert private_key(parameters + KEY + PEM) == KEY
    assert private_key(KEY + KEY) is None
    assert private_key(PEM) is None
    encrypted = KEY.replace("EC PRIVATE", "ENCRYPTED PRIVATE").replace(
        "BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE"
    )
    assert private_key(encrypted) is None
    legacy = KEY.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", 1)
    assert private_key(legacy) is None
