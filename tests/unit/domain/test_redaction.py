"""Redaction: no sensitive value is shown, whatever the payload, and nothing else is changed without need."""

import json
import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chalicelib.domain import redaction
from chalicelib.domain.redaction import WORD_MIN, NotJsonError, mark, plain_number
from chalicelib.domain.secret import MASK
from chalicelib.domain.sensitive import Path, parse
from tests.unit.domain.examples import FEW
from tests.unit.domain.payloads import PATHS, marked_payloads

CARD = (parse("$.card.number"), parse("$.items[*].name"))
PAYLOAD = b'{"id": 1.0,  "card":{"number" : "4111 1111","n":2},\n"items":[{"name":["Ann", 7]},{}]}\n'


def shown(body: bytes, *paths: str) -> str | None:
    return redaction.payload(body, tuple(map(parse, paths)))


def answer(start: bytes, values: frozenset[str] | None = frozenset(), *, cut: bool = False) -> bytes:
    return redaction.response(start, CARD, values, cut=cut)


def test_what_is_marked_is_hidden_and_all_else_is_as_it_was_posted() -> None:
    assert shown(PAYLOAD, "$.card.number", "$.items[*].name") == (
        f'{{"id": 1.0,  "card":{{"number" : "{MASK}","n":2}},\n"items":[{{"name":"{MASK}"}},{{}}]}}\n'
    )
    assert redaction.values_in(PAYLOAD, CARD) == frozenset({"4111 1111", "Ann", "7"})


@pytest.mark.parametrize("body", [b"", b"[]", b"0", b'"x"', b" {} ", b'{"a":[1,2,[{}]],"":null}'])
def test_what_no_path_marks_is_shown_to_the_byte(body: bytes) -> None:
    expected = body.decode() if body else None
    assert shown(body, "$.card.number") == expected


def test_the_whole_of_a_payload_can_be_marked() -> None:
    assert shown(b' [1, "two"] ', "$") == f' "{MASK}" '


def test_a_member_that_stands_twice_is_hidden_twice() -> None:
    assert shown(b'{"a":1,"a":{"b":2}}', "$.a") == f'{{"a":"{MASK}","a":"{MASK}"}}'


@pytest.mark.parametrize(
    "body",
    [
        b"name=4111",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b'{"card":',
        b"{} {}",
        b"[1,]",
        b"[1 2]",
        b"{1:2}",
        b'{"a" 1}',
        b"[}",
        b"]",
        b"NaN",
        b'"\\x"',
        b'"\x01"',
        b"01",
    ],
)
def test_what_is_no_json_is_hidden_whole(body: bytes) -> None:
    assert shown(body, "$.card.number") is None
    assert redaction.values_in(body, CARD) is None


@pytest.mark.parametrize("paths", [CARD, (), (parse("$"),)])
@FEW
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text()
        | st.integers(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    )
)
def test_whatever_is_json_is_read(paths: tuple[Path, ...], value: Any) -> None:  # noqa: ANN401 - any JSON
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        if paths == ():
            assert not mark(text, paths).values
        mark(text, paths)


@given(st.text("[]{},:\"\\ 1-.eatruflsn\n\t'x", max_size=12))
def test_what_python_does_not_read_is_not_read_either(text: str) -> None:
    try:
        json.loads(text, parse_constant=lambda _: 1 / 0)
        readable = True
    except (ValueError, ZeroDivisionError):
        readable = False
    try:
        mark(text, CARD)
    except NotJsonError:
        assert not readable
    else:
        assert readable


def test_nesting_and_length_cost_neither_the_stack_nor_much_time() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    many = json.dumps([{"name": f"person {n}", "note": "x" * 20} for n in range(4_000)]).encode()
    began = time.process_time()
    assert shown(deep, "$[0]") == f'["{MASK}"]'
    assert shown(many, "$[*].name") is None
    assert shown(many, "$[0].name") is not None
    assert time.process_time() - began < 5


def test_an_echo_is_masked_where_it_occurs() -> None:
    values = frozenset({"4111 1111", 'a"b<c'})
    said = b'{"message":"4111 1111 declined","4111 1111":[true],"card":{"number":"other"},"n":5}'
    assert json.loads(answer(said, values)) == {
        "message": f"{MASK} declined", MASK: [True], "card": {"number": MASK}, "n": 5,
    }  # fmt: skip
    for each in ("4111 1111", "4111%201111", "4111+1111", 'a"b<c', r"a\"b<c", "a&quot;b&lt;c"):
        assert answer(f"no {each}!".encode(), values) == f"no {MASK}!".encode()


