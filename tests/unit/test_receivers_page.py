"""What docs/receivers.md gives to paste verifies what is sent, and nothing else."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.adapters.ed25519 import NaclEd25519
from chalicelib.domain import signing
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import Ed25519Key, SignatureForm, SigningKey
from infra.package import ROOT
from tests.unit.domain.examples import AWKWARD_BODY, DELIVERY_ID, OTHER_SECRET, SECRET

PAGE = (ROOT / "docs/receivers.md").read_text(encoding="utf-8")
Check = Callable[[dict[str, str], bytes, list[str]], bool]
ED25519 = NaclEd25519()


def pasted() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)  # noqa: S102 - our own page
    return names


def sent(form: SignatureForm, *keys: SigningKey, age_s: int = 0) -> dict[str, str]:
    made = signing.signature_headers(form, keys, DELIVERY_ID, int(time.time()) - age_s, AWKWARD_BODY)
    return {name.lower(): value for name, value in made.items()}


def pair(number: int) -> tuple[Ed25519Key, str]:
    seed = bytes([number]) * 32
    public = ED25519.public_key(seed)
    return Ed25519Key(signing.private_key(seed, public), ED25519.sign), signing.public_key(public)


def test_a_pasted_check_takes_either_secret_while_they_are_rotated() -> None:
    genuine: Check = pasted()["genuine"]
    headers = sent(SignatureForm.RELAY, OTHER_SECRET, SECRET)
    for known in ([SECRET], [OTHER_SECRET], [Secret("whsec_x"), SECRET]):
        assert genuine(headers, AWKWARD_BODY, [each.reveal() for each in known])
    assert not genuine(headers, AWKWARD_BODY, ["whsec_x"])
    assert not genuine(headers, AWKWARD_BODY + b" ", [SECRET.reveal()])
    assert not genuine(sent(SignatureForm.RELAY, SECRET, age_s=400), AWKWARD_BODY, [SECRET.reveal()])


@pytest.mark.parametrize("known", [0, 1])
def test_a_pasted_check_takes_either_public_key_and_no_other(known: int) -> None:
    genuine: Check = pasted()["genuine_pair"]
    keys = [pair(1), pair(2)]
    headers = sent(SignatureForm.STANDARD, *(key for key, _ in keys))
    public = keys[known][1]
    assert genuine(headers, AWKWARD_BODY, [pair(3)[1], public])
    assert not genuine(headers, AWKWARD_BODY, [pair(3)[1]])
    assert not genuine(headers, AWKWARD_BODY + b" ", [public])
    assert not genuine(headers | {"webhook-id": "other"}, AWKWARD_BODY, [public])
    assert not genuine(sent(SignatureForm.STANDARD, SECRET), AWKWARD_BODY, [public])
