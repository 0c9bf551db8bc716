"""The release gate at the door: each destination has its one outcome when it is registered or changed to."""

import pytest

from tests.destinations import NOT_ALLOWED, PUBLIC, REFUSED
from tests.handlers.relay import Answer, Relay

EXPECTED = {name: (400, code, "url") for name, (_, code) in REFUSED.items()}


def told(answer: Answer) -> tuple[int, str, str]:
    said = answer.json
    assert answer.is_problem(said["status"], said["code"], said["field"])
    return said["status"], said["code"], said["field"]


def test_no_destination_that_is_refused_can_be_registered(empty_guarded: Relay) -> None:
    asked = {name: {"url": url, "event_types": ["*"]} for name, (url, _) in REFUSED.items()}
    assert {name: told(empty_guarded.post("/v1/endpoints", each)) for name, each in asked.items()} == EXPECTED


def test_no_endpoint_can_be_changed_to_a_destination_that_is_refused(guarded: Relay) -> None:
    made = guarded.endpoint()
    changed = {name: guarded.patch(made, {"url": url}) for name, (url, _) in REFUSED.items()}
    assert {name: told(each) for name, each in changed.items()} == EXPECTED
    now = guarded.get(f"/v1/endpoints/{made['id']}").json
    assert (now["url"], now["version"]) == (made["url"], made["version"])


def test_f089_refusals_name_the_rule_alike_and_never_the_address(empty_guarded: Relay) -> None:
    inner = [url for url, code in REFUSED.values() if code == NOT_ALLOWED]
    answers = [empty_guarded.post("/v1/endpoints", {"url": url, "event_types": ["*"]}).json for url in inner]
    assert {(each["detail"], each["expected"]) for each in answers} == {
        ("The URL leads to an address that requests may not be sent to.", "a public address")
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_is_registered_by_its_one_spelling(guarded: Relay, name: str) -> None:
    host, stored = PUBLIC[name]
    made = guarded.endpoint(url=f"https://{host}/in")
    assert made["url"] == f"https://{stored}/in"
    changed = guarded.patch(made, {"url": f"https://{host}/other"})
    assert changed.json["url"] == f"https://{stored}/other"


def test_f079_a_name_is_registered_without_being_looked_up(guarded: Relay) -> None:
    assert guarded.endpoint(url="https://nobody.invalid/in")["url"] == "https://nobody.invalid/in"
