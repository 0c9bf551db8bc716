"""What a process knows of tenants' budgets: read once a while, and not of those who are not there."""

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.records import Merge
from chalicelib.adapters.dynamodb.trusting import DynamoTenants, tenant_row
from chalicelib.application.pacing import KnownQuotas
from chalicelib.domain.tenant import QUOTAS_MAX, Quotas, Tenant
from tests.fakes.fixed_clock import FixedClock
from tests.fakes.memory_tables import MemoryTables


def write(tables: MemoryTables, per_second: int) -> None:
    tenant = Tenant("acme", quotas=Quotas(fan_out_per_second=per_second))
    tables.together([Merge(keys.tenant("acme"), tenant_row(tenant))])


def test_a_budget_is_read_once_in_a_while_and_a_changed_one_is_seen_after_that() -> None:
    tables, clock = MemoryTables(), FixedClock()
    known = KnownQuotas(DynamoTenants(tables), clock, 30_000)
    write(tables, 10)
    tables.faults.steps.clear()
    assert [known.fan_out_per_second("acme") for _ in range(5)] == [10] * 5
    assert len(tables.faults.steps) == 1
    write(tables, 20)
    clock.advance(ms=29_999)
    assert known.fan_out_per_second("acme") == 10
    clock.advance(ms=1)
    assert known.fan_out_per_second("acme") == 20


def test_of_a_tenant_that_is_not_there_nothing_is_counted() -> None:
    known = KnownQuotas(DynamoTenants(MemoryTables()), FixedClock(), 30_000)
    assert known.fan_out_per_second("gone") == QUOTAS_MAX.fan_out_per_second
