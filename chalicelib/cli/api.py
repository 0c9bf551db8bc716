"""What the command line asks of Relay's API, with the key in RELAY_API_KEY."""

from dataclasses import dataclass, field
from typing import Any

import httpx

from chalicelib.domain import tunnel
from chalicelib.domain.secret import Secret

_WITHIN_S = 20.0
_PAGE = 200


class ApiError(Exception):
    """What the API said, or that it cannot be reached: a sentence for a person."""


class AwayError(ApiError):
    """The API cannot be reached, or asks for patience: it may be there later."""


@dataclass(frozen=True, slots=True)
class Found:
    """The tunnel that is listened at; `secret` is that of one just made, shown this once."""

    endpoint_id: str
    secret: Secret | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a listener connects, and what opens that for a while."""

    url: str
    token: Secret


@dataclass(frozen=True, slots=True)
class Api:
    """The API at an address."""

    url: str
    key: str = field(repr=False)

    def tunnel(self, endpoint_id: str, event_types: list[str]) -> Found:
        """Take up a tunnel: the one named, the newest enabled one for these event types, or a new one."""
        if endpoint_id:
            return Found(endpoint_id)
        cursor = ""
        while True:
            page = self._ask("GET", f"/v1/endpoints?limit={_PAGE}" + (f"&cursor={cursor}" if cursor else ""))
            for each in page["items"]:
                if _fits(each, event_types):
                    return Found(each["id"])
            cursor = page["cursor"]
            if not cursor:
                break
        body = {"url": tunnel.URL, "transport": "tunnel", "event_types": event_types}
        made = self._ask("POST", "/v1/endpoints", body)
        return Found(made["id"], Secret(made["secret"]))

    def entry(self, endpoint_id: str) -> Entry:
        """Get a token for one connection; raises ApiError."""
        made = self._ask("POST", f"/v1/endpoints/{endpoint_id}/tunnel-token")
        return Entry(made["url"], Secret(made["token"]))

    def _ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            answer = httpx.request(
                method, self.url + path, json=body, headers=headers, timeout=_WITHIN_S, trust_env=False
            )
            told = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise AwayError(f"The API at {self.url} cannot be reached: {error}") from error
        if answer.status_code in {429, 503}:
            raise AwayError(f"The API says: {told.get('detail', answer.status_code)}")
        if not answer.is_success:
            expected = f" Expected: {told['expected']}." if told.get("expected") else ""
            raise ApiError(f"The API says: {told.get('detail', answer.status_code)}{expected}")
        return told


def _fits(endpoint: dict[str, Any], event_types: list[str]) -> bool:
    same = sorted(endpoint["event_types"]) == sorted(event_types)
    return same and endpoint["transport"] == "tunnel" and endpoint["state"] == "enabled"
