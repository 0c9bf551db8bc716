"""What an owner is told, and when: decided from values."""

from collections import Counter
from dataclasses import replace

import pytest
import trustme
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain import gate as gates
from chalicelib.domain.auth import Auth, ClientCertificate
from chalicelib.domain.delivery import Ended
from chalicelib.domain.endpoint import GONE_REASON, Endpoint, EndpointState, WrappedSecret
from chalicelib.domain.gate import SECOND, Breaker, Gate, HoldReason, Rules
from chalicelib.domain.notice import (
    AGAIN_MS,
    EXPIRY_MS,
    LATE_MS,
    LOSSES,
    REFUSALS,
    Decision,
    Letters,
    NoticeKind,
    NoticeRules,
    Sight,
    Told,
    Trouble,
    decide,
    wants_letters,
)
from chalicelib.domain.outcome import DeathReason

NOW_MS = 1_700_000_000_000
RULES = NoticeRules()
ENDPOINT = Endpoint("acme", "ep_1", "https://receiver.example/", ("*",), NOW_MS - 1)
GATE = gates.read(gates.new_record(10, 20, 8, rules=Rules()))
QUIET_REASONS = [DeathReason.ENDPOINT_DELETED, DeathReason.UNSUBSCRIBED, DeathReason.SKIPPED]


def died(at_ms: int, reason: DeathReason = DeathReason.EXPIRED, number: int = 0) -> Ended:
    return Ended(f"delivery-{number}", 0, "evt_1", reason, at_ms, 1)


NOTHING = Told()


def marked(at_ms: int, told: Told = NOTHING, gate: Gate = GATE) -> Sight:
    """See an endpoint whose gate was marked for a death."""
    return Sight(ENDPOINT, replace(gate, died=at_ms * 1000), told)


def kinds(decision: Decision) -> list[NoticeKind]:
    return [each.kind for each in decision.findings]


def test_every_reason_is_told_as_a_loss_or_a_refusal_or_is_the_owners_own_doing() -> None:
    assert set(DeathReason) == {*LOSSES, *REFUSALS, *QUIET_REASONS}
    assert not LOSSES & REFUSALS


@pytest.mark.parametrize("reason", QUIET_REASONS)
def test_what_an_owner_did_is_no_finding(reason: DeathReason) -> None:
    decision = decide(marked(NOW_MS - 5_000), Letters((died(NOW_MS - 5_000, reason),)), NOW_MS, RULES)
    assert (decision.findings, decision.again_ms) == ((), None)


def test_a_gate_marked_for_no_death_asks_for_no_dead_letters() -> None:
    assert not wants_letters(Sight(ENDPOINT, GATE, Told()), NOW_MS)
    assert wants_letters(marked(NOW_MS), NOW_MS)


def test_within_a_window_the_dead_letters_are_not_read_again() -> None:
    first = decide(marked(NOW_MS - 5_000), Letters((died(NOW_MS - 5_000),)), NOW_MS, RULES)
    assert kinds(first) == [NoticeKind.DEAD_LETTERS]
    later = marked(NOW_MS + 60_000, first.told)
    assert not wants_letters(later, NOW_MS + 60_000)
    assert wants_letters(replace(later, gate=replace(later.gate, refused=1)), NOW_MS + 60_000)
    second = decide(later, Letters((died(NOW_MS + 60_000),)), NOW_MS + 60_000, RULES)
    assert (second.findings, second.again_ms) == ((), NOW_MS + RULES.window_ms)


@pytest.mark.parametrize("age_us, sure", [(2 * SECOND, True), (2 * SECOND - 1, False)])
def test_a_mark_of_the_last_two_seconds_is_counted_once_more(age_us: int, sure: bool) -> None:  # noqa: FBT001 - a parameter
    gate = replace(GATE, died=NOW_MS * 1000 - age_us)
    decision = decide(Sight(ENDPOINT, gate, Told()), Letters(), NOW_MS, RULES)
    assert decision.again_ms == (None if sure else NOW_MS + AGAIN_MS)


