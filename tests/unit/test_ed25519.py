"""Ed25519 by libsodium: the vectors of RFC 8032, and the form in which keys and signatures are written."""

import base64

import pytest

from chalicelib.adapters.ed25519 import NaclEd25519
from chalicelib.domain import signing
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import BadSecretError, Ed25519Key, SignatureForm, sign_asymmetric

# RFC 8032 §7.1: seed, public key, message, signature.
VECTORS = {
    "TEST 1": (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    "TEST 2": (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
    "TEST 3": (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
}
ED25519 = NaclEd25519()


@pytest.mark.parametrize("vector", VECTORS)
def test_the_vectors_of_rfc_8032(vector: str) -> None:
    seed, public, message, signature = map(bytes.fromhex, VECTORS[vector])
    assert ED25519.public_key(seed) == public
    assert ED25519.sign(seed, message) == signature


@pytest.mark.parametrize("vector", VECTORS)
def test_a_private_key_is_written_with_its_public_one_and_signs_what_the_form_says(vector: str) -> None:
    seed, public, *_ = map(bytes.fromhex, VECTORS[vector])
    secret = signing.private_key(seed, public)
    assert secret.reveal() == "whsk_" + base64.b64encode(seed + public).decode()
    assert signing.public_key(public) == "whpk_" + base64.b64encode(public).decode()
    signed = sign_asymmetric(Ed25519Key(secret, ED25519.sign), "id", 5, b"body")
    expected = ED25519.sign(seed, b"id.5.body")
    assert signed == "v1a," + base64.b64encode(expected).decode()


def test_neither_kind_of_key_is_taken_for_the_other() -> None:
    seed, public, *_ = map(bytes.fromhex, VECTORS["TEST 1"])
    pair = Ed25519Key(signing.private_key(seed, public), ED25519.sign)
    with pytest.raises(BadSecretError):
        signing.standard_key(pair.secret)
    with pytest.raises(BadSecretError):
        signing.signature_headers(SignatureForm.RELAY, [pair], "id", 5, b"")
    with pytest.raises(BadSecretError):
        sign_asymmetric(Ed25519Key(Secret("whsec_" + "A" * 44), ED25519.sign), "id", 5, b"")
