"""Names are looked up beside one another; one that nobody answers for holds up no other."""

import asyncio
import socket
import threading
from collections import Counter

import pytest

from chalicelib.adapters.http.resolve import Resolver

FEW = 2


class Names:
    """A resolver's answers; `hangs` is not answered before it is let go. `asked` counts the calls."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.let_go = threading.Event()

    def look_up(self, host: str) -> list[str]:
        self.asked[host] += 1
        if host == "hangs":
            self.let_go.wait()
        if host == "unknown":
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return ["192.0.2.1", "192.0.2.2"]


def test_a_name_that_hangs_holds_up_no_other() -> None:
    names = Names()

    async def ask() -> None:
        resolver = Resolver(names.look_up, FEW)
        hanging = [asyncio.create_task(resolver.addresses("hangs")) for _ in range(20)]
        try:
            await asyncio.sleep(0)
            assert await resolver.addresses("healthy") == ["192.0.2.1", "192.0.2.2"]
            assert not any(each.done() for each in hanging)
        finally:
            names.let_go.set()
        assert await asyncio.gather(*hanging) == [["192.0.2.1", "192.0.2.2"]] * 20

    asyncio.run(ask())
    assert names.asked == {"hangs": 1, "healthy": 1}


def test_who_gives_up_leaves_the_look_up_to_the_others() -> None:
    names = Names()

    async def ask() -> None:
        resolver = Resolver(names.look_up, FEW)
        impatient, patient = (asyncio.create_task(resolver.addresses("hangs")) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        names.let_go.set()
        assert await patient == ["192.0.2.1", "192.0.2.2"]

    asyncio.run(ask())
    assert names.asked == {"hangs": 1}


def test_an_answer_is_not_kept() -> None:
    """The next who asks is told what is true then: names move."""
    names = Names()

    async def ask() -> None:
        resolver = Resolver(names.look_up, FEW)
        for _ in range(3):
            await resolver.addresses("healthy")
            with pytest.raises(socket.gaierror):
                await resolver.addresses("unknown")

    asyncio.run(ask())
    assert names.asked == {"healthy": 3, "unknown": 3}
