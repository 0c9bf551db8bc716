"""Payloads with sensitive values at marked places, and with their echoes at others."""

from typing import Any

from hypothesis import strategies as st

PATHS = ("$.a", "$.items[*].name", "$.deep.b[1]", "$['odd name'].*")
_PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=20)


def _values(length: int) -> st.SearchStrategy[str | int]:
    """Make values of so many characters and more; no blanks, no words of JSON's own, nothing of a mask."""
    texts = st.text(st.characters(exclude_characters="*", codec="utf-8"), min_size=length)
    return texts.filter(str.strip).filter(lambda text: text not in "true false null") | st.integers(
        min_value=10 ** (length - 1)
    )


@st.composite
def marked_payloads(draw: st.DrawFn, length: int) -> tuple[dict[str, Any], list[str]]:
    """Make a payload and the values in it that `PATHS` mark, of so many characters and more."""
    secret = [draw(_values(length)) for _ in range(4)]
    echo = draw(st.sampled_from(secret))
    value = {
        "a": secret[0],
        "items": [{"name": secret[1], "x": draw(_PLAIN)}, {"name": {"first": [secret[2]]}}],
        "deep": {"b": [draw(_PLAIN), secret[3]]},
        "odd name": {"q": secret[0], "r": [secret[1], None]},
        "note": draw(st.sampled_from([echo, f"said {echo}!", {f"{echo}": 1}, [[echo, f"{echo}{echo}"]]])),
        "plain": draw(_PLAIN),
    }
    return value, [str(each) for each in secret]
