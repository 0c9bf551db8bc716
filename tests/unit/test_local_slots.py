"""Slots bound what runs at once, and starve nobody."""

import threading

from infra.local.slots import Slots


def test_each_source_has_one_slot_beside_the_shared_ones() -> None:
    slots = Slots(2)
    assert [slots.claim_now("a") for _ in range(4)] == [True, True, True, False]
    assert [slots.claim_now("b") for _ in range(2)] == [True, False]
    slots.release("a")
    assert slots.claim_now("b")
    assert not slots.claim_now("a")


def test_a_cap_binds_one_source_alone() -> None:
    slots = Slots(10)
    assert [slots.claim_now("a", cap=2) for _ in range(3)] == [True, True, False]
    assert [slots.claim_now("b") for _ in range(9)] == [True] * 9


def test_a_waiting_claim_gets_the_slot_that_is_released() -> None:
    slots = Slots(0)
    assert slots.claim("a")
    got = threading.Event()

    def wait() -> None:
        assert slots.claim("a")
        got.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert not got.is_set()
    slots.release("a")
    assert got.wait(5)
    waiter.join()


def test_closing_ends_every_wait_and_refuses_every_claim() -> None:
    slots = Slots(0)
    slots.claim("a")
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(slots.claim("a")))
    waiter.start()
    slots.close()
    waiter.join(5)
    assert answers == [False]
    assert not slots.claim_now("b")
    assert slots.wait_idle(0) == 1
    slots.release("a")
    assert slots.wait_idle(5) == 0
