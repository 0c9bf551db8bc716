"""Events: what a producer may post, and that its bytes come through untouched."""

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.event import (
    admit_body,
    is_json,
    matching_patterns,
    packed,
    unpacked,
    valid_content_type,
    valid_pattern,
    valid_type,
)
from tests.unit.domain.examples import AWKWARD_BODY, FEW

LIMIT = 262_144
JSON = "application/json"
REFUSALS_OF_A_BODY = {
    ErrorCode.BODY_EMPTY,
    ErrorCode.BODY_NOT_JSON,
    ErrorCode.BODY_NOT_UTF8,
    ErrorCode.EVENT_TYPE_INVALID,
    ErrorCode.EVENT_TYPE_MISSING,
}


def admit(body: bytes, named: str | None = "order.paid", content_type: str = JSON) -> str:
    return admit_body(body, content_type, named, max_bytes=LIMIT)


def refused(body: bytes, named: str | None = "order.paid", content_type: str = JSON) -> RelayError:
    with pytest.raises(RelayError) as told:
        admit(body, named, content_type)
    return told.value


def test_the_type_is_the_headers_or_the_bodys() -> None:
    assert admit(b"{}", "order.paid") == "order.paid"
    assert admit(b'{"a":{"type":"inner"},"type":"order.paid"}', None) == "order.paid"
    assert admit(b'{"type":"order.paid"}', "order.paid") == "order.paid"


def test_two_different_types_are_a_conflict() -> None:
    fault = refused(b'{"type":"order.sent"}', "order.paid")
    assert (fault.code, fault.field) == (ErrorCode.EVENT_TYPE_CONFLICT, "type")
    assert refused(b'{"type":7}', "order.paid").code is ErrorCode.EVENT_TYPE_CONFLICT


@pytest.mark.parametrize("body", [b"{}", b'{"type":null}', b'[{"type":"a"}]', b'"type"'])
def test_an_event_without_a_type_is_refused(body: bytes) -> None:
    fault = refused(body, None)
    assert (fault.code, fault.field) == (ErrorCode.EVENT_TYPE_MISSING, "Relay-Event-Type")


@pytest.mark.parametrize("body", [b'{"type":7}', b'{"type":["a"]}', b'{"type":{}}', b'{"type":"a b"}'])
def test_a_body_type_that_is_no_type_is_refused_naming_the_member(body: bytes) -> None:
    fault = refused(body, None)
    assert (fault.code, fault.field) == (ErrorCode.EVENT_TYPE_INVALID, "type")


def test_other_media_types_need_the_header_and_are_opaque() -> None:
    assert admit(b"\xff\x00 not json", "order.paid", "application/octet-stream") == "order.paid"
    fault = refused(b'{"type":"order.paid"}', None, "text/plain")
    assert fault.code is ErrorCode.EVENT_TYPE_MISSING


@pytest.mark.parametrize(
    "content_type, expected",
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/json;charset=utf-8", True),
        ("text/json", True),
        ("application/cloudevents+json", True),
        ("application/vnd.api+JSON ; v=1", True),
        ("application/jsonl", False),
        ("application/json-seq", False),
        ("text/plain", False),
        ("application/x-www-form-urlencoded", False),
        ("text/plain; note=application/json", False),
    ],
)
def test_what_counts_as_json(content_type: str, *, expected: bool) -> None:
    assert is_json(content_type) is expected


@pytest.mark.parametrize("body", [b'{"t":"\\ud83d"}', b'{"\\udc00":1}'])
def test_f022_half_a_surrogate_pair_in_an_escape_is_forwarded(body: bytes) -> None:
    assert admit(body) == "order.paid"


def test_f022_half_a_surrogate_pair_in_the_type_is_refused_in_words_that_can_be_sent() -> None:
    fault = refused(b'{"type":"\\ud83d"}', None)
    assert fault.code is ErrorCode.EVENT_TYPE_INVALID
    assert (fault.detail + fault.expected).encode("utf-8")


def test_f022_half_a_surrogate_pair_in_raw_bytes_is_no_utf8() -> None:
    assert refused(b'{"t":"\xed\xa0\xbd"}').code is ErrorCode.BODY_NOT_UTF8


def test_f025_a_byte_order_mark_is_no_json_and_is_opaque_elsewhere() -> None:
    assert refused(b"\xef\xbb\xbf{}").code is ErrorCode.BODY_NOT_JSON
    assert admit(b"\xef\xbb\xbf{}", "order.paid", "text/plain") == "order.paid"


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"a","type":"b","data":{}}',
        b'{"type":"a","type":"a"}',
        b'{"type":"a","ty\\u0070e":"b"}',
        b'{"type":null,"type":"b"}',
    ],
)
@pytest.mark.parametrize("named", [None, "a"])
def test_f026_a_doubled_type_in_the_envelope_is_refused(body: bytes, named: str | None) -> None:
    fault = refused(body, named)
    assert (fault.code, fault.field) == (ErrorCode.BODY_NOT_JSON, "type")


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"a","data":{"x":1,"x":2}}',
        b'{"type":"a","x":1,"x":2}',
        b'{"type":"a","d":{"type":1,"type":2}}',
    ],
)
def test_f026_doubled_keys_elsewhere_are_the_producers_business(body: bytes) -> None:
    assert admit(body, None) == "a"


