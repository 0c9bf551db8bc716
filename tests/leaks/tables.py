"""Whole tables of an emulator, handed to a watch."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

from tests.leaks.watch import Watch


def watch_tables(watch: Watch, client: Any, tables: Iterable[str]) -> None:  # noqa: ANN401 - boto3's clients have no type
    """Read every row of these tables; one that a test has dropped has none."""
    for table in tables:
        with suppress(ClientError):
            for page in client.get_paginator("scan").paginate(TableName=table):
                watch.rows(table, page["Items"])
