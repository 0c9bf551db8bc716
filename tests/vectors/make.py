"""Makes signatures.json with the signer that deliveries are signed with: `python -m tests.vectors.make`."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chalicelib.adapters.ed25519 import NaclEd25519
from chalicelib.domain import signing
from chalicelib.domain.signing import Ed25519Key, SignatureForm, SigningKey

FILE = Path(__file__).with_name("signatures.json")
NOW_S = 1_764_000_000
DELIVERY_ID = "019ab697-e87b-77c3-aa57-0f07dd900c04"
ED25519 = NaclEd25519()
NEW, OLD, OTHER = (signing.new_secret(bytes([number]) * 32) for number in (1, 2, 3))
SHORT = signing.new_secret(b"k" * 8)
BODIES = {
    "JSON with odd blanks": b'{"a": 1.0,  "b":"\\u2028x","c":[ ]}\n',
    "letters of other scripts": '{"name":"Zoë 漢字 😊"}'.encode(),
    "bytes that are no text": bytes(range(256)),
    "no byte at all": b"",
    "only a line's end": b"\r\n",
    "a number with a point": b"1764000000.5",
    "much of it": b"x" * 5_000,
}
BODY = BODIES["letters of other scripts"]
RELAY, STANDARD = SignatureForm.RELAY, SignatureForm.STANDARD
NAMES = {form: signing.IDENTITY[form] for form in (RELAY, STANDARD)}


@dataclass(frozen=True, slots=True)
class Vector:
    """One request, the keys its receiver has, and whether it is genuine."""

    name: str
    headers: dict[str, str]
    keys: list[str]
    genuine: bool
    body: bytes = field(default=BODY, repr=False)
    now_s: int = NOW_S

    def row(self) -> dict[str, Any]:
        """Give it as it stands in the file."""
        shown = {"name": self.name, "genuine": self.genuine, "now": self.now_s, "keys": self.keys}
        return shown | {"headers": self.headers, "body_base64": base64.b64encode(self.body).decode()}


def vectors() -> list[Vector]:
    """Make every vector anew; the same each time."""
    both = [vector for form in (RELAY, STANDARD) for vector in (*_genuine(form), *_false(form))]
    return [*both, *_pairs(), *_confused()]


def text() -> str:
    """Give the file's text: a vector a line."""
    return "[\n" + ",\n".join(json.dumps(each.row()) for each in vectors()) + "\n]\n"


def signed(
    form: SignatureForm, *keys: SigningKey, body: bytes = BODY, age_s: int = 0, delivery_id: str = DELIVERY_ID
) -> dict[str, str]:
    """Sign as a delivery is signed, newest key first."""
    return signing.signature_headers(form, keys, delivery_id, NOW_S - age_s, body)


def _genuine(form: SignatureForm) -> Iterator[Vector]:
    new, old, other = NEW.reveal(), OLD.reveal(), OTHER.reveal()
    for what, body in BODIES.items():
        yield Vector(f"{form}: {what}", signed(form, NEW, body=body), [new], genuine=True, body=body)
    rotated = signed(form, NEW, OLD)
    for what, keys in (
        ("new", [new]),
        ("old", [old]),
        ("both", [old, new]),
        ("another and the old", [other, old]),
    ):
        yield Vector(f"{form}: two signatures, {what} known", rotated, keys, genuine=True)
    yield Vector(f"{form}: the old first", signed(form, OLD, NEW), [new], genuine=True)
    for age_s in (300, -300):
        yield Vector(f"{form}: {age_s} s old", signed(form, NEW, age_s=age_s), [new], genuine=True)
    for what, value in _among_others(form).items():
        yield Vector(f"{form}: among {what}", _with(form, 2, value), [new], genuine=True)
    yield Vector(
        f"{form}: beside keys that are none", signed(form, NEW), ["", "whsec_", "whsec_!", new], genuine=True
    )
    lower = {name.lower(): value for name, value in signed(form, NEW).items()}
    yield Vector(f"{form}: names in lower case", lower, [new], genuine=True)


def _among_others(form: SignatureForm) -> dict[str, str]:
    separator, right = (",", "v1=") if form is RELAY else (" ", "v1,")
    mine = signed(form, NEW)[NAMES[form][2]]
    return {
        "signatures of versions to come": separator.join((f"v9{right[2]}abc", mine)),
        "a wrong one before it": separator.join((right + "0" * 64, mine)),
        "itself twice": separator.join((mine, mine)),
        "what is none": separator.join(("", "v1", "=", mine, "")),
        "others with a blank between": f"{right}00{separator} {mine}",
        "what is not ASCII": separator.join(("v1=caf\xe9", mine)),
    }


