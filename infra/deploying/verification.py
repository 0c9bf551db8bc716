"""Whether a deployed Relay delivers: an event is posted at its public address and has to arrive.

Unless another destination is given, Relay receives it itself: the event goes to its own `POST /v1/events`,
with the Idempotency-Key it was posted with. That is a 202 only if what arrives is what was posted, to the
byte; and nothing new comes of it, so that it goes round no further.
"""

import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

TYPE: Final = "deployment.check"
_UP_WITHIN_S: Final = 120
_LOOK_EVERY_S: Final = 0.5
_ENDED: Final = frozenset({"succeeded", "dead"})


class NotVerifiedError(Exception):
    """What did not work of a deployed Relay: one sentence for a person."""


@dataclass(frozen=True, slots=True)
class Verification:
    """One look at a Relay, with a tenant of its own that is purged afterwards."""

    api: httpx.Client
    operator_key: str
    destination: str
    """An https URL that answers 2xx to a POST; empty for Relay itself."""
    within_s: float

    def run(self) -> str:
        """Let an event arrive and give the delivery's id; NotVerifiedError when it does not."""
        self._is_up()
        opened = self._ask("POST", "/v1/tenants", self.operator_key, {"name": "deployment check"})
        try:
            return self._delivers(opened["admin_key"]["key"])
        finally:
            self._purge(opened["id"])

    def _is_up(self) -> None:
        """Wait until the API answers, which takes a new one a moment; canaries come a minute later."""
        answer: httpx.Response | None = None
        for _ in _looks(_UP_WITHIN_S):
            try:
                answer = self.api.get("/healthz")
            except httpx.TransportError:
                continue
            if answer.is_success:
                return
        said = "does not answer" if answer is None else f"answers {answer.status_code}: {answer.text[:200]}"
        raise NotVerifiedError(f"{self.api.base_url}healthz {said}")

    def _delivers(self, key: str) -> str:
        check = secrets.token_hex(8)
        self._ask("POST", "/v1/endpoints", key, self._endpoint(key, check))
        event = {"type": TYPE, "check": check}
        posted = self._ask("POST", "/v1/events", key, event, {"Idempotency-Key": check})
        (delivery_id,) = posted["delivery_ids"]
        delivery: Any = {"status": "unknown", "attempts": ()}
        for _ in _looks(self.within_s):
            delivery = self._seen(f"/v1/deliveries/{delivery_id}", key) or delivery
            if delivery["status"] in _ENDED:
                break
        _has_arrived(delivery)
        return str(delivery_id)

    def _seen(self, path: str, key: str) -> Any:  # noqa: ANN401  any JSON
        """Look once; None when no answer came this time."""
        try:
            answer = self.api.get(path, headers=_bearer(key))
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None

    def _endpoint(self, key: str, check: str) -> Mapping[str, Any]:
        """Give the endpoint that receives: another's, or Relay itself."""
        about = {"event_types": [TYPE], "retry_profile": "quick"}
        if self.destination:
            return {"url": self.destination, **about}
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": check}
        return {"url": f"{str(self.api.base_url).rstrip('/')}/v1/events", "headers": headers, **about}

    def _purge(self, tenant: str) -> None:
        """Let the tenant go; the purge function does it within minutes."""
        shown = self.api.get(f"/v1/tenants/{tenant}", headers=_bearer(self.operator_key))
        match = {"If-Match": shown.headers.get("etag", "")}
        self.api.delete(f"/v1/tenants/{tenant}", headers={**_bearer(self.operator_key), **match})

    def _ask(
        self,
        method: str,
        path: str,
        key: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401  any JSON
        try:
            answer = self.api.request(method, path, json=body, headers={**_bearer(key), **(headers or {})})
        except httpx.TransportError as error:
            raise NotVerifiedError(f"{method} {path} was not answered: {error}.") from error
        if not answer.is_success:
            raise NotVerifiedError(f"{method} {path} answered {answer.status_code}: {answer.text[:300]}")
        return answer.json()


def _has_arrived(delivery: Mapping[str, Any]) -> None:
    if delivery["status"] == "succeeded":
        return
    attempts = delivery["attempts"]
    last = attempts[-1] if attempts else {"outcome": "none was made"}
    seen = {name: last[name] for name in ("outcome", "status", "fault", "detail") if last.get(name)}
    raise NotVerifiedError(
        f"The delivery {delivery.get('id', '')} is {delivery['status']}, not succeeded, after"
        f" {len(attempts)} attempts (the last: {seen}). The logs /aws/lambda/…deliver-… say more."
    )


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _looks(within_s: float) -> Iterator[None]:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        yield
        time.sleep(_LOOK_EVERY_S)
