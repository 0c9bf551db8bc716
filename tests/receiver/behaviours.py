"""How deliveries are treated: a function per route gives an Answer, or a coroutine that plays it out."""

import asyncio
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from typing import Any, TypeAlias, assert_never

from tests.receiver import clock
from tests.receiver.answer import Answer, as_json, build, head, plain
from tests.receiver.exchange import Exchange
from tests.receiver.request import BadQueryError, Target
from tests.receiver.script import Deed, Step, checked_status, decode_base64
from tests.receiver.site import UP

Treatment: TypeAlias = Answer | Coroutine[Any, Any, None]
Behaviour: TypeAlias = Callable[[Exchange], Treatment]

OK = plain(200, "ok")
GONE = plain(410, "gone")
ERROR = plain(500, "always 500")
FLAKY = plain(500, "flaky")
NEVER_ENDING_LENGTH = 1_000_000_000
PIECE = b"x" * 4096
CUT_SHORT = Answer(200, b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nok")
CUT_CHUNKS = Answer(200, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n32\r\nok")


def sink(_exchange: Exchange) -> Treatment:
    """Answer 200 and look at nothing."""
    return OK


def verify(exchange: Exchange) -> Treatment:
    """Answer 200 to what a known secret signed within five minutes, 401 with the reason otherwise."""
    verdict = exchange.entry.verdict
    if verdict is not None and not verdict.verified:
        return as_json(401, {"verified": False, "reason": verdict.reason})
    return OK


def always500(_exchange: Exchange) -> Treatment:
    """Answer 500."""
    return ERROR


def gone(_exchange: Exchange) -> Treatment:
    """Answer 410."""
    return GONE


def slow(exchange: Exchange) -> Treatment:
    """Answer 200 after a while."""
    return _after(exchange, exchange.target.number("ms", 1000) / 1000, OK)


async def _after(exchange: Exchange, delay_s: float, answer: Answer) -> None:
    await asyncio.sleep(delay_s)
    exchange.answer(answer)


def hang(exchange: Exchange) -> Treatment:
    """Never answer; a reset of the receiver closes the connection."""
    return _hang(exchange)


async def _hang(exchange: Exchange) -> None:
    await exchange.site.released.wait()
    exchange.cut()


def flaky(exchange: Exchange) -> Treatment:
    """Answer 500 to a part of the deliveries, the same ones in every run."""
    target = exchange.target
    percent = target.number("pct", 50)
    dice = exchange.site.dice(target.text, target.query.get("seed"))
    return FLAKY if dice.random() * 100 < percent else OK


def too_many(exchange: Exchange) -> Treatment:
    """Answer 429, with Retry-After as given."""
    return plain(429, "slow down", _retry_after(exchange.target))


def status(exchange: Exchange) -> Treatment:
    """Answer with the status named in the path."""
    target = exchange.target
    code = _status(target.rest.partition("/")[0])
    headers = _retry_after(target)
    if "location" in target.query:
        headers.append(("Location", target.query["location"]))
    return build(code, target.query.get("body", "").encode(), headers)


def redirect(exchange: Exchange) -> Treatment:
    """Answer with a redirect to any address."""
    target = exchange.target
    where = target.query.get("to", "")
    if not where:
        raise BadQueryError("to= must name where to redirect")
    code = _status(target.query.get("code") or "307")
    return plain(code, f"see {where}", [("Location", where)])


def toggle(exchange: Exchange) -> Treatment:
    """Answer as this path was last switched."""
    code = exchange.site.toggles.get(exchange.target.rest, UP)
    return OK if code == UP else plain(code, "switched")


def bigbody(exchange: Exchange) -> Treatment:
    """Answer 200 with a big body, counting what the socket took."""
    target = exchange.target
    pieces = int(target.number("kb", 8192) * 1024 / len(PIECE))
    if target.choice("mode", ("length", "chunked")) == "length":
        framing = ("Content-Length", str(pieces * len(PIECE)))
        return _stream(exchange, head(200, [framing]), PIECE, pieces)
    chunk = b"%x\r\n%b\r\n" % (len(PIECE), PIECE)
    return _stream(exchange, head(200, [("Transfer-Encoding", "chunked")]), chunk, pieces, b"0\r\n\r\n")


async def _stream(exchange: Exchange, start: bytes, piece: bytes, times: int, last: bytes = b"") -> None:
    exchange.begin(200)
    await exchange.send(start)
    for _ in range(times):
        await exchange.send(piece)
    await exchange.send(last)
    exchange.end()


def trickle(exchange: Exchange) -> Treatment:
    """Send one byte at a time, for ever."""
    target = exchange.target
    delay_s = target.number("ms", 100) / 1000
    match target.choice("in", ("body", "headers", "status")):
        case "status":
            return _trickle(exchange, delay_s, b"", b"HTTP/1.1 200 ")
        case "headers":
            return _trickle(exchange, delay_s, b"HTTP/1.1 200 OK\r\n", b"X-Drip: ")
        case _:
            return _trickle(exchange, delay_s, head(200, [("Content-Length", str(NEVER_ENDING_LENGTH))]), b"")


async def _trickle(exchange: Exchange, delay_s: float, at_once: bytes, drops: bytes) -> None:
    exchange.begin(200)
    await exchange.send(at_once)
    for index in range(NEVER_ENDING_LENGTH):
        await exchange.send(drops[index : index + 1] or b"x")
        await asyncio.sleep(delay_s)
    exchange.cut()


def rst(exchange: Exchange) -> Treatment:
    """Reset the TCP connection."""
    return _do(exchange, Deed.RST)


def close(exchange: Exchange) -> Treatment:
    """Close the connection."""
    return _do(exchange, Deed.CLOSE)


async def _do(exchange: Exchange, deed: Deed) -> None:
    match deed:
        case Deed.RST:
            exchange.reset()
        case Deed.CLOSE:
            exchange.cut()
        case Deed.HANG:
            await _hang(exchange)
        case _:
            assert_never(deed)


def cut(exchange: Exchange) -> Treatment:
    """Answer 200, promise 50 bytes, send two and close."""
    mode = exchange.target.choice("mode", ("length", "chunked"))
    return _cut(exchange, CUT_SHORT if mode == "length" else CUT_CHUNKS)


async def _cut(exchange: Exchange, answer: Answer) -> None:
    exchange.cut(answer)


def raw(exchange: Exchange) -> Treatment:
    """Answer exactly the bytes given."""
    target = exchange.target
    stay = target.choice("then", ("close", "stay")) == "stay"
    try:
        return Answer(None, decode_base64(target.query.get("b64", "")), close=not stay)
    except ValueError as wrong:
        raise BadQueryError(str(wrong)) from wrong


def stale(exchange: Exchange) -> Treatment:
    """Answer 200, then close the idle connection without a word."""
    return _stale(exchange, exchange.target.number("ms", 50) / 1000)


async def _stale(exchange: Exchange, delay_s: float) -> None:
    exchange.answer(OK)
    asyncio.get_running_loop().call_later(delay_s, exchange.close_wire)


def script(exchange: Exchange) -> Treatment:
    """Answer what was scripted for this path, in turn."""
    script_ = exchange.site.scripts.get(exchange.target.rest)
    if script_ is None:
        return plain(404, f"nothing is scripted for {exchange.target.rest!r}: POST it to /script first")
    return play(exchange, script_.take())


def play(exchange: Exchange, step: Step) -> Treatment:
    """Do what a script has for a delivery."""
    if isinstance(step.act, Answer) and not step.delay_s:
        return step.act
    return _play(exchange, step)


async def _play(exchange: Exchange, step: Step) -> None:
    await asyncio.sleep(step.delay_s)
    if isinstance(step.act, Answer):
        exchange.answer(step.act)
    else:
        await _do(exchange, step.act)


def _status(text: str) -> int:
    try:
        return checked_status(int(text))
    except ValueError as wrong:
        raise BadQueryError(f"a status is a number from 100 to 999, not {text!r}") from wrong


def _retry_after(target: Target) -> list[tuple[str, str]]:
    if "retry_after_date" in target.query:
        at_s = clock.now().epoch_ns / clock.NS_PER_S + target.number("retry_after_date", 0)
        return [("Retry-After", formatdate(at_s, usegmt=True))]
    if "retry_after" in target.query:
        return [("Retry-After", target.query["retry_after"])]
    return []
