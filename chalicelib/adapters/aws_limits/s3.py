"""S3: object keys and the names of new buckets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.refusal import check_bytes, check_count, refuse, utf8_bytes

if TYPE_CHECKING:
    from chalicelib.adapters.aws_limits.refusal import Params

KEY_LONGEST_BYTES = 1_024
METADATA_LARGEST_BYTES = 2_048
_DELETE_MOST = 1_000
_BUCKET = re.compile(r"(?!.*\.\.)(?!xn--)(?!\d+\.\d+\.\d+\.\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def check(operation: str, params: Params) -> None:
    """Refuse what S3 refuses of this call."""
    if "Key" in params:
        _check_key(params["Key"], "Key")
    metadata = params.get("Metadata") or {}
    size = sum(utf8_bytes(name) + utf8_bytes(value) for name, value in metadata.items())
    check_bytes(size, METADATA_LARGEST_BYTES, "Metadata")
    match operation:
        case "CreateBucket" if not _BUCKET.fullmatch(params["Bucket"]):
            refuse("Bucket", "must be 3 to 63 of a-z 0-9 . - that begin and end with a letter or digit")
        case "DeleteObjects":
            _check_deleted(params["Delete"]["Objects"])


def _check_deleted(objects: list[Params]) -> None:
    check_count(objects, 1, _DELETE_MOST, "Delete.Objects")
    for place, item in enumerate(objects):
        _check_key(item["Key"], f"Delete.Objects[{place}].Key")


def _check_key(key: str, where: str) -> None:
    if not key:
        refuse(where, "must not be empty")
    check_bytes(utf8_bytes(key), KEY_LONGEST_BYTES, where)
