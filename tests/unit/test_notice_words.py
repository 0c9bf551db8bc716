"""Notices in words: every kind says what happened, fits its mail, and gives nothing away."""

import json

import pytest

from chalicelib.adapters.aws_limits.sns import check
from chalicelib.domain.notice import Finding, Notice, NoticeKind
from chalicelib.domain.outcome import DeathReason
from chalicelib.wire import notices

NTC, EP = (f"{prefix}_01a22a7c-5366-79c3-90eb-70e6bdfad2fa" for prefix in ("ntc", "ep"))
NOW_MS = 1_700_000_000_000


def noticed(kind: NoticeKind, *, complete: bool = True, **reasons: int) -> Notice:
    counts = {DeathReason(reason): count for reason, count in reasons.items()}
    return Notice(
        "acme", NTC, EP, NOW_MS, Finding(kind, NOW_MS - 1_000, NOW_MS, counts, complete, "it said so")
    )


@pytest.mark.parametrize("kind", NoticeKind)
def test_every_kind_fits_a_mail_and_ends_its_sentences(kind: NoticeKind) -> None:
    notice = noticed(kind, expired=2)
    message = json.dumps(notices.published(notice))
    check("Publish", {"TopicArn": "arn", "Subject": notices.subject(notice), "Message": message})
    assert EP in notices.subject(notice)
    assert notices.text(notice).endswith(".")
    letter = notices.letter(notice)
    assert all(part in letter for part in (notices.text(notice), EP, "acme", NTC))


def test_dead_letters_are_counted_by_reason() -> None:
    told = notices.published(noticed(NoticeKind.DEAD_LETTERS, expired=2, poisoned=1))
    assert (told["dead_letters"], told["reasons"]) == (3, {"expired": 2, "poisoned": 1})
    assert told["text"].startswith("3 deliveries were given up on (expired 2, poisoned 1) since 2023-")
    one = notices.text(noticed(NoticeKind.DEAD_LETTERS, expired=1))
    assert one.startswith("1 delivery was given up on (expired 1)")


def test_a_count_that_was_cut_off_says_at_least() -> None:
    told = notices.published(noticed(NoticeKind.DEAD_LETTERS, complete=False, expired=2))
    assert told["text"].startswith("At least 2 deliveries")
    assert told["complete"] is False


@pytest.mark.parametrize("kind", [NoticeKind.ENDPOINT_GONE, NoticeKind.ENDPOINT_DISABLED])
def test_a_disabling_says_why(kind: NoticeKind) -> None:
    assert "it said so" in notices.text(noticed(kind))


def test_a_recovery_says_what_was_lost_or_that_nothing_was() -> None:
    assert "2 deliveries were given up on" in notices.text(noticed(NoticeKind.RECOVERED, expired=2))
    assert "No delivery was given up on meanwhile" in notices.text(noticed(NoticeKind.RECOVERED))


def test_a_notice_that_was_not_published_yet_says_so() -> None:
    assert notices.shown(noticed(NoticeKind.RECOVERED))["published_at"] is None