def test_one_long_value_takes_not_long() -> None:
    long = json.dumps({"card": {"number": "\u00e9'\"/" * 20_000}, "other": "short"}, ensure_ascii=False)
    began = time.process_time()
    assert shown(long.encode(), "$.card") == f'{{"card": "{MASK}", "other": "short"}}'
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "value, echo",
    [
        ("+41791234567", r"\u002B41791234567"),
        ("Zoë Müller", r"Zo\u00EB M\u00FCller"),
        ("Zoë Müller", r"Zo\u00eb M\u00fcller"),
        ('an "odd" one', r"an \u0022odd\u0022 one"),
        ("d'Arc & <sons>", r"d\u0027Arc \u0026 \u003csons\u003e"),
        ("d'Arc & <sons>", r"d'Arc \u0026 \u003csons\u003e"),
        ("a=b'c", r"a\u003db\u0027c"),
        ("12/2027", r"12\/2027"),
        ("d'Arc", "d&#39;Arc"),
        ('an "odd" one', "an &#34;odd&#34; one"),
        ("Zoë/1", "Zo%c3%ab%2f1"),
        ("d'Arc (1)", "d'Arc%20(1)"),
    ],
)
def test_an_echo_is_masked_as_any_program_escapes_it(value: str, echo: str) -> None:
    """Each is how some well-known program writes it: .NET, Go, PHP, Java's Gson, browsers."""
    for text in (f"no {echo}.", json.dumps({"message": f"no {echo}."})):
        written = json.dumps(echo)[1:-1] if text.startswith("{") else echo
        assert answer(text.encode(), frozenset([value])).decode() == text.replace(written, MASK)


def test_a_number_is_an_echo_however_it_is_written() -> None:
    values = redaction.values_in(b'{"card":{"number":4.111e3}}', CARD)
    assert values == frozenset({"4.111e3", "4111"})
    assert answer(b'[4111, 4111.0, "4111", 4112]', values) == f'["{MASK}", "{MASK}", "{MASK}", 4112]'.encode()


def test_a_short_value_is_an_echo_only_as_a_word() -> None:
    assert (
        answer(b"code 123, not 1234 or x123", frozenset({"123"})) == f"code {MASK}, not 1234 or x123".encode()
    )
    assert answer(b'{"at":1234,"cvv":123}', frozenset({"123"})) == f'{{"at":1234,"cvv":"{MASK}"}}'.encode()


def test_a_path_marks_in_the_answer_too() -> None:
    said = b'{"card":{"number":"fresh"},"note":"fresh"}'
    assert json.loads(answer(said)) == {"card": {"number": MASK}, "note": MASK}


@pytest.mark.parametrize("start", [b'{"card":{"num', b"oops: [1", b"\xff\x00", b"<p>{</p>"])
def test_what_may_be_a_piece_of_json_or_is_no_text_is_hidden_whole(start: bytes) -> None:
    assert answer(start) == MASK.encode()


def test_nothing_is_shown_of_an_answer_to_a_payload_that_cannot_be_read() -> None:
    assert answer(b"ok", None) == MASK.encode()
    assert answer(b"", None) == b""


def test_the_beginning_of_an_echo_at_a_cut_is_masked() -> None:
    values = frozenset({"4111 1111", "Ann"})
    assert answer(b"declined: 4111 11", values, cut=True) == f"declined: {MASK}".encode()
    assert answer(b"declined: 4111 11", values) == b"declined: 4111 11"
    assert answer(b"fine", values, cut=True) == b"fine"


def test_masking_comes_to_an_end() -> None:
    assert answer(b"a ** b", frozenset({"**"})) == b"a ** b"
    assert answer(b"x" * 20 + b"****", frozenset({"x****"})) == MASK.encode()


def says(text: str, value: str) -> bool:
    """Say whether a text says a value, if it is JSON however that is escaped."""
    try:
        return any(value in token.value for token in mark(text, ()).shown)
    except NotJsonError:
        return value in text


@FEW
@given(marked_payloads(WORD_MIN), st.booleans(), st.sampled_from([None, 1]))
def test_no_sensitive_value_is_shown_whatever_the_payload(
    made: tuple[dict[str, Any], list[str]],
    ascii_only: bool,  # noqa: FBT001 - generated
    indent: int | None,
) -> None:
    value, secret = made
    # What stands in a member's name of every payload is no secret.
    assume(not any(each in json.dumps(sorted(value)) for each in secret))
    body = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    text = shown(body, *PATHS)
    assert text is not None
    assert not any(says(text, each) for each in secret)
    assert json.loads(text)["plain"] in {value["plain"], MASK} or any(
        each in str(value["plain"]) for each in secret
    )
    values = redaction.values_in(body, tuple(map(parse, PATHS)))
    for said in (body, b"you sent " + body, "; ".join(secret).encode(), json.dumps(secret).encode()):
        for cut in (False, True):
            back = redaction.response(said, tuple(map(parse, PATHS)), values, cut=cut).decode()
            assert not any(says(back, each) for each in secret)


@given(st.integers(-(10**30), 10**30), st.integers(-40, 40))
def test_a_number_is_written_plainly(whole: int, exponent: int) -> None:
    plain = plain_number(f"{whole}e{exponent}")
    assert "e" not in plain or abs(len(str(abs(whole))) - 1 + exponent) > 40
    assert float(plain) == float(f"{whole}e{exponent}")


@pytest.mark.parametrize("digits", ["1e999999999999999999999", "-0", "0.10", "1" * 5_000, "1e-99999"])
def test_no_number_is_too_odd(digits: str) -> None:
    assert plain_number(digits) in {digits, "-0", "0.1"}
