"""What CloudWatch has been told of the counters, in DynamoDB: one row, of the table of metrics."""

from dataclasses import replace
from typing import Any

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Insert, Tables, Update
from chalicelib.application.ports.reporting import Reported
from chalicelib.domain.change import Change, Op, Record, Test
from chalicelib.domain.counts import Counts

_BETWEEN = "."


class DynamoReporting:
    """Keeps the last report."""

    def __init__(self, tables: Tables) -> None:
        """Read and write this table."""
        self._tables = tables

    def last(self) -> Reported | None:
        """Read it; None before the first."""
        at = keys.reported()
        record = self._tables.get([at]).get(at)
        return _reported_of(record) if record else None

    def write_down(self, report: Reported, after: Reported | None) -> bool:
        """Put a report in the place of the one before; False when another was first."""
        at, row = keys.reported(), _row(report)
        if after is None:
            (made,) = self._tables.each([Insert(at, row)])
        else:
            same = (Test("version", Op.EQ, after.version), Test("told", Op.EQ, 1))
            (made,) = self._tables.each([Update(at, Change(same, row, {}))])
        return made.done

    def mark_told(self, report: Reported) -> Reported:
        """Note that a report was told, unless a later one stands there, and give it as it is then."""
        same = (Test("version", Op.EQ, report.version),)
        self._tables.each([Update(keys.reported(), Change(same, {"told": 1}, {}))])
        return replace(report, told=True)


def _row(report: Reported) -> dict[str, Any]:
    counts = {"totals": _written(report.totals), "before": _written(report.before)}
    return {"version": report.version, "at_ms": report.at_ms, "told": int(report.told), **counts}


def _reported_of(record: Record) -> Reported:
    totals, before = (_counts_of(record[name]) for name in ("totals", "before"))
    return Reported(record["version"], record["at_ms"], totals, before, record["told"] == 1)


def _written(counts: Counts) -> dict[str, int]:
    """Write counts without those of nothing."""
    return {_BETWEEN.join(cell): count for cell, count in counts.items() if count}


def _counts_of(stored: Record) -> Counts:
    return {(name, value): count for (name, _, value), count in _parted(stored)}


def _parted(stored: Record) -> list[tuple[tuple[str, str, str], int]]:
    return [(cell.partition(_BETWEEN), count) for cell, count in stored.items()]
