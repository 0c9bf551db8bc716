"""The packed row of a pattern's subscribers: all that a tenant may have fit in it, whatever they are like."""

from dataclasses import replace

import pytest

from chalicelib.adapters.aws_limits.dynamodb_values import ITEM_LARGEST_BYTES, item_size
from chalicelib.adapters.dynamodb import keys, render, rows
from chalicelib.domain import ids, pattern
from chalicelib.domain.endpoint import CONCURRENCY_MAX, Endpoint, Limits, Ordering
from chalicelib.domain.event import TYPE_MAX
from chalicelib.domain.tenant import QUOTAS_MAX

TENANT = "tn_019a7afd-1e00-7bbb-bbbb-bbbbbbbbbbbb"
NOW_MS = 1_796_067_175_798
PLAIN = Endpoint(TENANT, "ep", "https://receiver.example/", ("*",), NOW_MS)
LARGEST = replace(
    PLAIN,
    limits=Limits(max_concurrency=CONCURRENCY_MAX),
    ordering=Ordering.ENDPOINT,
    filter=pattern.admitted({"amount": [1]}),
)


@pytest.mark.parametrize("endpoint", [PLAIN, LARGEST], ids=["plain", "ordered and filtered"])
def test_as_many_endpoints_as_a_quota_allows_may_subscribe_to_one_pattern(endpoint: Endpoint) -> None:
    value = rows.subscriber_value(endpoint)
    names = [ids.new_id("ep", NOW_MS, number) for number in range(QUOTAS_MAX.endpoints)]
    at = keys.subscription(TENANT, "x" * TYPE_MAX)
    assert item_size(render.attributes({**at.parts, **dict.fromkeys(names, value)})) <= ITEM_LARGEST_BYTES