@pytest.mark.parametrize(
    "body",
    [b'{"amt":30.40,"e":1e2,"z":1.10,"t":0.1}', b"[" + b"9" * 5_000 + b"]", b"[-0, 1E+400, 1e400]"],
)
def test_f028_numbers_are_never_turned_into_numbers(body: bytes) -> None:
    assert admit(body) == "order.paid"
    assert unpacked(packed(body)) == body


@pytest.mark.parametrize("body", [b'{"v":NaN}', b'{"v":-Infinity}', b'{"v":Infinity}', b"NaN"])
def test_f029_what_is_no_json_number_is_refused(body: bytes) -> None:
    assert refused(body).code is ErrorCode.BODY_NOT_JSON


def test_f029_a_number_too_large_for_a_float_is_forwarded_as_text() -> None:
    assert admit(b'{"v":1e400}') == "order.paid"


@pytest.mark.parametrize(
    "body", [b"{", b"{}{}", b"{}x", b"", b"[1,]", b"{'a':1}", b'{"a":01}', b'"a\nb"', b"// a\n{}", b"\x00"]
)
def test_what_is_no_json_is_refused_at_the_door(body: bytes) -> None:
    expected = ErrorCode.BODY_NOT_JSON if body else ErrorCode.BODY_EMPTY
    assert refused(body).code is expected


def test_f031_an_invisible_character_is_no_part_of_a_type_but_of_a_payload() -> None:
    assert refused(b"{}", "user\u200b.created").code is ErrorCode.EVENT_TYPE_INVALID
    form = b"data=a%E2%80%8Bb"
    assert admit(form, "user.created", "application/x-www-form-urlencoded") == "user.created"


@pytest.mark.parametrize("body", ["alert 😱".encode(), "alert 😱".encode("utf-16"), b"\xa4 latin-1"])
def test_f032_text_is_taken_as_the_bytes_it_came_in(body: bytes) -> None:
    assert admit(body, "order.paid", "text/plain; charset=utf-8") == "order.paid"
    assert unpacked(packed(body)) == body


@pytest.mark.parametrize("body", [b"null", b"0", b'""', b"[]", b" "])
def test_f036_scalars_are_bodies_and_nothing_is_not(body: bytes) -> None:
    content_type = "text/plain" if body == b" " else JSON
    assert admit(body, "order.paid", content_type) == "order.paid"
    assert refused(b"", "order.paid", content_type).code is ErrorCode.BODY_EMPTY


def sized(size: int, character: str) -> bytes:
    """Make a JSON string of exactly so many bytes."""
    filling, rest = divmod(size - 2, len(character.encode()))
    return b'"' + b"x" * rest + character.encode() * filling + b'"'


@pytest.mark.parametrize("character", ["x", "漢"])
@pytest.mark.parametrize("size", [262_144, 262_145, 399_000, 409_600, 1_048_576, 1_048_577])
def test_f037_a_body_over_the_limit_is_refused_in_bytes_and_never_cut(size: int, character: str) -> None:
    body = sized(size, character)
    assert len(body) == size
    if size <= LIMIT:
        assert admit(body) == "order.paid"
        assert unpacked(packed(body)) == body
        return
    fault = refused(body)
    assert fault.code is ErrorCode.BODY_TOO_LARGE
    assert str(size) in fault.detail
    assert "262144 bytes" in fault.detail


def test_f037_the_limit_holds_for_every_media_type() -> None:
    assert refused(bytes(LIMIT + 1), "a", "application/octet-stream").code is ErrorCode.BODY_TOO_LARGE


@pytest.mark.parametrize(
    "opening, closing, times", [(b"[", b"]", 500), (b'{"a":', b"}", 500), (b'[{"a":', b"}]", 250)]
)
def test_nesting_ends_at_five_hundred(opening: bytes, closing: bytes, times: int) -> None:
    deep = opening * times + b"1" + closing * times
    assert admit(deep) == "order.paid"
    assert refused(b"[" + deep + b"]").code is ErrorCode.BODY_TOO_DEEP
    assert refused(opening * 40_000 + b"1").code is ErrorCode.BODY_TOO_DEEP


def test_five_hundred_levels_are_not_too_many_beside_others() -> None:
    beside = b"[" * 499 + b"[],[]" + b"]" * 499
    assert admit(beside) == "order.paid"
    assert refused(b"[" + beside + b"]").code is ErrorCode.BODY_TOO_DEEP


def test_brackets_in_strings_and_side_by_side_are_not_deep() -> None:
    assert admit(b'["' + b"[" * 2_000 + b'\\"[["]') == "order.paid"
    assert admit(b"[" + b"[],{}," * 2_000 + b"[]]") == "order.paid"


