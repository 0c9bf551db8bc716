"""Replay over the API: the next generation under the same id, and refusals where it cannot be."""

from collections.abc import Mapping
from typing import Any

import pytest

from chalicelib.domain import ids
from chalicelib.domain.api_key import Role
from tests.handlers.relay import Relay
from tests.receiver import Receiver

NOBODY = ids.delivery_id(
    "evt_01890a5d-ac96-774b-bcce-b302099a8057", "ep_01890a5d-ac96-774b-bcce-b302099a8057"
)


def delivered(relay: Relay, url: str, **fields: object) -> tuple[Mapping[str, Any], str]:
    """Register an endpoint and have one delivery to it that has been tried."""
    made = relay.endpoint(url=url, **fields)
    (delivery_id,) = relay.event()["delivery_ids"]
    relay.deliver_all()
    return made, delivery_id


def replay(relay: Relay, delivery_id: str, body: bytes = b"") -> Any:  # noqa: ANN401 - an answer
    return relay.call("POST", f"/v1/deliveries/{delivery_id}/replay", body)


def test_a_delivered_one_is_sent_again_and_the_old_generation_says_so(
    relay: Relay, receiver: Receiver
) -> None:
    made, delivery_id = delivered(relay, receiver.url("/sink"))
    answer = replay(relay, delivery_id)
    assert answer.status == 202
    assert answer.headers["location"] == f"/v1/deliveries/{delivery_id}"
    begun = answer.json
    assert (begun["id"], begun["generation"], begun["status"]) == (delivery_id, 1, "pending")
    assert relay.bells() == {}
    (bell,) = relay.messages("replay")
    assert bell["Attributes"]["MessageGroupId"] == f"default#{made['id']}#r0"
    assert relay.deliver("replay", [bell]) == []
    said = relay.get(f"/v1/deliveries/{delivery_id}").json
    assert (said["generation"], said["generations"], said["status"]) == (1, [0, 1], "succeeded")
    assert (said["replayed_as"], said["event_type"]) == (None, "order.paid")
    (old,) = said["earlier"]
    assert (old["generation"], old["replayed_as"], old["status"]) == (0, 1, "succeeded")
    assert old["replayed_at"] == said["created_at"] == begun["created_at"]
    assert [each["generation"] for each in (*old["attempts"], *said["attempts"])] == [0, 1]


def test_a_second_press_is_409_until_the_first_has_ended(relay: Relay, receiver: Receiver) -> None:
    _, delivery_id = delivered(relay, receiver.url("/sink"))
    assert replay(relay, delivery_id, b"{}").status == 202
    assert replay(relay, delivery_id).is_problem(409, "delivery_pending", "id")
    relay.deliver("replay", relay.messages("replay"))
    again = replay(relay, delivery_id)
    assert (again.status, again.json["generation"]) == (202, 2)


def test_a_retry_that_waits_is_409(relay: Relay, receiver: Receiver) -> None:
    _, delivery_id = delivered(relay, receiver.url("/always500"))
    assert replay(relay, delivery_id).is_problem(409, "delivery_pending", "id")


def test_a_dead_letter_is_listed_with_what_it_was_replayed_as(relay: Relay, receiver: Receiver) -> None:
    made, delivery_id = delivered(relay, receiver.script("mended", {"status": 404}, {"status": 200}))
    path = f"/v1/endpoints/{made['id']}/dead-letters"
    (letter,) = relay.get(path).json["items"]
    assert letter == {
        "delivery_id": delivery_id,
        "generation": 0,
        "event_id": letter["event_id"],
        "reason": "permanent_failure",
        "at": letter["at"],
        "attempts": 1,
        "replayed_as": None,
    }
    replay(relay, delivery_id)
    relay.deliver("replay", relay.messages("replay"))
    (letter,) = relay.get(path).json["items"]
    assert letter["replayed_as"] == 1


def test_dead_letters_are_paged_newest_first(relay: Relay, receiver: Receiver) -> None:
    made = relay.endpoint(url=receiver.url("/status/404"))
    wanted = [relay.event()["delivery_ids"][0] for _ in range(5)]
    relay.deliver_all()
    path = f"/v1/endpoints/{made['id']}/dead-letters"
    pages = list(relay.pages(f"{path}?limit=2"))
    assert [len(each) for each in pages] == [2, 2, 1]
    assert [each["delivery_id"] for page in pages for each in page] == wanted[::-1]
    assert relay.get(f"{path}?limit=0").is_problem(400, "field_invalid", "limit")
    assert relay.get(f"{path}?status=dead").is_problem(400, "field_unknown", "status")
    assert relay.another("other").get(path).is_problem(404, "not_found", "id")


def test_a_deleted_endpoint_is_sent_nothing_and_still_lists_its_dead_letters(
    relay: Relay, receiver: Receiver
) -> None:
    made, delivery_id = delivered(relay, receiver.url("/status/404"))
    relay.delete(made)
    assert replay(relay, delivery_id).is_problem(409, "endpoint_deleted", "id")
    (letter,) = relay.get(f"/v1/endpoints/{made['id']}/dead-letters").json["items"]
    assert letter["delivery_id"] == delivery_id


def test_what_cannot_be_sent_is_refused_at_once(relay: Relay, receiver: Receiver) -> None:
    made, delivery_id = delivered(relay, receiver.url("/sink"))
    made = relay.patch(made, {"event_types": ["other"]}).json
    assert replay(relay, delivery_id).is_problem(409, "not_subscribed", "id")
    relay.patch(made, {"event_types": ["*"]})
    (event,) = [row for row in relay.rows("events") if row["sk"]["S"].startswith("evt_")]
    relay.change("events", event, ttl={"N": "1"})
    assert replay(relay, delivery_id).is_problem(409, "payload_expired", "id")


def test_only_an_admin_of_the_same_tenant_replays(relay: Relay, receiver: Receiver) -> None:
    _, delivery_id = delivered(relay, receiver.url("/sink"))
    assert replay(relay.another("default", Role.VIEWER), delivery_id).is_problem(403, "forbidden")
    assert replay(relay.another("default", Role.PRODUCER), delivery_id).is_problem(403, "forbidden")
    assert replay(relay.another("other"), delivery_id).is_problem(404, "not_found", "id")
    assert replay(relay, NOBODY).is_problem(404, "not_found", "id")


@pytest.mark.parametrize(
    "body, code, field", [(b'{"now":1}', "field_unknown", "now"), (b"[]", "field_invalid", "")]
)
def test_a_replay_says_nothing_more(
    relay: Relay, receiver: Receiver, body: bytes, code: str, field: str
) -> None:
    _, delivery_id = delivered(relay, receiver.url("/sink"))
    assert replay(relay, delivery_id, body).is_problem(400, code, field)