def _false(form: SignatureForm) -> Iterator[Vector]:
    new = NEW.reveal()
    genuine = signed(form, NEW)
    for age_s in (301, -301, 86_400):
        yield Vector(f"{form}: {age_s} s old", signed(form, NEW, age_s=age_s), [new], genuine=False)
    for what, keys in (("of another key", [OTHER.reveal()]), ("and no key is known", [""])):
        yield Vector(f"{form}: {what}", genuine, keys, genuine=False)
    yield Vector(f"{form}: a blank more in the body", genuine, [new], genuine=False, body=BODY + b" ")
    yield Vector(f"{form}: the body was left out", genuine, [new], genuine=False, body=b"")
    for name in NAMES[form][0 if form is STANDARD else 1 :]:
        left = {each: value for each, value in genuine.items() if each != name}
        yield Vector(f"{form}: without {name}", left, [new], genuine=False)
        yield Vector(f"{form}: {name} is empty", genuine | {name: ""}, [new], genuine=False)
    for what, value in _spoilt(genuine[NAMES[form][2]]).items():
        yield Vector(f"{form}: its signature {what}", _with(form, 2, value), [new], genuine=False)
    for stamp in (
        f"{NOW_S}000",
        "-1",
        f"+{NOW_S}",
        f"{NOW_S}.0",
        "1e9",
        "NaN",
        "\uff11",
        f"{NOW_S}\n",
        "9" * 400,
    ):
        yield Vector(f"{form}: the time is {stamp[:20]!a}", _with(form, 1, stamp), [new], genuine=False)
    yield Vector(f"{form}: the time was changed", _with(form, 1, str(NOW_S + 1)), [new], genuine=False)


def _spoilt(signature: str) -> dict[str, str]:
    return {
        "lacks its end": signature[:-1],
        "is cut to its version": signature[:3],
        "has more at its end": signature + "0",
        "is in capitals": signature[:3] + signature[3:].swapcase(),
        "has no version": signature[3:],
        "has another version": "v2" + signature[2:],
        "is apart by another sign": f"{signature[:3]}0;{signature}",
        "is very long": signature[:3] + "A" * 5_000,
        "is not ASCII": "v1=caf\xe9",
    }


def _with(form: SignatureForm, place: int, value: str) -> dict[str, str]:
    return signed(form, NEW) | {NAMES[form][place]: value}


def _pairs() -> Iterator[Vector]:
    (new, new_public), (old, old_public), (_, other) = (_pair(number) for number in (4, 5, 6))
    for what, body in BODIES.items():
        yield Vector(f"pair: {what}", signed(STANDARD, new, body=body), [new_public], genuine=True, body=body)
    rotated = signed(STANDARD, new, old)
    for what, keys in (
        ("new", [new_public]),
        ("old", [old_public]),
        ("another and the old", [other, old_public]),
    ):
        yield Vector(f"pair: two signatures, {what} known", rotated, keys, genuine=True)
    mixed = signed(STANDARD, new, OLD)
    for what, key in (("pair", new_public), ("secret", OLD.reveal())):
        yield Vector(f"pair: from a secret to a pair, the {what} known", mixed, [key], genuine=True)
    mine = signed(STANDARD, new)
    yield Vector("pair: another key", mine, [other], genuine=False)
    yield Vector("pair: a blank more in the body", mine, [new_public], genuine=False, body=BODY + b" ")
    yield Vector("pair: another id", mine | {"webhook-id": "other"}, [new_public], genuine=False)
    yield Vector("pair: 301 s old", signed(STANDARD, new, age_s=301), [new_public], genuine=False)
    blank = new_public[:20] + " " + new_public[20:]
    for key in (
        "whpk_",
        "whpk_AAAA",
        "whpk_!!!!",
        new_public.removeprefix("whpk_"),
        blank,
        new_public + "AAAA",
    ):
        yield Vector(f"pair: its key is {key}", mine, [key], genuine=False)
    right = mine["webhook-signature"]
    for value in ("v1a,", "v1a,AAAA", "v1a,!!!!", "v1a", right.replace("v1a,", "v1,"), right + "v1a,AAAA"):
        spoilt = mine | {"webhook-signature": value}
        yield Vector(f"pair: its signature is {value}", spoilt, [new_public], genuine=False)


def _confused() -> Iterator[Vector]:
    """Give what one form, key or part may be taken for another."""
    new = NEW.reveal()
    relay, standard = signed(RELAY, NEW), signed(STANDARD, NEW)
    yield Vector("no header at all", {}, [new], genuine=False)
    wrong = relay | {"Relay-Signature": "v1=00"} | standard
    yield Vector("a wrong signature of one form beside a right one of the other", wrong, [new], genuine=False)
    body = BODIES["a number with a point"]
    moved = signed(STANDARD, NEW, body=body)
    moved |= {"webhook-id": f"{DELIVERY_ID}.{NOW_S}", "webhook-timestamp": str(NOW_S)}
    yield Vector("the body's begin taken for the time", moved, [new], genuine=False, body=b"5")
    hexed = relay["Relay-Signature"].removeprefix("v1=")
    yield Vector(
        "hex in the standard form", standard | {"webhook-signature": "v1," + hexed}, [new], genuine=False
    )
    for empty in ("", "whsec_", SHORT.reveal()):
        forged = _by_hand(empty)
        yield Vector(f"signed with a key that is none, {empty!r}", forged, [empty], genuine=False)


def _by_hand(key: str) -> dict[str, str]:
    """Sign as the signer refuses to: with a key that anybody can guess."""
    digest = hmac.digest(key.encode(), f"{NOW_S}.".encode() + BODY, hashlib.sha256)
    return {"Relay-Timestamp": str(NOW_S), "Relay-Signature": f"v1={digest.hex()}"}


def _pair(number: int) -> tuple[Ed25519Key, str]:
    seed = bytes([number]) * 32
    public = ED25519.public_key(seed)
    return Ed25519Key(signing.private_key(seed, public), ED25519.sign), signing.public_key(public)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
