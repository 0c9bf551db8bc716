"""The authorities as OpenSSL finds them one by one: named right, all of them, and trusted."""

import asyncio
import ssl
from pathlib import Path
from zipfile import ZipFile

import certifi
import pytest
import trustme

from infra import trust
from infra.package import AUTHORITIES, Package

ISRG_ROOT_X1 = "4042bcee"
"""As `openssl x509 -subject_hash` names it."""


def test_every_authority_of_the_bundle_is_written(tmp_path: Path) -> None:
    bundle = Path(certifi.where())
    written = trust.write(bundle, tmp_path / "authorities")
    assert written == bundle.read_text(encoding="utf-8").count("BEGIN CERTIFICATE")
    assert len(list((tmp_path / "authorities").iterdir())) == written


def test_a_known_authority_has_the_name_that_openssl_gives_it(tmp_path: Path) -> None:
    trust.write(Path(certifi.where()), tmp_path / "authorities")
    assert (tmp_path / "authorities" / f"{ISRG_ROOT_X1}.0").is_file()


def test_two_authorities_of_one_name_stand_beside_each_other(tmp_path: Path) -> None:
    pem = Path(certifi.where()).read_text(encoding="utf-8").partition("-----END")[0]
    first = pem[pem.index("-----BEGIN") :] + "-----END CERTIFICATE-----\n"
    (tmp_path / "bundle.pem").write_text(first * 2, encoding="utf-8")
    trust.write(tmp_path / "bundle.pem", tmp_path / "authorities")
    assert {each.suffix for each in (tmp_path / "authorities").iterdir()} == {".0", ".1"}


@pytest.mark.parametrize("organization", ["Plain", "  MIXED   case  ", "Grüße Ünïcode", "x" * 64])
def test_openssl_finds_what_was_written(tmp_path: Path, organization: str) -> None:
    authority = trustme.CA(organization_name=organization)
    authority.cert_pem.write_to_path(str(tmp_path / "bundle.pem"))
    trust.write(tmp_path / "bundle.pem", tmp_path / "authorities")
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("localhost").configure_cert(server)
    client.load_verify_locations(capath=tmp_path / "authorities")
    asyncio.run(_shake_hands(server, client))


async def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    listening = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=server)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname="localhost")
        writer.close()


def test_the_archive_brings_its_authorities(packaged: Package) -> None:
    with ZipFile(packaged.archive) as archive:
        names = archive.namelist()
    assert f"{AUTHORITIES}/{ISRG_ROOT_X1}.0" in names
