"""Rules for a whole item and for the name of its table, however they are sent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.change_rules import check_expiry
from chalicelib.adapters.aws_limits.dynamodb_values import check_item
from chalicelib.adapters.aws_limits.refusal import refuse
from chalicelib.adapters.aws_limits.table_keys import check_item_keys

if TYPE_CHECKING:
    from chalicelib.adapters.aws_limits.dynamodb_values import Item
    from chalicelib.adapters.aws_limits.table_keys import TableKeys

_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_TABLE_ARN = re.compile(r"arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[A-Za-z0-9_.-]{3,255}")


def check_table_name(name: str, where: str) -> None:
    """Refuse what is neither a table's name nor its ARN."""
    if not _TABLE.fullmatch(name) and not _TABLE_ARN.fullmatch(name):
        refuse(where, "a table name must be 3 to 255 of A-Z a-z 0-9 _ - .")


def check_index_name(name: str, where: str) -> None:
    """Refuse what is no name of an index."""
    if not _TABLE.fullmatch(name):
        refuse(where, "an index name must be 3 to 255 of A-Z a-z 0-9 _ - .")


def check_whole_item(keys: TableKeys, ttl: str, item: Item, where: str) -> int:
    """Refuse an item with bad values, keys or expiry, or of more than 400 KB; return its size."""
    size = check_item(item, where)
    check_item_keys(keys, item, where)
    if ttl in item:
        check_expiry(item[ttl], f"{where}.{ttl}", ttl)
    return size
