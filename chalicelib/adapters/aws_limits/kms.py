"""KMS: plaintexts, key ids and aliases; lengths that the API model states are checked there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chalicelib.adapters.aws_limits.refusal import refuse

if TYPE_CHECKING:
    from chalicelib.adapters.aws_limits.refusal import Params

_ALIAS = re.compile(r"alias/[A-Za-z0-9/_-]+")
_ALIAS_LONGEST = 256
_KEY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32}")
_ARN = re.compile(r"arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/.+")


def check(operation: str, params: Params) -> None:
    """Refuse what KMS refuses of this call."""
    for name in ("KeyId", "TargetKeyId"):
        if name in params:
            _check_key_id(params[name], name)
    if "AliasName" in params:
        _check_alias(params["AliasName"])
    if operation in {"CreateAlias", "UpdateAlias"} and "alias/" in params["TargetKeyId"]:
        refuse("TargetKeyId", "must be a key, not another alias")


def _check_key_id(key_id: str, where: str) -> None:
    if key_id.startswith("alias/"):
        _check_alias_form(key_id, where)
    elif not (_KEY_ID.fullmatch(key_id) or _ARN.fullmatch(key_id)):
        refuse(where, "must be a key id, an alias that begins with alias/, or the ARN of either")


def _check_alias(alias: str) -> None:
    _check_alias_form(alias, "AliasName")
    if alias.startswith("alias/aws/"):
        refuse("AliasName", "alias/aws/ is reserved for AWS's own keys")


def _check_alias_form(alias: str, where: str) -> None:
    if len(alias) > _ALIAS_LONGEST or not _ALIAS.fullmatch(alias):
        refuse(where, "must be alias/ and then A-Z a-z 0-9 / _ -, at most 256 characters in all")
