"""The export of the audit: what it reads of a store, and the objects it writes."""

import json

import pytest

from chalicelib.adapters.dynamodb.auditing import DynamoExportingAudit, recorded
from chalicelib.adapters.s3_exports import S3Exports
from chalicelib.application.ports import Unavailable
from chalicelib.domain import audit, ids
from chalicelib.domain.audit import Action, Difference, Record
from chalicelib.domain.audit_export import HOUR_MS, Exported
from infra.local.provision import Provisioned
from tests.contract.emulated import strict_client
from tests.contract.given import BY, STRANGER, TENANT, Stores

HOUR = 472_222
BEGAN_MS = HOUR * HOUR_MS


def record(number: int, at_ms: int, tenant: str = TENANT) -> Record:
    name = ids.new_id(audit.PREFIX, at_ms, number)
    change = Difference({"description": ""}, {"description": "naïve ☃\n"})
    return Record(tenant, name, at_ms, Action.ENDPOINT_CHANGED, "ep_1", BY, change)


@pytest.fixture
def exporting(stores: Stores) -> DynamoExportingAudit:
    return DynamoExportingAudit(stores.tables)


class TestRead:
    def test_the_records_of_an_hour_are_those_made_in_it_oldest_first(
        self, stores: Stores, exporting: DynamoExportingAudit
    ) -> None:
        inside = [record(number, BEGAN_MS + number * (HOUR_MS - 1) // 4) for number in range(5)]
        outside = [record(8, BEGAN_MS - 1), record(9, BEGAN_MS + HOUR_MS), record(7, BEGAN_MS, STRANGER)]
        stores.tables.each([recorded(each) for each in [*inside, *outside]])
        assert exporting.records(TENANT, HOUR, "", 10) == inside
        assert exporting.records(TENANT, HOUR, inside[1].id, 2) == inside[2:4]
        assert exporting.records(TENANT, HOUR, inside[4].id, 2) == []

    def test_the_tenants_of_an_hour_are_found_by_it(
        self, stores: Stores, exporting: DynamoExportingAudit
    ) -> None:
        some = [record(1, BEGAN_MS), record(2, BEGAN_MS + 9), record(3, BEGAN_MS + HOUR_MS - 1, STRANGER)]
        stores.tables.each([recorded(each) for each in [*some, record(4, BEGAN_MS + HOUR_MS, "third")]])
        assert exporting.tenants(HOUR) == [TENANT, STRANGER]
        assert exporting.tenants(HOUR - 1) == []


class TestNote:
    def test_how_far_it_has_come_is_read_as_it_was_noted(self, exporting: DynamoExportingAudit) -> None:
        assert exporting.exported() is None
        assert exporting.move(None, Exported(HOUR))
        assert exporting.move(Exported(HOUR), Exported(HOUR, "acme"))
        assert exporting.exported() == Exported(HOUR, "acme")

    def test_of_two_only_one_moves_it_on(self, exporting: DynamoExportingAudit) -> None:
        assert exporting.move(None, Exported(HOUR))
        assert not exporting.move(None, Exported(HOUR))
        assert exporting.move(Exported(HOUR), Exported(HOUR + 1))
        assert not exporting.move(Exported(HOUR), Exported(HOUR + 1))


@pytest.fixture
def bucket(provisioned: Provisioned) -> S3Exports:
    return S3Exports(strict_client("s3", provisioned.endpoint_url), provisioned.audit_bucket)


def test_an_object_has_a_record_a_line_and_written_again_the_same_bytes(
    provisioned: Provisioned, bucket: S3Exports
) -> None:
    some = [record(1, BEGAN_MS), record(2, BEGAN_MS + 1)]
    s3 = strict_client("s3", provisioned.endpoint_url)
    bodies = []
    for _ in range(2):
        bucket.write("audit/2023-11-14/22/acme-0001.ndjson", some)
        answer = s3.get_object(Bucket=provisioned.audit_bucket, Key="audit/2023-11-14/22/acme-0001.ndjson")
        assert answer["ContentType"] == "application/x-ndjson"
        bodies.append(answer["Body"].read())
    assert bodies[0] == bodies[1]
    lines = [json.loads(line) for line in bodies[0].decode().splitlines()]
    assert [each["id"] for each in lines] == [each.id for each in some]
    assert lines[0] == {
        "id": some[0].id,
        "at": "2023-11-14T22:00:00.000Z",
        "action": "endpoint.changed",
        "subject": "ep_1",
        "actor": {"kind": "key", "key_id": "key_1", "address": "203.0.113.9"},
        "before": {"description": ""},
        "after": {"description": "naïve ☃\n"},
        "tenant": TENANT,
    }


def test_a_bucket_that_is_not_there_is_told_as_unavailable(emulator: str) -> None:
    with pytest.raises(Unavailable):
        S3Exports(strict_client("s3", emulator), "no-such-bucket").write("a", [record(1, BEGAN_MS)])
