"""Rotation on the whole stack: what a receiver sees with the old key, with both, and with the new one."""

import base64
import time
from datetime import UTC, datetime

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from tests.e2e.customer import Customer, Hook, Record, moment
from tests.receiver.verify import check, make_secret


def act(customer: Customer, endpoint_id: str, action: str, **fields: object) -> Record:
    path = f"/v1/endpoints/{endpoint_id}/{action}"
    answer = customer.api.post(path, json=fields, headers=customer.elevated())
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def next_arrival(customer: Customer, event_type: str) -> Record:
    (seen,) = customer.arrived(delivery_id=customer.post(event_type).delivery_id)
    return seen


def verified_by(seen: Record, *secrets: str) -> list[bool]:
    """Judge a request as a receiver would that has one secret alone."""
    body, now = base64.b64decode(seen["body_base64"]), int(seen["received_at"] / 1000)
    return [check(seen["headers"], body, [make_secret(each)], now).verified for each in secrets]


def test_f010_a_receiver_changes_over_within_the_overlap_and_the_old_secret_ends_by_the_clock(
    customer: Customer,
) -> None:
    hook = customer.hook("/sink")
    assert verified_by(next_arrival(customer, hook.type), hook.secret) == [True]
    rotated = act(customer, hook.id, "rotate-secret")
    keys = (hook.secret, rotated["secret"])
    assert verified_by(next_arrival(customer, hook.type), *keys) == [True, True]
    ends = act(customer, hook.id, "end-overlap", within_s=2)["previous_secret_expires_at"]
    customer.stack.until(lambda: time.time() >= moment(ends))
    assert verified_by(next_arrival(customer, hook.type), *keys) == [False, True]


def test_a_rotation_is_used_by_the_retry_that_comes_next(customer: Customer) -> None:
    script = customer.script({"status": 503, "headers": {"Retry-After": "2"}}, {"status": 200})
    hook = customer.hook(script)
    posted = customer.post(hook.type)
    customer.tried(posted.delivery_id)
    new = act(customer, hook.id, "rotate-secret", overlap_s=0)["secret"]
    first, second = customer.arrived(2, delivery_id=posted.delivery_id)
    assert verified_by(first, hook.secret, new) == [True, False]
    assert verified_by(second, hook.secret, new) == [False, True]


def signed_by(seen: Record, public: str) -> bool:
    """Verify as docs/receivers.md says it: PyNaCl and the published key alone."""
    headers = seen["headers"]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode()
    signed += base64.b64decode(seen["body_base64"])
    key = VerifyKey(base64.b64decode(public.removeprefix("whpk_")))
    for each in headers["webhook-signature"].split(" "):
        version, _, signature = each.partition(",")
        try:
            if version == "v1a":
                key.verify(signed, base64.b64decode(signature))
                return True
        except BadSignatureError:
            continue
    return False


def test_requests_signed_with_a_key_pair_verify_with_the_published_keys(customer: Customer) -> None:
    event_type = f"pair.{int(datetime.now(UTC).timestamp() * 1000)}"
    fields = {"signature": "standard", "signature_key": "ed25519", "event_types": [event_type]}
    made = customer.register({"url": customer.stack.receiver_url + "/sink", **fields}).json()
    hook = Hook(made["id"], event_type, "", made)
    (published,) = customer.api.get(f"/v1/endpoints/{hook.id}/public-key").json()["keys"]
    assert published["public_key"] == made["public_key"]
    assert signed_by(next_arrival(customer, hook.type), published["public_key"])
    act(customer, hook.id, "rotate-secret")
    keys = customer.api.get(f"/v1/endpoints/{hook.id}/public-key").json()["keys"]
    seen = next_arrival(customer, hook.type)
    assert [signed_by(seen, each["public_key"]) for each in keys] == [True, True]
