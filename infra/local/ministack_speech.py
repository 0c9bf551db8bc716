"""ministack with statements read once and requests read by a faster server; answers stay the same.

As shipped, every PartiQL statement of a batch is read twice, letter by letter, though the same few
texts come again and again with other parameters; an item is copied thrice for each change by what
copies anything; and each request passes through an HTTP server that costs more than the request. Used
by `ministack_fast`; figures measured with it must say so.
"""

import importlib
from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache
from operator import itemgetter
from types import NoneType, SimpleNamespace
from typing import Any

Parse = Callable[[str, Any], Any]
Fill = Callable[[Any], Any]
_NEVER_CHANGE = frozenset({str, int, float, bool, bytes, NoneType})
_TEXTS = 4_096
_KEEP_ALIVE_S = 75


def mend_statements() -> None:
    """Keep what statements that were read before mean, and read none twice in a row."""
    dynamodb: Any = importlib.import_module("ministack.services.dynamodb")
    dynamodb.parse_partiql_statement = kept(dynamodb.parse_partiql_statement)
    dynamodb._parse_partiql = _once(dynamodb._parse_partiql)  # noqa: SLF001


def mend_conditions() -> None:
    """Read each condition once, not once for every item it is held against."""
    dynamodb: Any = importlib.import_module("ministack.services.dynamodb")
    tokens_of = lru_cache(_TEXTS)(dynamodb._tokenize)  # noqa: SLF001
    dynamodb._tokenize = lambda text: list(tokens_of(text))  # noqa: SLF001
    dynamodb._condition_syntax_error = lru_cache(_TEXTS)(dynamodb._condition_syntax_error)  # noqa: SLF001


def mend_copies() -> None:
    """Copy items, as each change does three times, without the care that other values need."""
    dynamodb: Any = importlib.import_module("ministack.services.dynamodb")
    dynamodb.copy = SimpleNamespace(deepcopy=copied)


def copied(value: Any) -> Any:  # noqa: ANN401 - whatever JSON has
    """Copy what JSON is made of without deepcopy's account of what it has seen, and the rest by deepcopy."""
    kind = type(value)
    if kind is dict:
        return {key: copied(each) for key, each in value.items()}
    if kind is list:
        return [copied(each) for each in value]
    return value if kind in _NEVER_CHANGE else deepcopy(value)


def kept(parse: Parse) -> Parse:
    """Read each text once for each row of parameter types, and only put other parameters in after that.

    What a text means depends on the types of its parameters, never on their values, but in a bag. A
    reading that does not come out the same when it is filled is not kept.
    """

    @lru_cache(_TEXTS)
    def form_of(text: str, types: tuple[str, ...]) -> Fill | None:
        blanks = [{each: f"blank {place}"} for place, each in enumerate(types)]
        form = _form(parse(text, blanks), {id(each): place for place, each in enumerate(blanks)})
        others = [{each: f"other {place}"} for place, each in enumerate(types)]
        return form if form(others) == parse(text, others) else None

    def mended(text: str, parameters: Any) -> Any:  # noqa: ANN401 - ministack has no types
        given = parameters or []
        if "<<" in text or not all(isinstance(each, dict) and len(each) == 1 for each in given):
            return parse(text, parameters)
        try:
            form = form_of(text, tuple(next(iter(each)) for each in given))
        except ValueError:
            form = None
        return form(given) if form else parse(text, parameters)

    return mended


def _form(node: Any, blanks: dict[int, int]) -> Fill:  # noqa: ANN401 - ministack has no types
    """Make what builds a reading anew around other parameters; what can be changed is never shared."""
    place = blanks.get(id(node))
    if place is not None:
        return itemgetter(place)
    match node:
        case dict():
            parts = [(key, _form(value, blanks)) for key, value in node.items()]
            return lambda given: {key: part(given) for key, part in parts}
        case list():
            items = [_form(each, blanks) for each in node]
            return lambda given: [item(given) for item in items]
        case tuple() if not _flat(node):
            members = [_form(each, blanks) for each in node]
            return lambda given: tuple([member(given) for member in members])
        case _:
            return lambda _: node


def _flat(node: Any) -> bool:  # noqa: ANN401 - ministack has no types
    return not any(isinstance(each, dict | list | tuple) for each in node)


def _once(parse: Parse) -> Parse:
    """Give the second reading of the same statement the first one's result, then forget it."""
    last: list[tuple[str, Any, Any]] = []

    def mended(statement: str, parameters: Any) -> Any:  # noqa: ANN401 - ministack has no types
        if last:
            text, given, parsed = last.pop()
            if text is statement and given is parameters:
                return parsed
        parsed = parse(statement, parameters)
        last.append((statement, parameters, parsed))
        return parsed

    return mended


def mend_server() -> None:
    """Serve by uvicorn in place of hypercorn."""
    hypercorn: Any = importlib.import_module("hypercorn.asyncio")

    async def serve(asgi: Any, config: Any) -> None:  # noqa: ANN401 - ministack has no types
        uvicorn: Any = importlib.import_module("uvicorn")
        host, _, port = config.bind[0].rpartition(":")
        options = uvicorn.Config(
            asgi,
            host=host,
            port=int(port),
            http="httptools",
            loop="asyncio",
            access_log=False,
            log_level="warning",
            timeout_keep_alive=_KEEP_ALIVE_S,
        )
        await uvicorn.Server(options).serve()

    hypercorn.serve = serve
