"""ministack with statements read once and requests read by a faster server; answers stay the same.

As shipped, every PartiQL statement of a batch is read twice, letter by letter, though the same few
texts come again and again with other parameters; and each request passes through an HTTP server
that costs more than the request. Used by `ministack_fast`; figures measured with it must say so.
"""

import importlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

_TEXTS = 4_096
_KEEP_ALIVE_S = 75


def mend_statements() -> None:
    """Keep the words of statements that were read before, and read none twice in a row."""
    keywords: Any = importlib.import_module("ministack.services._dynamodb_keywords")
    dynamodb: Any = importlib.import_module("ministack.services.dynamodb")
    keywords._tokenize = lru_cache(_TEXTS)(keywords._tokenize)  # noqa: SLF001
    dynamodb._parse_partiql = _once(dynamodb._parse_partiql)  # noqa: SLF001


def _once(parse: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
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
