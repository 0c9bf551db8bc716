"""The developer's own server: what a delivery comes to there, headers and bytes as Relay sent them."""

import time
from dataclasses import dataclass

import httpx

from chalicelib.domain.outcome import Fault

BODY_MAX = 32_768
WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a local server answered, or the fault that stood in its way."""

    ms: int
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    truncated: bool = False
    fault: Fault | None = None
    detail: str = ""


class Local:
    """The server at a local URL."""

    def __init__(self, url: str) -> None:
        """Forward there; connections are kept."""
        self.url = url
        self._transport = httpx.AsyncHTTPTransport(trust_env=False)

    async def post(self, method: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
        """Send a request and give its answer; never raises for what the server does."""
        began = time.monotonic()
        timeout = httpx.Timeout(WITHIN_S).as_dict()
        request = httpx.Request(
            method, self.url, headers=headers, content=body, extensions={"timeout": timeout}
        )
        try:
            answer = await self._transport.handle_async_request(request)
            start, truncated = await _start(answer)
        except httpx.TimeoutException:
            return Answer(
                _since(began), fault=Fault.TIMEOUT, detail="the local server did not answer in time"
            )
        except httpx.ConnectError:
            return Answer(
                _since(began), fault=Fault.CONNECT_FAILED, detail="no local server took the connection"
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return Answer(_since(began), fault=Fault.NO_RESPONSE, detail=type(error).__name__)
        named = tuple(answer.headers.multi_items())
        return Answer(_since(began), answer.status_code, named, start, truncated)


async def _start(answer: httpx.Response) -> tuple[bytes, bool]:
    """Read the start of a body; the status has decided."""
    start = bytearray()
    try:
        async for piece in answer.aiter_raw():
            start += piece
            if len(start) > BODY_MAX:
                return bytes(start[:BODY_MAX]), True
    finally:
        await answer.aclose()
    return bytes(start), False


def _since(began: float) -> int:
    return int((time.monotonic() - began) * 1000)
