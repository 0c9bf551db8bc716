"""Rules about characters and names: what may stand in a queue message, an id or a name."""

from __future__ import annotations

import re

from chalicelib.adapters.aws_limits.refusal import refuse

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ID = re.compile(r"[!-~]{1,128}")
_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


def check_message_text(text: str, where: str) -> None:
    """Refuse an empty text and characters outside XML 1.0, which SQS refuses or silently replaces."""
    if not text:
        refuse(where, "must not be empty")
    odd = _NOT_XML.search(text)
    if odd is not None:
        refuse(where, f"may hold only XML 1.0 characters, has U+{ord(odd.group()):04X} at {odd.start()}")


def check_id(identifier: str | None, where: str) -> None:
    """Refuse a group or deduplication id that is not 1 to 128 ASCII letters, digits and punctuation marks."""
    if identifier is not None and not _ID.fullmatch(identifier):
        refuse(where, "must be 1 to 128 ASCII letters, digits and punctuation marks")


def check_entry_id(identifier: str, where: str) -> None:
    """Refuse an id of a batch entry that is not 1 to 80 of A-Z a-z 0-9 _ -."""
    if not _ENTRY_ID.fullmatch(identifier):
        refuse(where, "must be 1 to 80 of A-Z a-z 0-9 _ -")


def is_fifo(name_or_address: str) -> bool:
    """Say whether a queue or topic is FIFO; its name, address or ARN tells."""
    return name_or_address.endswith(".fifo")
