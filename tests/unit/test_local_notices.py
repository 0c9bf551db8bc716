"""What `make dev` says of a notice: one line, from what a topic hands to a queue."""

import json

from chalicelib.domain.notice import Finding, Notice, NoticeKind
from chalicelib.domain.outcome import DeathReason
from chalicelib.wire import notices
from infra.local.notices import line_of

NOTICE = Notice(
    "acme",
    "ntc_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    "ep_01a22a7c-5366-79c3-90eb-70e6bdfad2fa",
    1_700_000_000_000,
    Finding(NoticeKind.DEAD_LETTERS, 1_700_000_000_000, 1_700_000_000_000, {DeathReason.EXPIRED: 2}),
)


def test_a_notice_is_one_line_that_names_its_endpoint_and_says_what_happened() -> None:
    line = line_of(json.dumps({"Message": json.dumps(notices.published(NOTICE))}))
    assert line == (
        f"Notice: endpoint {NOTICE.endpoint_id}: 2 deliveries were given up on (expired 2) since"
        " 2023-11-14T22:13:20.000Z; they will not be tried again by themselves."
    )
