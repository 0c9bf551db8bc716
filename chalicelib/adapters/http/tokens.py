"""Access tokens for endpoints that ask for them: got through the guard, kept while they are good.

Whoever needs one while it is being got waits for that, so that it is got once.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from chalicelib.adapters.http.fault import TransportFault
from chalicelib.adapters.http.transport import Answer, GuardedTransport
from chalicelib.domain.auth import Auth, OAuth2
from chalicelib.domain.oauth2 import ANSWER_MAX, NoToken, Token, asking, token_of
from chalicelib.domain.outcome import Fault
from chalicelib.domain.secret import Secret

TOKENS_MAX = 1_000
_ENDS_THE_DELIVERY = frozenset({Fault.REFUSED, Fault.BAD_URL})
Key = tuple[OAuth2[Secret], str]


class Tokens:
    """Keeps so many tokens; the one that nobody has asked for longest goes first."""

    def __init__(self, transport: GuardedTransport, within_s: float, now_ms: Callable[[], int]) -> None:
        """Ask through a transport, for so many seconds at most."""
        self._transport = transport
        self._within_s = within_s
        self._now_ms = now_ms
        self._kept: OrderedDict[Key, Token] = OrderedDict()
        self._coming: dict[Key, asyncio.Task[Token]] = {}

    async def get(self, auth: Auth[Secret], oauth2: OAuth2[Secret]) -> tuple[Token, bool]:
        """Give a token, and whether it was got just now; raises TransportFault."""
        key = (oauth2, auth.authorities)
        kept = self._kept.get(key)
        if kept is not None and kept.until_ms > self._now_ms():
            self._kept.move_to_end(key)
            return kept, False
        coming = self._coming.get(key)
        if coming is None:
            coming = self._coming[key] = asyncio.create_task(self._got(key))
            coming.add_done_callback(lambda task: self._came(key, task))
        return await asyncio.shield(coming), True

    def drop(self, auth: Auth[Secret], oauth2: OAuth2[Secret], token: Token) -> None:
        """Forget a token that was not taken, unless another has come in its place."""
        key = (oauth2, auth.authorities)
        if self._kept.get(key) is token:
            del self._kept[key]

    def keep(self, key: Key, token: Token) -> None:
        """Keep a token in place of the one before it."""
        self._kept[key] = token
        self._kept.move_to_end(key)
        if len(self._kept) > TOKENS_MAX:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)

    def _came(self, key: Key, task: asyncio.Task[Token]) -> None:
        del self._coming[key]
        if not task.cancelled():
            task.exception()  # whoever waited is told; when nobody does any more, nobody needs to be

    async def _got(self, key: Key) -> Token:
        oauth2, authorities = key
        try:
            async with asyncio.timeout(self._within_s):
                answer = await self._transport.send(asking(oauth2, authorities))
                body = await _whole(answer)
            token = token_of(answer.status, body, self._now_ms())
        except TimeoutError as error:
            raise _no_token("no answer within the total timeout") from error
        except NoToken as error:
            raise _no_token(str(error)) from error
        except TransportFault as fault:
            raise _no_token(fault.detail, fault.fault) from fault
        self.keep(key, token)
        return token


def _no_token(words: str, fault: Fault = Fault.TOKEN_FAILED) -> TransportFault:
    """Say why there is no token; where a refused address ends a delivery, one of a token URL does too."""
    kind = fault if fault in _ENDS_THE_DELIVERY else Fault.TOKEN_FAILED
    return TransportFault(kind, f"no access token could be got: {words}", left=False)


async def _whole(answer: Answer) -> bytes:
    if answer.body is None:
        return b""
    body = bytearray()
    try:
        async for piece in answer.body.pieces():
            body += piece
            if len(body) > ANSWER_MAX:
                raise NoToken("the token URL's answer is too long")
    finally:
        answer.body.close()
    return bytes(body)
