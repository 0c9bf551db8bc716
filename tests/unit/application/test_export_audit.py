"""The export of the audit: every record in it, under a name that stays, whoever dies on the way."""

import itertools
from collections.abc import Iterator
from contextlib import suppress

import pytest

from chalicelib.adapters.dynamodb.auditing import DynamoExportingAudit, recorded
from chalicelib.application import export_audit
from chalicelib.application.export_audit import ExportAudit, Wrote
from chalicelib.application.ports import Unavailable
from chalicelib.domain import audit, ids
from chalicelib.domain.audit import Action, Record
from chalicelib.domain.audit_export import AGAIN_HOURS, HOUR_MS, SETTLED_MS
from tests.fakes.faults import Faults, Killed, Step
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_exports import MemoryExports
from tests.fakes.memory_tables import MemoryTables, Records
from tests.unit.application.world import BY, TENANT

HOUR = 472_222
BEGAN_MS = HOUR * HOUR_MS
Written = dict[str, tuple[Record, ...]]
_NUMBERS = itertools.count(1)


class Auditor:
    """The audit of an installation, and processes that export it."""

    def __init__(self) -> None:
        self.tables = MemoryTables()
        self.clock = FixedClock(BEGAN_MS)
        self.written: Written = {}

    def record(self, at_ms: int, tenant: str = TENANT) -> Record:
        """Write a record of a moment."""
        name = ids.new_id(audit.PREFIX, at_ms, next(_NUMBERS))
        made = Record(tenant, name, at_ms, Action.ENDPOINT_CHANGED, "ep_1", BY)
        self.tables.together([recorded(made)])
        return made

    def process(self, faults: Faults | None = None, records: Records | None = None) -> ExportAudit:
        """Give a new process, which may have faults of its own."""
        tables, exports = MemoryTables(records or self.tables.records), MemoryExports(self.written)
        if faults is not None:
            tables.faults = exports.faults = faults
        return ExportAudit(DynamoExportingAudit(tables), exports, self.clock)

    def export(self, left_ms: int = 60_000) -> Wrote:
        """Run the function once."""
        return self.process().run(lambda: left_ms)

    def exported(self) -> list[Record]:
        """Read all that was written, in the order of names."""
        return [each for name in sorted(self.written) for each in self.written[name]]


@pytest.fixture
def auditor() -> Auditor:
    made = Auditor()
    made.export()
    return made


def settled(auditor: Auditor, hour: int) -> None:
    """Let an hour be settled."""
    auditor.clock.advance_to((hour + 1) * HOUR_MS + SETTLED_MS)


def test_every_record_of_a_settled_hour_is_written_by_day_hour_and_tenant(auditor: Auditor) -> None:
    mine = [auditor.record(BEGAN_MS), auditor.record(BEGAN_MS + HOUR_MS - 1)]
    other = auditor.record(BEGAN_MS + 5, "other")
    later = auditor.record(BEGAN_MS + HOUR_MS)
    settled(auditor, HOUR)
    assert auditor.export() == Wrote(objects=2, records=3)
    day = "audit/2023-11-14/22"
    assert auditor.written == {f"{day}/acme-0001.ndjson": tuple(mine), f"{day}/other-0001.ndjson": (other,)}
    settled(auditor, HOUR + 1)
    auditor.export()
    assert auditor.exported() == [*mine, other, later]


def test_an_hour_waits_until_nobody_can_add_to_it(auditor: Auditor) -> None:
    """A record is named when its change begins, and a function that changes something may take minutes."""
    early = auditor.record(BEGAN_MS + 5)
    auditor.clock.advance_to(BEGAN_MS + HOUR_MS + SETTLED_MS - 1)
    auditor.export()
    assert auditor.written == {}
    late = auditor.record(BEGAN_MS + HOUR_MS - 1)
    settled(auditor, HOUR)
    auditor.export()
    assert auditor.exported() == [early, late]


def test_written_again_an_object_is_the_same(auditor: Auditor) -> None:
    for number in range(3):
        auditor.record(BEGAN_MS + number)
    settled(auditor, HOUR)
    auditor.export()
    before = dict(auditor.written)
    settled(auditor, HOUR + AGAIN_HOURS)
    assert auditor.export().records == 3
    assert auditor.written == before


def test_what_the_index_was_late_with_is_written_a_day_later(auditor: Auditor) -> None:
    settled(auditor, HOUR)
    auditor.export()
    shown_late = auditor.record(BEGAN_MS + 5)
    settled(auditor, HOUR + AGAIN_HOURS)
    auditor.export()
    assert auditor.exported() == [shown_late]


def test_many_records_are_many_objects(auditor: Auditor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_audit, "PART", 2)
    made = [auditor.record(BEGAN_MS + number) for number in range(5)]
    settled(auditor, HOUR)
    assert auditor.export() == Wrote(objects=3, records=5)
    assert [len(auditor.written[name]) for name in sorted(auditor.written)] == [2, 2, 1]
    assert auditor.exported() == made


def test_what_time_did_not_suffice_for_the_next_run_writes(auditor: Auditor) -> None:
    made = [auditor.record(BEGAN_MS + hour * HOUR_MS, f"t{hour}") for hour in range(4)]
    settled(auditor, HOUR + 3)
    left = iter([60_000, 60_000, 0])
    assert auditor.process().run(lambda: next(left)).behind == 2
    assert auditor.exported() == made[:2]
    assert auditor.export().behind == 0
    assert auditor.exported() == made


def three_hours(auditor: Auditor) -> tuple[Records, Written]:
    """Settle three hours of two tenants; gives the store as it is, and what an undisturbed run writes."""
    for hour in range(3):
        for tenant in ("acme", "other"):
            auditor.record(BEGAN_MS + hour * HOUR_MS, tenant)
    settled(auditor, HOUR + 2)
    begun = auditor.tables.records.copy()
    auditor.process(None, begun.copy()).run(lambda: 60_000)
    expected = dict(auditor.written)
    assert sum(map(len, expected.values())) == 6
    return begun, expected


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_write_it_misses_nothing_and_writes_nothing_else(
    auditor: Auditor,
    after: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    begun, expected = three_hours(auditor)
    for write in itertools.count(1):
        auditor.written, records, faults = {}, begun.copy(), Faults()
        faults.kill_at(write, after=after)
        dying = auditor.process(faults, records)
        with suppress(Killed):
            dying.run(lambda: 60_000)
        auditor.process(None, records).run(lambda: 60_000)
        assert auditor.written == expected
        if not faults.killed:
            assert write > 12
            return


def test_of_two_at_once_one_stops_and_nothing_is_missed(auditor: Auditor) -> None:
    """The second runs whole before any one call of the first."""
    begun, expected = three_hours(auditor)
    for number in range(1, 30):
        auditor.written, records, faults = {}, begun.copy(), Faults()
        first, second = auditor.process(faults, records), auditor.process(None, records)
        calls = itertools.count(1)

        def meanwhile(
            _: Step, calls: Iterator[int] = calls, number: int = number, second: ExportAudit = second
        ) -> None:
            if next(calls) == number:
                second.run(lambda: 60_000)

        faults.before = meanwhile
        first.run(lambda: 60_000)
        assert auditor.written == expected


def test_a_store_that_fails_fails_the_run_and_the_next_goes_on(auditor: Auditor) -> None:
    begun, expected = three_hours(auditor)
    auditor.written, faults = {}, Faults()
    faults.fail_next(method="export")
    with pytest.raises(Unavailable):
        auditor.process(faults, begun).run(lambda: 60_000)
    auditor.process(None, begun).run(lambda: 60_000)
    assert auditor.written == expected
