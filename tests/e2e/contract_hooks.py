"""What schemathesis is told of a Relay: who asks, and the ids of what is there.

Runs within schemathesis, in .venv-openapi, and speaks to the same API. Of the requests that are meant to be
right some are given ids, versions and proofs that are, so that each operation is reached; the others stay as
they were made up. What was answered is noted, a line each, in the file that CONTRACT_NOTES names.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import schemathesis  # type: ignore[import-not-found]  # it lives in an environment of its own

API = urlsplit(os.environ["CONTRACT_API"])
RECEIVER = os.environ["CONTRACT_RECEIVER"]
OPERATOR = os.environ["CONTRACT_OPERATOR"]
NOTES = Path(os.environ["CONTRACT_NOTES"])
OF_OPERATORS = {"create_tenant", "metrics", "list_tenants", "purge_tenant", "recover_tenant"}
QUOTAS = {"endpoints": 5_000, "events_per_second": 1_000, "requests_per_second": 1_000}
PLAIN = {"description", "rate_per_second", "burst", "max_concurrency", "retry_profile"}
NOTHING = {"since": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}
PROOF_SECS = 240
_NUMBERS = count(1)
_CALLS: Counter[str] = Counter()
_KNOWN: dict[str, str] = {}

Record = dict[str, Any]
Case = Any
"""A request of schemathesis, which has no types here."""


class Tenant:
    """A tenant of this run's own: its admin's key, and proofs of its second factor."""

    def __init__(self) -> None:
        """Open it, as the operator."""
        made = ask(OPERATOR, "POST", "/v1/tenants", {"name": "Contract", "quotas": QUOTAS})
        self.id: str = made["id"]
        self.key: str = made["admin_key"]["key"]
        self._secret = base64.b32decode(made["second_factor"]["secret"])
        self._proof, self._proven_until = "", 0.0

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Record:
        """Ask something that cannot fail."""
        return ask(self.key, method, path, body, headers)

    def code(self) -> str:
        """Give the six digits that its authenticator shows now."""
        step = int(time.time()) // 30
        digest = hmac.digest(self._secret, step.to_bytes(8), hashlib.sha1)
        start = digest[-1] & 15
        return f"{(int.from_bytes(digest[start : start + 4]) & 0x7FFFFFFF) % 1_000_000:06}"

    def proof(self) -> dict[str, str]:
        """Give the header that elevated actions need."""
        if time.monotonic() > self._proven_until:
            actions = ["url_change", "secret_rotation", "key_creation", "purge", "enable_deliver"]
            said = self.ask("POST", "/v1/step-up", {"code": self.code(), "actions": actions})
            self._proof, self._proven_until = said["assertion"], time.monotonic() + PROOF_SECS
        return {"Relay-Step-Up": self._proof}


def ask(
    key: str, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
) -> Record:
    """Ask the API something that cannot fail, and give the JSON that it answered."""
    connection = http.client.HTTPConnection(str(API.hostname), API.port, timeout=30)
    try:
        content = b"" if body is None else json.dumps(body).encode()
        connection.request(method, path, content, {"Authorization": f"Bearer {key}", **(headers or {})})
        answer = connection.getresponse()
        read = answer.read()
    finally:
        connection.close()
    assert answer.status < 300, f"{method} {path}: {answer.status} {read!r}"
    return dict(json.loads(read)) if read else {}


def endpoint(event_type: str = "contract.none") -> str:
    """Register an endpoint that takes everything it is sent."""
    body = {"url": f"{RECEIVER}/sink", "event_types": [event_type]}
    return str(OURS.ask("POST", "/v1/endpoints", body)["id"])


def delivered() -> dict[str, str]:
    """Have one event delivered to an endpoint of its own, and give the ids of the three."""
    event_type = f"contract.n{next(_NUMBERS)}"
    endpoint_id = endpoint(event_type)
    event_id = OURS.ask("POST", "/v1/events", {"type": event_type})["event_id"]
    deadline = time.monotonic() + 30
    while True:
        (delivery,) = OURS.ask("GET", f"/v1/endpoints/{endpoint_id}/deliveries")["items"]
        if delivery["status"] == "succeeded":
            return {"event_id": event_id, "endpoint_id": endpoint_id, "delivery_id": delivery["id"]}
        assert time.monotonic() < deadline, f"{delivery['id']} was not delivered"
        time.sleep(0.05)


def replay() -> str:
    """Begin a bulk replay of nothing, and give its id."""
    return str(OURS.ask("POST", f"/v1/endpoints/{endpoint()}/replay", NOTHING)["id"])


def api_key() -> str:
    """Make an API key that nobody uses, and give its id."""
    return str(OURS.ask("POST", "/v1/keys", {"role": "viewer"}, OURS.proof())["id"])


def known(part: str) -> str:
    """Give the id of something that is there."""
    if not _KNOWN:
        _KNOWN.update(delivered(), replay_id=replay(), key_id=api_key(), tenant_id=OURS.id)
    return _KNOWN[part]


def plain(body: object) -> Record:
    """Keep of an endpoint that was made up what may always be."""
    given = body if isinstance(body, dict) else {}
    return {name: each for name, each in given.items() if name in PLAIN}


def change_endpoint(case: Case) -> None:
    """Change an endpoint as it is now; of what was made up only what may be is kept."""
    shown = OURS.ask("GET", f"/v1/endpoints/{case.path_parameters['endpoint_id']}")
    case.headers["If-Match"] = f'"{shown["version"]}"'
    case.body = plain(case.body)


def change_tenant(case: Case) -> None:
    """Change a tenant as it is now, in what its admins may."""
    shown = OURS.ask("GET", f"/v1/tenants/{case.path_parameters['tenant_id']}")
    case.headers["If-Match"] = f'"{shown["version"]}"'
    case.body = {"contacts": ["ops@example.com"]}


def delete_endpoint(case: Case) -> None:
    """Delete an endpoint that nobody else needs."""
    case.path_parameters["endpoint_id"] = endpoint()
    case.headers["If-Match"] = '"1"'


def make_tunnel_token(case: Case) -> None:
    """Listen at a tunnel."""
    body = {"url": "tunnel:", "transport": "tunnel", "event_types": ["contract.none"]}
    case.path_parameters["endpoint_id"] = str(OURS.ask("POST", "/v1/endpoints", body)["id"])


def create_endpoint(case: Case) -> None:
    """Register an endpoint at an address that there is, for events that nobody posts."""
    kept = plain(case.body)
    case.body = kept | {"url": f"{RECEIVER}/sink", "event_types": ["contract.none"]}


def enable_endpoint(case: Case) -> None:
    """Enable what is disabled, with a choice that is complete."""
    case.path_parameters["endpoint_id"] = mine = endpoint()
    OURS.ask("POST", f"/v1/endpoints/{mine}/disable")
    case.headers.update(OURS.proof())
    case.body = {"backlog": "deliver"}


def disable_endpoint(case: Case) -> None:
    """Disable an endpoint that nobody else needs."""
    case.path_parameters["endpoint_id"] = endpoint()


def rotate_secret(case: Case) -> None:
    """Rotate the secret of an endpoint that nobody else needs."""
    case.path_parameters["endpoint_id"] = endpoint()
    case.headers.update(OURS.proof())


def replay_delivery(case: Case) -> None:
    """Replay what has been delivered."""
    case.path_parameters["delivery_id"] = delivered()["delivery_id"]


def replay_endpoint(case: Case) -> None:
    """Replay a range of time in which there was nothing."""
    case.body = NOTHING


def turn_replay(case: Case) -> None:
    """Turn a bulk replay that may not have ended."""
    case.path_parameters["replay_id"] = replay()


def post_event(case: Case) -> None:
    """Name the type of what is posted."""
    case.headers["Relay-Event-Type"] = "contract.posted"
    case.headers.pop("Idempotency-Key", None)


def create_key(case: Case) -> None:
    """Make a key with the proof that it needs, for as long as may be."""
    case.headers.update(OURS.proof())
    if isinstance(case.body, dict):
        case.body.pop("expires_at", None)


def revoke_key(case: Case) -> None:
    """Revoke a key that nobody else needs."""
    case.path_parameters["key_id"] = api_key()


def purge_dead_letters(case: Case) -> None:
    """Purge with the proof that it needs, of an endpoint that nobody else needs."""
    case.path_parameters["endpoint_id"] = endpoint()
    case.headers.update(OURS.proof())


def purge_tenant(case: Case) -> None:
    """Purge a tenant that nobody else needs."""
    case.path_parameters["tenant_id"] = Tenant().id
    case.headers["If-Match"] = '"1"'


def recover_tenant(case: Case) -> None:
    """Recover a tenant that nobody else needs: what proved it before is void."""
    case.path_parameters["tenant_id"] = Tenant().id


def step_up(case: Case) -> None:
    """Show the second factor of another tenant: each of its codes is good once, and wrong ones lock."""
    other = Tenant()
    case.headers["Authorization"] = f"Bearer {other.key}"
    case.body = {"code": other.code(), "actions": ["purge"]}


FITTING: Mapping[str, Callable[[Case], None]] = {
    "cancel_replay": turn_replay,
    "create_endpoint": create_endpoint,
    "create_key": create_key,
    "delete_endpoint": delete_endpoint,
    "disable_endpoint": disable_endpoint,
    "enable_endpoint": enable_endpoint,
    "make_tunnel_token": make_tunnel_token,
    "patch_endpoint": change_endpoint,
    "patch_tenant": change_tenant,
    "pause_replay": turn_replay,
    "post_event": post_event,
    "purge_dead_letters": purge_dead_letters,
    "purge_tenant": purge_tenant,
    "recover_tenant": recover_tenant,
    "replay_delivery": replay_delivery,
    "replay_endpoint": replay_endpoint,
    "resume_replay": turn_replay,
    "revoke_key": revoke_key,
    "rotate_secret": rotate_secret,
    "step_up": step_up,
}


class Keys:
    """Gives each request the key that may ask it; schemathesis leaves it out to see what is said then."""

    def get(self, case: Case, _context: object) -> str:
        """Choose the key; wrong codes lock one, so steps up have that of a tenant with no other use."""
        name = name_of(case)
        if name == "step_up":
            return LOCKED.key
        return OPERATOR if name in OF_OPERATORS else OURS.key

    def set(self, case: Case, key: str, _context: object) -> None:
        """Put it where it belongs."""
        case.headers["Authorization"] = f"Bearer {key}"


def name_of(case: Case) -> str:
    """Give the name of what is asked."""
    return str(case.operation.definition.raw["operationId"])


def fit(_context: object, case: Case, _kwargs: object) -> None:
    """Give requests that are meant to be right what is there: every other one, every fifth of the costly."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    name = name_of(case)
    _CALLS[name] += 1
    if _CALLS[name] % (5 if name in FITTING else 2) == 1:
        for part in case.path_parameters:
            case.path_parameters[part] = known(part)
        if name in FITTING:
            FITTING[name](case)


def note(_context: object, case: Case, response: Any) -> None:  # noqa: ANN401 - schemathesis's own
    """Note what was answered."""
    with NOTES.open("a", encoding="utf-8") as notes:
        notes.write(f"{name_of(case)} {response.status_code}\n")


OURS, LOCKED = Tenant(), Tenant()
schemathesis.hook("before_call")(fit)
schemathesis.hook("after_call")(note)
schemathesis.auth(refresh_interval=None)(Keys)