def test_a_string_that_never_ends_costs_no_more_than_its_length() -> None:
    hostile = b"[" * 501 + b'"' + b'\\"' * 8_000
    began = time.process_time()
    assert refused(hostile).code is ErrorCode.BODY_TOO_DEEP
    assert time.process_time() - began < 1


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@FEW
@given(value=json_values, ascii_only=st.booleans())
def test_every_json_value_is_admitted(value: object, *, ascii_only: bool) -> None:
    body = json.dumps([value], ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert admit(body) == "order.paid"


@FEW
@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\utype01eNa ', max_size=60).map(str.encode))
@example(b'{"type":"' + b"a" * 129 + b'"}')
def test_whatever_is_posted_is_admitted_or_refused_in_words(body: bytes) -> None:
    try:
        event_type = admit(body, None)
    except RelayError as fault:
        refusal: RelayError | None = fault
    else:
        refusal = None
        assert valid_type(event_type, "type")
    if refusal is not None:
        assert refusal.code in REFUSALS_OF_A_BODY
        assert refusal.detail
        assert refusal.expected


@FEW
@given(st.binary(max_size=300) | st.binary(max_size=4).map(lambda piece: piece * 500))
@example(AWKWARD_BODY)
@example(b"")
@example(b"z")
@example(b"=")
def test_a_stored_body_comes_back_exactly(body: bytes) -> None:
    stored = packed(body)
    assert unpacked(stored) == body
    assert len(stored) <= len(body) + 1


def test_a_repetitive_body_is_stored_smaller() -> None:
    assert len(packed(b'{"a":1},' * 1_000)) < 1_000


@pytest.mark.parametrize("text", ["a", "order.paid", "A_1.b..c", "a" * 128])
def test_event_types_of_letters_digits_underscores_and_dots_are_valid(text: str) -> None:
    assert valid_type(text, "type") == text


@pytest.mark.parametrize(
    "text", ["", "a b", "a-b", "a/b", "a*", "*", "é", "a" * 129, "a\n", "a\r\nX-Evil: 1", "\uff41", "a\x00"]
)
def test_f039_any_other_event_type_is_refused_naming_its_field(text: str) -> None:
    with pytest.raises(RelayError) as told:
        valid_type(text, "Relay-Event-Type")
    assert (told.value.code, told.value.field) == (ErrorCode.EVENT_TYPE_INVALID, "Relay-Event-Type")


@pytest.mark.parametrize(
    "text",
    [
        "application/json",
        "text/plain; charset=utf-8",
        "text/plain ;charset=utf-8",
        'multipart/form-data; boundary="a b"',
        "a/b;",
        "a/" + "b" * 254,
    ],
)
def test_media_types_are_kept_as_given(text: str) -> None:
    assert valid_content_type(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "json",
        "/",
        "a/",
        "a b/c",
        "text/plain\r\nX-Evil: 1",
        "text/plain\n",
        "text/plain; n=caf\xe9",
        "text/plain; \x00",
        " text/plain",
        "text/plain ",
        "text/plain; ",
        "text/plain;\t",
        "a/" + "b" * 255,
    ],
)
def test_f039_a_media_type_that_no_header_can_carry_is_refused_at_the_door(text: str) -> None:
    with pytest.raises(RelayError) as told:
        valid_content_type(text)
    assert told.value.code is ErrorCode.CONTENT_TYPE_INVALID


@pytest.mark.parametrize(
    "event_type, patterns",
    [
        ("order", ["order", "*"]),
        ("order.paid", ["order.paid", "order.*", "*"]),
        ("order.item.added", ["order.item.added", "order.item.*", "order.*", "*"]),
    ],
)
def test_the_patterns_that_take_a_type(event_type: str, patterns: list[str]) -> None:
    assert list(matching_patterns(event_type)) == patterns


words = st.text(alphabet="ab.", min_size=1, max_size=6)


@FEW
@given(name=words, start=words, wide=st.booleans())
def test_a_pattern_takes_a_type_exactly_when_it_is_listed(name: str, start: str, *, wide: bool) -> None:
    pattern = f"{start}.*" if wide else start
    takes = name.startswith(f"{start}.") if wide else name == start
    assert (pattern in set(matching_patterns(name))) is takes


@pytest.mark.parametrize("text", ["*", "order.*", "order.paid", "a.b.*"])
def test_patterns_are_a_type_all_below_a_name_or_everything(text: str) -> None:
    assert valid_pattern(text, "event_types") == text


@pytest.mark.parametrize(
    "text", ["", "**", ".*", "*.paid", "order*", "order.*.paid", "a.*.*", "a b", "a" * 129, "a\n"]
)
def test_any_other_pattern_is_refused(text: str) -> None:
    with pytest.raises(RelayError) as told:
        valid_pattern(text, "event_types")
    assert (told.value.code, told.value.field) == (ErrorCode.FIELD_INVALID, "event_types")