@given(
    st.lists(st.tuples(st.integers(0, 400_000), st.integers(0, LATE_MS - 1_000)), min_size=1, max_size=30),
    st.lists(st.integers(1_000, 300_000), min_size=1, max_size=12),
)
def test_each_dead_letter_is_counted_once_however_late_it_becomes_readable(
    deaths: list[tuple[int, int]], looks: list[int]
) -> None:
    """A death has its moment and is readable up to two minutes later; looks come whenever they come."""
    rules = NoticeRules(window_ms=1)
    told, now_ms, counted = Told(), NOW_MS, Counter[DeathReason]()
    for wait_ms in [*looks, 800_000, 800_000]:
        now_ms += wait_ms
        readable = [
            died(NOW_MS + at, number=n) for n, (at, late) in enumerate(deaths) if NOW_MS + at + late <= now_ms
        ]
        mark_ms = max((NOW_MS + at + late for at, late in deaths if NOW_MS + at + late <= now_ms), default=0)
        decision = decide(marked(mark_ms, told), Letters(tuple(readable)), now_ms, rules)
        told = decision.told
        for each in decision.findings:
            counted += Counter(each.reasons)
    assert counted == {DeathReason.EXPIRED: len(deaths)}


def open_since(at_ms: int, **changes: object) -> Gate:
    fields: dict[str, object] = {
        "state": Breaker.OPEN,
        "held_for": HoldReason.BREAKER_OPEN,
        "held_from": at_ms * 1000,
        "fails": 20,
        "sent": 20,
        **changes,
    }
    return replace(GATE, **fields)  # type: ignore[arg-type]  # any field of a gate


@pytest.mark.parametrize("for_ms, told", [(RULES.outage_ms - 1, False), (RULES.outage_ms, True)])
def test_a_breaker_is_told_once_it_has_been_open_for_a_quarter_of_an_hour(for_ms: int, told: bool) -> None:  # noqa: FBT001 - a parameter
    since_ms = NOW_MS - for_ms
    decision = decide(Sight(ENDPOINT, open_since(since_ms), Told()), Letters(), NOW_MS, RULES)
    assert kinds(decision) == [NoticeKind.BREAKER_OPEN] * told
    assert decision.again_ms == (None if told else since_ms + RULES.outage_ms)
    again = decide(
        Sight(ENDPOINT, open_since(since_ms, state=Breaker.HALF_OPEN), decision.told),
        Letters(),
        NOW_MS + 3_600_000,
        RULES,
    )
    assert kinds(again) == [NoticeKind.BREAKER_OPEN] * (not told)


@pytest.mark.parametrize("state", [EndpointState.DISABLED, EndpointState.DELETED])
def test_the_breaker_of_an_endpoint_that_takes_nothing_is_not_told(state: EndpointState) -> None:
    sight = Sight(replace(ENDPOINT, state=state), open_since(NOW_MS - 9_999_999), Told())
    assert decide(sight, Letters(), NOW_MS, RULES).findings == ()


@pytest.mark.parametrize(
    "reason, told",
    [
        ("", []),
        (GONE_REASON, [NoticeKind.ENDPOINT_GONE]),
        ("no success for 72 hours", [NoticeKind.ENDPOINT_DISABLED]),
    ],
)
def test_a_disabling_is_told_by_its_reason_once(reason: str, told: list[NoticeKind]) -> None:
    off = ENDPOINT.disabled(NOW_MS - 1, reason)
    first = decide(Sight(off, GATE, Told()), Letters(), NOW_MS, RULES)
    assert kinds(first) == told
    assert kinds(decide(Sight(off, GATE, first.told), Letters(), NOW_MS, RULES)) == []
    anew = replace(off, state_ms=NOW_MS + 5)
    assert kinds(decide(Sight(anew, GATE, first.told), Letters(), NOW_MS + 6, RULES)) == told


RECOVERED = replace(GATE, sent=21)


