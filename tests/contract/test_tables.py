"""The table service: every method of `Tables`, alike in memory and on each emulator."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.adapters.aws_limits import AwsWouldRefuse
from chalicelib.adapters.dynamodb.records import (
    Check,
    Count,
    Delete,
    Insert,
    Key,
    Made,
    Merge,
    Put,
    Span,
    Tables,
    Update,
    Write,
)
from chalicelib.domain.change import Change, Op, Record, Test
from infra.local.emulator import EmulatorName
from tests.contract.given import without_moto

A, B, C = Key("owed", "lane", "a"), Key("owed", "lane", "b"), Key("owed", "lane", "c")
GATE = Key("gates", "acme#ep")
Calls = Callable[[], int]


def set_to(value: int, *tests: Test) -> Change:
    return Change(tests, {"x": value}, {})


def is_(value: int) -> Test:
    return Test("x", Op.EQ, value)


def row(number: int) -> Key:
    return Key("owed", "many", f"{number:04d}")


def stored(tables: Tables, key: Key) -> Any:  # noqa: ANN401 - a record, to be looked into
    return tables.get([key]).get(key)


def all_of(tables: Tables, pk: str = "lane") -> list[str]:
    return [record["sk"] for record in tables.query("owed", pk, Span(), 1000).records]


class TestGet:
    def test_missing_records_are_left_out(self, tables: Tables) -> None:
        tables.each([Insert(A, {"x": 1})])
        assert tables.get([A, B]) == {A: {"pk": "lane", "sk": "a", "x": 1}}
        assert tables.get([]) == {}

    def test_several_tables_are_read_in_one_call(self, tables: Tables, calls: Calls) -> None:
        tables.each([Insert(A, {"x": 1}), Insert(GATE, {"x": 2})])
        calls()
        assert tables.get([A, GATE, A]) == {
            A: {"pk": "lane", "sk": "a", "x": 1},
            GATE: {"pk": "acme#ep", "x": 2},
        }
        assert calls() == 1

    @without_moto
    def test_more_than_a_hundred_keys_take_a_call_per_hundred(self, tables: Tables, calls: Calls) -> None:
        tables.each([Insert(row(number), {"x": number}) for number in range(110)])
        calls()
        found = tables.get([row(number) for number in range(250)])
        assert {key.sk: record["x"] for key, record in found.items()} == {
            f"{number:04d}": number for number in range(110)
        }
        assert calls() == 3

    def test_every_storable_value_comes_back_as_it_was(self, tables: Tables) -> None:
        record: dict[str, Any] = {
            "text": "naïve ☃ \U0001f600 'quoted' \"twice\"",
            "empty": "",
            "large": 10**37,
            "small": -1,
            "bytes": bytes(range(256)),
            "no_bytes": b"",
            "list": ["a", 1, b"\0", [], {}],
            "map": {"h": "holder", "k": ["one"], "deep": {"n": 0}},
            "flag": True,
            "status": "a reserved word",
        }
        tables.each([Insert(A, record)])
        tables.together([Put(B, record)])
        tables.together([Merge(C, record)])
        assert [stored(tables, key) for key in (A, B, C)] == [{**key.parts, **record} for key in (A, B, C)]


class TestQuery:
    @pytest.fixture(autouse=True)
    def given(self, tables: Tables) -> None:
        tables.each([Insert(Key("owed", "lane", each), {"x": 1}) for each in "dbeac"])
        tables.each(
            [Insert(Key("owed", "lane2", "b"), {"x": 1}), Insert(Key("history", "lane", "z"), {"x": 1})]
        )

    def sort_keys(self, tables: Tables, span: Span, limit: int) -> list[str]:
        return [record["sk"] for record in tables.query("owed", "lane", span, limit).records]

    def test_one_partition_comes_in_the_order_of_its_sort_keys(self, tables: Tables) -> None:
        assert self.sort_keys(tables, Span(), 10) == ["a", "b", "c", "d", "e"]
        assert self.sort_keys(tables, Span("b", "d"), 10) == ["b", "c", "d"]
        assert self.sort_keys(tables, Span("bb", "cc"), 10) == ["c"]
        assert self.sort_keys(tables, Span("b", "d", backwards=True), 2) == ["d", "c"]

    def test_a_limit_says_that_it_cut_something_off(self, tables: Tables) -> None:
        stretch = tables.query("owed", "lane", Span(), 3)
        assert [record["sk"] for record in stretch.records] == ["a", "b", "c"]
        assert stretch.more

        assert not tables.query("owed", "lane", Span(), 6).more
        assert tables.query("owed", "nothing", Span(), 6).records == ()
        assert not tables.query("owed", "nothing", Span(), 6).more


@without_moto
def test_pages_of_a_megabyte_are_put_together(tables: Tables) -> None:
    for start in range(0, 60, 20):
        tables.each([Insert(row(number), {"big": b"\1" * 30_000}) for number in range(start, start + 20)])
    stretch = tables.query("owed", "many", Span(), 59)
    assert [record["sk"] for record in stretch.records] == [f"{number:04d}" for number in range(59)]
    assert stretch.more
    assert sorted(record["sk"] for record in tables.walk("owed")) == [f"{number:04d}" for number in range(60)]
    assert len(tables.get([row(number) for number in range(60)])) == 60


class TestEach:
    def test_an_insert_is_refused_when_the_record_is_there(self, tables: Tables) -> None:
        first, second = tables.each([Insert(A, {"x": 1})]) + tables.each([Insert(A, {"x": 2})])
        assert (first.done, second.done) == (True, False)
        assert stored(tables, A)["x"] == 1

    def test_an_update_answers_with_the_record_as_it_then_is(self, tables: Tables) -> None:
        tables.each([Insert(A, {"x": 1, "gone": 1, "kept": "k"})])
        change = Change((is_(1),), {"y": {"h": "me"}}, {"x": -3}, ("gone", "never_there"))
        (made,) = tables.each([Update(A, change)])
        assert made == Made(
            done=True, record={"pk": "lane", "sk": "a", "x": -2, "y": {"h": "me"}, "kept": "k"}
        )
        assert stored(tables, A) == made.record

    def test_a_refused_update_answers_with_the_record_in_the_way(self, tables: Tables) -> None:
        tables.each([Insert(A, {"x": 1})])
        (made,) = tables.each([Update(A, set_to(5, is_(2)))])
        assert made == Made(done=False, record={"pk": "lane", "sk": "a", "x": 1})
        assert stored(tables, A)["x"] == 1

    def test_an_update_never_makes_a_record(self, tables: Tables) -> None:
        assert tables.each([Update(A, set_to(1))]) == [Made(done=False)]
        assert stored(tables, A) is None

    def test_a_delete_of_what_is_not_there_is_no_error(self, tables: Tables) -> None:
        tables.each([Insert(A, {"x": 1})])
        assert tables.each([Delete(A)]) == [Made(done=True)]
        assert tables.each([Delete(A), Delete(B, (is_(1),))]) == [Made(done=True), Made(done=True)]
        assert stored(tables, A) is None

    def test_a_delete_whose_test_fails_leaves_the_record(self, tables: Tables) -> None:
        tables.each([Insert(A, {"x": 1})])
        (made,) = tables.each([Delete(A, (is_(2),))])
        assert made == Made(done=False, record={"pk": "lane", "sk": "a", "x": 1})
        assert tables.each([Delete(A, (is_(1),))]) == [Made(done=True)]

    def test_one_that_is_refused_stops_no_other(self, tables: Tables) -> None:
        tables.each([Insert(A, {"x": 1})])
        made = tables.each([Insert(A, {"x": 2}), Insert(B, {"x": 2}), Update(C, set_to(1))])
        assert [each.done for each in made] == [False, True, False]

    @without_moto
    def test_more_than_twenty_five_take_a_call_per_twenty_five(self, tables: Tables, calls: Calls) -> None:
        tables.each([Insert(row(number), {"x": 1}) for number in range(0, 60, 2)])
        calls()
        made = tables.each([Insert(row(number), {"x": 2}) for number in range(60)])
        assert [each.done for each in made] == [bool(number % 2) for number in range(60)]
        assert calls() == 3

    def test_two_writes_of_one_record_are_made_one_after_the_other(
        self, tables: Tables, calls: Calls
    ) -> None:
        tables.each([Insert(A, {"x": 0})])
        calls()
        step = Change((), {}, {"x": 1})
        made = tables.each([Update(A, step), Insert(B, {"x": 9}), Update(A, step), Update(A, step)])
        assert [each.record and each.record["x"] for each in made] == [1, None, 2, 3]
        assert calls() == 3

    def test_no_writes_are_no_call(self, tables: Tables, calls: Calls) -> None:
        calls()
        assert tables.each([]) == []
        assert calls() == 0


NEVER_OF_NOTHING = {Op.MISSING, Op.NE}
HOLDING = [
    Test("x", Op.EQ, 5),
    Test("x", Op.NE, 4),
    Test("x", Op.LE, 5),
    Test("x", Op.LT, 6),
    Test("x", Op.GE, 5),
    Test("x", Op.GT, 4),
    Test("y", Op.MISSING),
    Test("lease.h", Op.EQ, "me"),
    Test("lease.other", Op.MISSING),
    Test("no.such", Op.MISSING),
]
FAILING = [
    Test("x", Op.EQ, 4),
    Test("x", Op.NE, 5),
    Test("x", Op.LE, 4),
    Test("x", Op.LT, 5),
    Test("x", Op.GE, 6),
    Test("x", Op.GT, 5),
    Test("x", Op.MISSING),
    Test("lease.h", Op.EQ, "you"),
    Test("lease.h", Op.MISSING),
    *(
        Test(path, op, 5)
        for path in ("y", "lease.other", "no.such")
        for op in Op
        if op not in NEVER_OF_NOTHING
    ),
]


class TestTests:
    @pytest.fixture(autouse=True)
    def given(self, tables: Tables) -> None:
        record = {"x": 5, "lease": {"h": "me"}}
        tests = range(max(len(HOLDING), len(FAILING)))
        tables.each([Insert(row(number), record) for number in tests])

    def test_they_mean_the_same_in_a_batch_and_in_a_transaction(self, tables: Tables) -> None:
        failing = [Update(row(place), set_to(7, test)) for place, test in enumerate(FAILING)]
        assert [made.done for made in tables.each(failing)] == [False] * len(FAILING)
        assert tables.together(failing) == list(range(len(FAILING)))
        assert {record["x"] for record in tables.walk("owed")} == {5}
        holding = [Update(row(place), set_to(5, test)) for place, test in enumerate(HOLDING)]
        assert tables.together(holding) == []
        assert [made.done for made in tables.each(holding)] == [True] * len(HOLDING)

    def test_all_tests_of_a_change_must_hold(self, tables: Tables) -> None:
        (made,) = tables.each([Update(row(0), set_to(7, HOLDING[0], HOLDING[1], FAILING[0]))])
        assert not made.done


REFUSED: list[Write] = [
    Insert(A, {"x": 2}),
    Put(A, {"x": 2}, (is_(2),)),
    Put(C, {"x": 2}, (is_(2),)),
    Delete(A, (is_(2),)),
    Delete(C, (is_(2),)),
    Update(A, set_to(2, is_(2))),
    Update(C, set_to(2)),
    Check(A, (is_(2),)),
    Check(A, (Test("x", Op.MISSING),)),
    Check(C, (is_(2),)),
]
"""Of A, which is there with x = 1, and of C, which is not."""


class TestCount:
    @pytest.fixture(autouse=True)
    def given(self, tables: Tables) -> None:
        tables.each([Insert(A, {"x": 1})])

    def test_it_adds_where_its_tests_hold_and_brings_nothing_back(self, tables: Tables) -> None:
        assert tables.each([Count(A, Change((is_(1),), {"y": 7}, {"x": 4}))]) == [Made(done=True)]
        assert stored(tables, A) == {"pk": "lane", "sk": "a", "x": 5, "y": 7}

    def test_where_they_do_not_it_brings_the_record_that_is_there(self, tables: Tables) -> None:
        refused, nothing = tables.each([Count(A, set_to(2, is_(9))), Count(B, set_to(2, is_(9)))])
        assert refused == Made(done=False, record={"pk": "lane", "sk": "a", "x": 1})
        assert nothing == Made(done=False)

    @pytest.mark.parametrize("tables", [EmulatorName.MINISTACK.value], indirect=True)
    def test_one_that_cannot_be_made_at_all_holds_up_no_other(self, tables: Tables) -> None:
        """An attribute that is not there, or a table."""
        nowhere = Key("nowhere", "a")
        made = tables.each([Count(A, Change((), {}, {"none": 1})), Count(nowhere, set_to(1)), Delete(B)])
        assert [each.done for each in made] == [False, False, True]


class TestTogether:
    @pytest.fixture(autouse=True)
    def given(self, tables: Tables) -> None:
        tables.each([Insert(A, {"x": 1})])

    def test_one_refused_write_undoes_all_others(self, tables: Tables) -> None:
        for write in REFUSED:
            assert tables.together([Insert(B, {"x": 1}), write, Merge(GATE, {"x": 1})]) == [1]
        assert tables.get([A, B, C, GATE]) == {A: {"pk": "lane", "sk": "a", "x": 1}}

    def test_every_place_in_the_way_is_named(self, tables: Tables) -> None:
        writes: list[Write] = [Insert(A, {"x": 1}), Insert(B, {"x": 1}), Update(C, set_to(1))]
        assert tables.together(writes) == [0, 2]

    def test_every_kind_of_write_is_made(self, tables: Tables) -> None:
        tables.each([Insert(B, {"x": 1, "y": 2}), Insert(C, {"x": 1, "gone": 1})])
        writes: list[Write] = [
            Put(A, {"z": 1}, (is_(1),)),
            Delete(B, (is_(1),)),
            Update(C, Change((is_(1),), {"y": 3}, {"x": 4}, ("gone",))),
            Insert(Key("owed", "lane", "d"), {"x": 1}),
            Merge(GATE, {"x": 1}),
        ]
        assert tables.together(writes) == []
        assert all_of(tables) == ["a", "c", "d"]
        assert stored(tables, A) == {"pk": "lane", "sk": "a", "z": 1}
        assert stored(tables, C) == {"pk": "lane", "sk": "c", "x": 5, "y": 3}
        assert stored(tables, GATE) == {"pk": "acme#ep", "x": 1}

    def test_a_put_needs_no_test(self, tables: Tables) -> None:
        assert tables.together([Put(A, {"y": 1}), Put(B, {"y": 2})]) == []
        assert stored(tables, A) == {"pk": "lane", "sk": "a", "y": 1}

    def test_a_put_may_ask_that_nothing_is_there(self, tables: Tables) -> None:
        assert tables.together([Put(B, {"y": 2}, (Test("x", Op.MISSING),))]) == []
        assert tables.together([Put(A, {"y": 2}, (Test("x", Op.MISSING),))]) == [0]

    def test_a_check_changes_nothing(self, tables: Tables) -> None:
        checks: list[Write] = [Check(A, (is_(1),)), Check(B, (Test("x", Op.MISSING),))]
        assert tables.together([*checks, Merge(GATE, {"x": 1})]) == []
        assert tables.get([A, B, GATE]) == {
            A: {"pk": "lane", "sk": "a", "x": 1},
            GATE: {"pk": "acme#ep", "x": 1},
        }

    def test_a_merge_makes_and_mends(self, tables: Tables) -> None:
        assert tables.together([Merge(A, {"y": [1, 2]}, ("x",)), Merge(B, {}, ("never_there",))]) == []
        assert stored(tables, A) == {"pk": "lane", "sk": "a", "y": [1, 2]}

    def test_a_delete_of_what_is_not_there_is_no_error(self, tables: Tables) -> None:
        assert tables.together([Delete(B), Delete(C, (Test("x", Op.MISSING),))]) == []

    @without_moto
    def test_a_hundred_writes_are_one_call(self, tables: Tables, calls: Calls) -> None:
        calls()
        assert tables.together([Insert(row(number), {"x": 1}) for number in range(100)]) == []
        assert calls() == 1
        assert len(all_of(tables, "many")) == 100

    @without_moto
    def test_what_no_transaction_holds_is_a_loud_mistake(self, tables: Tables) -> None:
        too_many = [Insert(row(number), {}) for number in range(101)]
        cases: list[list[Write]] = [[], [*too_many], [Delete(A), Put(A, {})]]
        for writes in cases:
            with pytest.raises((ValueError, AwsWouldRefuse)):
                tables.together(writes)


def test_a_walk_meets_every_record_of_one_table(tables: Tables) -> None:
    tables.each([Insert(row(number), {"x": number}) for number in range(5)])
    tables.each([Insert(GATE, {"x": 99})])
    assert sorted(record["x"] for record in tables.walk("owed")) == list(range(5))
    assert list(tables.walk("fanouts")) == []


class TestIndexed:
    def listed(self, tables: Tables, shard: str) -> Iterator[str]:
        return (record["pk"] for record in tables.indexed("gates", "armed", shard))

    @pytest.fixture(autouse=True)
    def given(self, tables: Tables) -> None:
        armed = [("a", "1", 30), ("b", "1", 10), ("c", "2", 20), ("d", "1", 20)]
        tables.each(
            [
                Insert(Key("gates", name), {"armed_shard": shard, "armed_until": until, "x": 1})
                for name, shard, until in armed
            ]
        )
        tables.each([Insert(Key("gates", "not armed"), {"x": 1})])

    def test_an_index_holds_the_keys_of_what_has_its_attributes_in_order(self, tables: Tables) -> None:
        assert list(self.listed(tables, "1")) == ["b", "d", "a"]
        assert list(tables.indexed("gates", "armed", "2")) == [
            {"pk": "c", "armed_shard": "2", "armed_until": 20}
        ]
        assert list(self.listed(tables, "3")) == []

    def test_what_loses_its_attributes_leaves_the_index(self, tables: Tables) -> None:
        change = Change((), {}, {}, ("armed_shard", "armed_until"))
        tables.each([Update(Key("gates", "c"), change)])
        assert list(self.listed(tables, "2")) == []


class TestSizes:
    """F116: what is too large for an item is refused, to the byte, and nothing is stored."""

    AROUND = len("pk") + len("lane") + len("sk") + len("a") + len("big")

    def test_f116_an_item_of_400_kilobytes_is_stored(
        self, tables: Tables, request: pytest.FixtureRequest
    ) -> None:
        largest = 404_000 if "moto" in request.node.name else 409_600  # moto counts more than AWS
        big = b"\1" * (largest - self.AROUND)
        assert tables.together([Insert(A, {"big": big})]) == []
        assert stored(tables, A)["big"] == big

    def test_f116_an_item_one_byte_larger_is_refused(self, tables: Tables) -> None:
        big = b"\1" * (409_601 - self.AROUND)
        with pytest.raises(AwsWouldRefuse, match="at most 409600 bytes"):
            tables.together([Insert(A, {"big": big})])
        with pytest.raises(AwsWouldRefuse, match="at most 409600 bytes"):
            tables.each([Insert(A, {"big": big})])
        assert stored(tables, A) is None


def browsed(tables: Tables, table: str, limit: int) -> list[Record]:
    """Browse a table to its end, so many at once, each page from the last record of the one before."""
    found: list[Record] = []
    after: Key | None = None
    while True:
        page = tables.browse(table, after, limit)
        assert len(page.records) <= limit
        found += page.records
        if not page.more:
            return found
        after = Key(table, page.records[-1]["pk"], page.records[-1].get("sk", ""))


def test_browsing_meets_every_record_of_one_table_once(tables: Tables) -> None:
    tables.each([Insert(Key("owed", f"lane {n % 3}", f"{n:04d}"), {"x": n}) for n in range(20)])
    tables.each([Insert(Key("gates", f"gate {n}"), {"x": n}) for n in range(7)])
    for limit in (1, 3, 100):
        assert sorted(record["x"] for record in browsed(tables, "owed", limit)) == list(range(20))
        assert sorted(record["x"] for record in browsed(tables, "gates", limit)) == list(range(7))
    assert browsed(tables, "fanouts", 3) == []


@without_moto
def test_browsing_goes_on_from_a_record_that_is_gone(tables: Tables) -> None:
    tables.each([Insert(row(number), {"x": number}) for number in range(9)])
    page = tables.browse("owed", None, 4)
    first = {record["x"] for record in page.records}
    last = Key("owed", page.records[-1]["pk"], page.records[-1]["sk"])
    tables.each([Delete(last)])
    assert {record["x"] for record in tables.browse("owed", last, 10).records} == set(range(9)) - first
