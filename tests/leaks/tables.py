"""Whole tables of an emulator, handed to a watch."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

from tests.leaks.watch import Watch


def watch_tables(watch: Watch, client: Any, tables: Iterable[str], tenant: str = "") -> None:  # noqa: ANN401 - boto3's clients have no type
    """Read every row of these tables, or a tenant's; one that a test has dropped has none.

    Without a secret to look for, nothing is read.
    """
    if not watch.knows_any:
        return
    of = {"FilterExpression": "begins_with(pk, :of)", "ExpressionAttributeValues": {":of": {"S": tenant}}}
    for table in tables:
        with suppress(ClientError):
            for page in client.get_paginator("scan").paginate(TableName=table, **(of if tenant else {})):
                watch.rows(table, page["Items"])