@pytest.mark.parametrize(
    "gate, over",
    [
        (RECOVERED, True),
        (replace(RECOVERED, sent=20), False),
        (replace(RECOVERED, sent=0), False),
        (replace(RECOVERED, fails=1), False),
        (replace(RECOVERED, state=Breaker.HALF_OPEN), False),
    ],
    ids=["well", "nothing sent", "a gate made anew", "fails", "half open"],
)
def test_a_trouble_is_over_when_something_was_sent_since_and_well(gate: Gate, over: bool) -> None:  # noqa: FBT001 - a parameter
    told = Told(trouble=Trouble(NOW_MS - 10, 20))
    letters = Letters((died(NOW_MS - 10), died(NOW_MS - 11), died(NOW_MS - 5, DeathReason.REFUSED)))
    sight = Sight(ENDPOINT, gate, told)
    decision = decide(sight, letters, NOW_MS, RULES)
    assert kinds(decision) == [NoticeKind.RECOVERED] * over
    assert (decision.told.trouble is None) is over
    if over:
        assert wants_letters(sight, NOW_MS)
        (summary,) = decision.findings
        assert summary.reasons == {DeathReason.EXPIRED: 1, DeathReason.REFUSED: 1}
        assert decision.again_ms is None


def test_the_trouble_of_a_deleted_endpoint_is_forgotten() -> None:
    gone = replace(ENDPOINT, state=EndpointState.DELETED)
    told = Told(trouble=Trouble(NOW_MS - 10, 20))
    decision = decide(Sight(gone, RECOVERED, told), Letters(), NOW_MS, RULES)
    assert (decision.findings, decision.told.trouble, decision.again_ms) == ((), None, None)


def test_what_is_sent_while_it_is_disabled_does_not_count_as_a_recovery_once_it_is_enabled() -> None:
    """A 410 disables an endpoint before its own request is settled, and counted."""
    off = ENDPOINT.disabled(NOW_MS, GONE_REASON)
    first = decide(Sight(off, replace(GATE, sent=7), Told()), Letters(), NOW_MS, RULES)
    settled = decide(Sight(off, replace(GATE, sent=8), first.told), Letters(), NOW_MS + 1, RULES)
    enabled = decide(Sight(ENDPOINT, replace(GATE, sent=8), settled.told), Letters(), NOW_MS + 2, RULES)
    assert enabled.findings == ()
    assert enabled.again_ms == NOW_MS + 2 + AGAIN_MS
    well = decide(Sight(ENDPOINT, replace(GATE, sent=9), enabled.told), Letters(), NOW_MS + 3, RULES)
    assert kinds(well) == [NoticeKind.RECOVERED]


def test_a_count_that_was_cut_off_says_so() -> None:
    letters = Letters((died(NOW_MS - 5_000),), complete=False)
    (finding,) = decide(marked(NOW_MS - 5_000), letters, NOW_MS, RULES).findings
    assert not finding.complete


CERTIFICATE = trustme.CA().issue_cert("relay.example").cert_chain_pems[0].bytes().decode()
EXPIRES_MS = x509.load_pem_x509_certificate(CERTIFICATE.encode()).not_valid_after_utc.timestamp() * 1000
CERTIFIED = replace(ENDPOINT, auth=Auth(certificate=ClientCertificate(CERTIFICATE, WrappedSecret(b"sealed"))))
TRUSTING = replace(ENDPOINT, auth=Auth(authorities=CERTIFICATE))


@pytest.mark.parametrize("endpoint", [CERTIFIED, TRUSTING])
def test_an_expiry_is_told_once_a_month_before_and_makes_no_trouble(endpoint: Endpoint) -> None:
    due_ms = int(EXPIRES_MS) - EXPIRY_MS
    early = decide(Sight(endpoint, GATE, NOTHING), Letters(), due_ms - 1, RULES)
    assert (early.findings, early.again_ms) == ((), due_ms)
    due = decide(Sight(endpoint, GATE, NOTHING), Letters(), due_ms, RULES)
    assert [(each.kind, each.until_ms) for each in due.findings] == [
        (NoticeKind.CERTIFICATE_EXPIRES, EXPIRES_MS)
    ]
    assert (due.told.trouble, due.again_ms) == (None, None)
    after = decide(Sight(endpoint, GATE, due.told), Letters(), due_ms + 1, RULES)
    assert (after.findings, after.again_ms) == ((), None)


def test_of_a_deleted_endpoint_no_expiry_is_told() -> None:
    gone = replace(CERTIFIED, state=EndpointState.DELETED)
    decision = decide(Sight(gone, GATE, NOTHING), Letters(), int(EXPIRES_MS), RULES)
    assert (decision.findings, decision.again_ms) == ((), None)
