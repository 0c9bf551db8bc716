"""Filters, from the posted payload to what arrives, or does not: at once and in a later fan-out."""

import json

from tests.e2e.customer import Customer

MUCH, LITTLE = b'{"order": {"sum": 500.10}}', b'{"order": {"sum": 5}}'
LARGE = {"order": {"sum": [{"numeric": [">", 100]}]}}
SMALL = {"order": {"sum": [{"numeric": ["<=", 100]}]}}
MORE_THAN_INLINE = 41


def test_only_what_passes_arrives_and_a_changed_filter_binds_the_next_event(customer: Customer) -> None:
    hook = customer.hook("/sink", filter=LARGE)
    posted = [customer.post(hook.type, body) for body in (LITTLE, MUCH)]
    customer.change(hook.id, filter=SMALL)
    posted += [customer.post(hook.type, body) for body in (LITTLE, MUCH)]
    customer.change(hook.id, filter=None)
    posted += [customer.post(hook.type, body) for body in (LITTLE, MUCH)]
    assert [each.fan_out for each in posted] == ["none", "inline", "inline", "none", "inline", "inline"]
    wanted = [each for each in posted if each.delivery_ids]
    for each in wanted:
        assert customer.ended(each.delivery_id)["status"] == "succeeded"
        customer.arrived(event_id=each.event_id)
    assert {each["event_id"] for each in customer.deliveries(hook.id)} == {each.event_id for each in wanted}
    assert all(customer.count(event_id=each.event_id) == 0 for each in posted if each not in wanted)


def test_a_later_fan_out_of_a_payload_kept_apart_leaves_out_whoever_does_not_want_it(
    customer: Customer,
) -> None:
    first = customer.hook("/sink", filter=LARGE)
    many = {first.id} | {
        customer.hook("/sink", event_types=[first.type], filter=LARGE).id for _ in range(MORE_THAN_INLINE - 1)
    }
    unwanted = customer.hook("/sink", event_types=[first.type], filter=SMALL)
    noise = "".join(f"{number * number * 7919 % 104_729:05d}" for number in range(4_000))
    posted = customer.post(first.type, json.dumps({"order": {"sum": 500}, "noise": noise}).encode())
    assert (posted.fan_out, posted.delivery_ids) == ("later", [])
    customer.arrived(len(many), event_id=posted.event_id)
    listed = customer.api.get(f"/v1/events/{posted.event_id}/deliveries?limit=200").json()["items"]
    assert {each["endpoint_id"] for each in listed} == many
    assert customer.deliveries(unwanted.id) == []
