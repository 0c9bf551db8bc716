"""What a node may say it owns, when the registry answers late or says that there is no lease any more."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from chalicelib.application.ports import Elsewhere, Unavailable
from chalicelib.node.settings import NodeSettings
from chalicelib.node.tenure import Tenure

SETTINGS = NodeSettings(lease_ms=10_000, lease_renewal_ms=20, clock_skew_ms=2_000)


class HeldBackOwners:
    """A registry whose claims are answered when it is told to, and whose lease may be over."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.over = True
        self.answer = threading.Event()

    def renew(self) -> int | None:
        self.done.append("renew")
        return None if self.over else 1

    def begin(self) -> int:
        self.done.append("begin")
        self.over = False
        return 1

    def find(self, _server_id: str) -> Elsewhere | None:
        return None

    def claim(self, _server_id: str) -> int | Elsewhere:
        self.done.append("claim")
        self.answer.wait(10)
        return 1

    def release(self, _server_id: str, _generation: int) -> None:
        self.done.append("release")

    def retire(self) -> None:
        self.done.append("retire")


def _run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 10))


async def _until(owners: HeldBackOwners, what: str, times: int) -> None:
    while owners.done.count(what) < times:  # noqa: ASYNC110 - what is waited for happens in threads
        await asyncio.sleep(0.005)


def test_what_rested_on_a_lease_ends_before_another_begins() -> None:
    owners = HeldBackOwners()
    owners.answer.set()

    async def work() -> None:
        tenure = Tenure(owners, SETTINGS, lambda: owners.done.append("ended"))
        await tenure.begin()
        assert await tenure.claim("s") is None
        owners.over = True
        keeping = asyncio.create_task(tenure.keep())
        await _until(owners, "begin", 2)
        keeping.cancel()
        assert not tenure.owns("s")

    _run(work())
    first = owners.done.index("ended")
    assert owners.done[:first].count("begin") == 1
    assert owners.done[first + 1] == "begin"


def test_a_claim_of_a_lease_before_owns_nothing() -> None:
    owners = HeldBackOwners()

    async def work() -> None:
        tenure = Tenure(owners, SETTINGS, lambda: owners.done.append("ended"))
        await tenure.begin()
        claiming = asyncio.create_task(tenure.claim("s"))
        await _until(owners, "claim", 1)
        owners.over = True
        keeping = asyncio.create_task(tenure.keep())
        await _until(owners, "renew", 4)
        keeping.cancel()
        assert tenure.alive()
        owners.answer.set()
        with pytest.raises(Unavailable):
            await claiming
        assert not tenure.owns("s")

    _run(work())
