"""A tenant is purged while its deliveries are under way: on the whole stack, as its operator does it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import QUICK
from tests.e2e.customer import Customer
from tests.e2e.stack import RelayStack

OPERATOR = {"Authorization": "Bearer relay_operator.local-development-only"}
BRIEF = {"RELAY_FUNCTION_TIMEOUT_SECS": "15", "RELAY_KEY_CACHE_SECS": "1"}
LARGE = (
    b'{"noise": "'
    + bytes(33 + (n * n * 7919) % 90 for n in range(9_000)).replace(b'"', b"'").replace(b"\\", b"/")
    + b'"}'
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayStack]:
    state = tmp_path_factory.mktemp("purged")
    with RelayStack(state, "--schedule-speed", "20", settings={**QUICK, **BRIEF}) as stack:
        yield stack


def rows_of(stack: RelayStack, tenant: str) -> dict[str, int]:
    """Count a tenant's rows, table by table."""
    client: Any = stack.client("dynamodb")
    counted = {}
    for table in client.list_tables()["TableNames"]:
        pages = client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        names = [item["pk"]["S"].partition("#")[0] for page in pages for item in page["Items"]]
        counted[table.removeprefix(stack.prefix)] = names.count(tenant)
    return {table: count for table, count in counted.items() if count}


def test_all_of_it_goes_but_its_audit_and_nothing_is_sent_any_more(stack: RelayStack) -> None:
    with Customer(stack) as customer:
        hooks = [customer.hook(path) for path in ("/sink", "/status/503", "/slow?ms=1000", "/status/404")]
        for _ in range(5):
            for hook in hooks:
                customer.api.post(
                    "/v1/events", content=LARGE, headers={"Relay-Event-Type": hook.type}
                ).raise_for_status()
        asked = httpx.Client(base_url=stack.api_url, headers=OPERATOR, timeout=30, trust_env=False)
        with asked:
            etag = asked.get("/v1/tenants/default").headers["ETag"]
            answer = asked.delete("/v1/tenants/default", headers={"If-Match": etag})
            assert (answer.status_code, answer.json()["state"]) == (202, "purging")
            stack.until(lambda: asked.get("/v1/tenants/default").status_code == 404, within_s=240)
            assert rows_of(stack, "default").keys() == {"audit"}
            assert not stack.client("s3").list_objects_v2(Bucket="relay-payloads").get("Contents")
            sent = customer.receiver.get("/received").json()
            listed = asked.get("/v1/audit?tenant=default&action=tenant.purged").json()["items"]
            assert [each["actor"]["kind"] for each in listed] == ["relay", "operator"]
            assert customer.receiver.get("/received").json() == sent
