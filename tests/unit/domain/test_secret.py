"""A secret is shown by nothing but `reveal()`."""

import copy
import json
import logging
import pickle
import pprint
import re
import traceback
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass
from string import Template

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.secret import MASK, Secret

TEXT = "whsec_c2VjcmV0"


@dataclass(frozen=True, slots=True)
class Holder:
    secret: Secret


def _logged(secret: Secret) -> str:
    return logging.LogRecord(
        "relay", logging.INFO, "", 0, "got %s and %r", (secret, secret), None
    ).getMessage()


def _refuse(secret: Secret) -> None:
    raise ValueError(secret)


def _raised(secret: Secret) -> str:
    with pytest.raises(ValueError, match=re.escape(MASK)) as raised:
        _refuse(secret)
    trace = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    return "".join(trace.format())


WAYS: dict[str, Callable[[Secret], str]] = {
    "repr": repr,
    "str": str,
    "ascii": ascii,
    "an f-string": lambda secret: f"{secret} {secret!r} {secret!s:>40}",
    "format": lambda secret: format(secret, ">20"),
    "percent": lambda secret: "%s %r %a" % (secret, secret, secret),  # noqa: UP031 - the old way is a way too
    "a template": lambda secret: Template("$it").substitute(it=secret),
    "a list": lambda secret: str([secret]),
    "a dataclass": lambda secret: repr(Holder(secret)),
    "asdict": lambda secret: str(asdict(Holder(secret))),
    "astuple": lambda secret: str(astuple(Holder(secret))),
    "pprint": lambda secret: pprint.pformat({"it": secret}),
    "json with a default": lambda secret: json.dumps({"it": secret}, default=str),
    "a log line": _logged,
    "a traceback with its locals": _raised,
    "a copy": lambda secret: str([copy.copy(secret), copy.deepcopy(secret)]),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_shows_a_secret(way: str) -> None:
    shown = WAYS[way](Secret(TEXT))
    assert TEXT not in shown
    assert MASK in shown


@pytest.mark.parametrize("write", [json.dumps, pickle.dumps, vars], ids=["json", "pickle", "vars"])
def test_what_would_write_or_open_it_is_refused(write: Callable[[object], object]) -> None:
    with pytest.raises(TypeError) as refused:
        write(Secret(TEXT))
    assert TEXT not in str(refused.value)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_pickle_holds_it(protocol: int) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Holder(Secret(TEXT)), protocol)


@given(st.text(), st.text())
def test_two_are_equal_when_their_texts_are(one: str, other: str) -> None:
    assert (Secret(one) == Secret(other)) is (one == other)
    assert len({Secret(one), Secret(other)}) == len({one, other})
    assert Secret(one).reveal() == one


def test_a_secret_equals_no_text() -> None:
    text: object = TEXT
    assert Secret(TEXT) != text


def test_an_empty_one_is_false() -> None:
    assert not Secret("")
    assert Secret(TEXT)
