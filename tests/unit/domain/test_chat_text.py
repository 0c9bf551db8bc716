"""What a message says: the type first, the payload after it, cut where a reader would see no half."""

import json
import unicodedata
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.chat.platform import PLATFORMS
from chalicelib.domain.chat.text import CUT, clusters, fitted, indented, rendered
from chalicelib.domain.endpoint import Transport
from tests.unit.domain.chats import CHATS
from tests.unit.domain.examples import FEW, event

EACH = pytest.mark.parametrize("transport", CHATS)
HEAD = "order.paid\n\n"
FAMILY = "👩\u200d👩\u200d👧"
WAVE = "👋\U0001f3fd"
FLAG = "🇩🇪"
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
ACCENT = "e\u0301\u0323"
HEART = "❤\ufe0f"
KEYCAP = "1\ufe0f\u20e3"
HANGUL = "\u1112\u1161\u11ab"
WHOLE = (FAMILY, WAVE, FLAG, SCOTLAND, ACCENT, HEART, KEYCAP, HANGUL, "😊", "a", "漢", "\r\n", "&", "<", "!")
PIECES = st.one_of(
    st.sampled_from(WHOLE), st.characters(categories=["L", "M", "N", "P", "S", "Z", "Cc", "Cf"])
)
TEXTS = st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(max_size=60))
ESCAPES = st.sampled_from([PLATFORMS[each].escapes for each in CHATS])


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(each, each) for each in text)


def said(transport: Transport, body: bytes, content_type: str = "text/plain") -> str:
    row = PLATFORMS[transport]
    return rendered(event(body, content_type), row.escapes, row.text_max)


@given(TEXTS, ESCAPES, st.integers(1, 80))
def test_any_text_fits_and_ends_between_two_characters(
    text: str, escapes: Mapping[str, str], units_max: int
) -> None:
    written = fitted(text, escapes, units_max)
    assert utf16(written) <= units_max
    if utf16(escaped(text, escapes)) <= units_max:
        assert written == escaped(text, escapes)
        return
    assert written.endswith(CUT)
    kept = written.removesuffix(CUT)
    cut = next(at for at in range(len(text) + 1) if escaped(text[:at], escapes) == kept)
    assert list(clusters(text[:cut])) + list(clusters(text[cut:])) == list(clusters(text))
    assert utf16(kept + escaped(next(iter(clusters(text[cut:]))), escapes) + CUT) > units_max
    after = text[cut]
    assert unicodedata.category(after) not in {"Mn", "Mc", "Me"} or cut == 0 or text[cut - 1] in "\r\n"
    assert not text[:cut].endswith("\u200d") or after in "\r\n"


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("room", range(1, 12))
def test_what_readers_see_as_one_character_is_never_halved(whole: str, room: int) -> None:
    written = fitted("x" * 5 + whole * 10, {}, 5 + room)
    assert written.removesuffix(CUT) == "x" * 5 + whole * (
        (utf16(written.removesuffix(CUT)) - 5) // utf16(whole)
    )
    assert list(clusters(whole * 3)) == [whole] * 3


@given(TEXTS)
def test_characters_put_together_are_the_text(text: str) -> None:
    assert "".join(clusters(text)) == text


def test_a_character_without_end_takes_no_message_with_it() -> None:
    assert fitted("ab" + "\u0301" * 5_000, {}, 100) == f"a{CUT}"


@EACH
@pytest.mark.parametrize(
    "character, count", [("😀", 4_096), ("😀", 4_097), ("!", 4_096), ("&", 9_000), ("_", 9_000)]
)
def test_f137_the_limit_holds_after_escaping_in_the_stricter_unit(
    transport: Transport, character: str, count: int
) -> None:
    row = PLATFORMS[transport]
    text = said(transport, (character * count).encode())
    assert row.text_max - 6 <= utf16(text) <= row.text_max
    assert text.startswith(HEAD.replace(".", "."))
    piece = row.escapes.get(character, character)
    assert text == HEAD + piece * ((utf16(text) - len(HEAD) - 1) // utf16(piece)) + CUT


@EACH
def test_f137_many_links_are_cut_as_any_text(transport: Transport) -> None:
    links = " ".join(f"https://shop.example/orders/{n}" for n in range(420)).encode()
    assert len(links) > 13_000
    assert utf16(said(transport, links)) <= PLATFORMS[transport].text_max


def test_f137_nothing_is_formatted_so_an_exclamation_mark_needs_no_escape() -> None:
    assert said(Transport.TELEGRAM, b"!" * 4_084) == HEAD + "!" * 4_084
    assert said(Transport.TELEGRAM, b"!" * 4_085) == HEAD + "!" * 4_083 + CUT


def test_f140_one_character_too_many_for_discord_is_cut_not_refused() -> None:
    assert utf16(said(Transport.DISCORD, b"x" * 2_001)) == 2_000
    assert said(Transport.DISCORD, b"x" * 1_988) == HEAD + "x" * 1_988


def test_small_json_is_written_on_lines_as_it_was_posted() -> None:
    body = rb'{"type":"order.paid","n":1.0,"big":12345678901234567890,"e":[],"o":{},"l":[1,{"a":null}]}'
    assert said(Transport.TELEGRAM, body, "application/json") == HEAD + (
        '{\n  "type": "order.paid",\n  "n": 1.0,\n  "big": 12345678901234567890,\n  "e": [],\n  "o": {},\n'
        '  "l": [\n    1,\n    {\n      "a": null\n    }\n  ]\n}'
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@FEW
@given(VALUES)
def test_json_on_lines_is_the_same_json(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value, indent=1)):
        assert json.loads(indented(text)) == value


def test_strings_lose_the_escapes_they_do_not_need() -> None:
    assert indented(r'"caf\u00e9 \ud83d\ude0a \u4f60 \" \n"') == r'"café 😊 你 \" \n"'
    assert indented(r'"\ud83d"') == r'"\ud83d"'


def test_large_json_is_written_as_it_was_posted() -> None:
    body = b'{"a":"' + b"x" * 5_000 + b'"}'
    assert said(Transport.TELEGRAM, body, "application/json").startswith(HEAD + '{"a":"xxx')


@pytest.mark.parametrize("depth", [1, 20, 21, 450])
def test_deep_json_is_not_indented_without_end(depth: int) -> None:
    text = indented("[" * depth + "]" * depth)
    assert json.loads(text) == json.loads("[" * depth + "]" * depth)
    assert max(map(len, text.split("\n"))) <= 2 * 20 + 2


@pytest.mark.parametrize("body", [bytes(range(256)), b"\x89PNG\r\n", b"a\x00b", "\x85".encode()])
def test_what_is_no_text_is_told_by_its_size_and_type(body: bytes) -> None:
    assert said(Transport.SLACK, body, "image/png") == f"{HEAD}{len(body)} bytes of image/png"
