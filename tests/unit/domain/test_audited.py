"""What the audit shows: all that the API shows of a thing, and no secret."""

from dataclasses import replace

from chalicelib.domain import audited
from chalicelib.domain.audit import Difference, difference
from chalicelib.domain.endpoint import Endpoint, WrappedSecret
from chalicelib.domain.secret import MASK, Secret
from chalicelib.wire import answers

ENDPOINT = Endpoint(
    "acme",
    "ep_1",
    "https://receiver.example/",
    ("order.paid",),
    1_700_000_000_000,
    headers=(("X-Token", Secret("hidden-value")),),
    secrets=(WrappedSecret(b"wrapped"), WrappedSecret(b"older", 1_700_000_060)),
)
NOT_ITS_OWNERS = {"previous_secret_expires_at", "external_id", "id", "version", "created_at"}
BEYOND_ANSWERS = {"skipped_before", "secrets"}


def test_an_endpoint_is_shown_as_the_api_shows_it() -> None:
    shown, answered = audited.endpoint(ENDPOINT), answers.endpoint(ENDPOINT)
    assert shown.keys() - BEYOND_ANSWERS == answered.keys() - NOT_ITS_OWNERS
    assert {name: shown[name] for name in shown.keys() - BEYOND_ANSWERS}.items() <= answered.items()


def test_only_what_changed_is_shown_of_a_change() -> None:
    new = replace(ENDPOINT, description="new", version=2, changed_ms=5)
    assert audited.endpoint_change(ENDPOINT, new) == Difference({"description": ""}, {"description": "new"})


def test_a_changed_header_value_is_named_and_never_shown() -> None:
    new = replace(ENDPOINT, headers=(("X-Token", Secret("other-value")),))
    change = audited.endpoint_change(ENDPOINT, new)
    assert change.before == change.after == {"headers": {"X-Token": MASK}}


def test_f129_a_changed_token_of_a_url_is_named_and_never_shown() -> None:
    old = replace(ENDPOINT, url="https://receiver.example/hook?key=S3CR3T")
    change = audited.endpoint_change(old, replace(old, url="https://receiver.example/hook?key=An0ther"))
    assert change.before == change.after == {"url": f"https://receiver.example/hook?key={MASK}"}


def test_of_secrets_the_audit_says_how_long_they_sign() -> None:
    new = replace(ENDPOINT, secrets=(WrappedSecret(b"newest"), WrappedSecret(b"wrapped", 1_700_000_030)))
    change = audited.endpoint_change(ENDPOINT, new)
    assert change.before == {"secrets": ["signs", "signs until 2023-11-14T22:14:20.000Z"]}
    assert change.after == {"secrets": ["signs", "signs until 2023-11-14T22:13:50.000Z"]}
    assert "wrapped" not in repr(change)


def test_what_is_the_same_in_both_is_no_difference() -> None:
    assert difference({"a": 1, "b": 2}, {"a": 1, "b": 3}) == Difference({"b": 2}, {"b": 3})
