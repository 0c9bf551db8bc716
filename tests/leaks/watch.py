"""What one test, or one stack, has made of secrets and shown of anything; and where the two meet."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from chalicelib.domain.api_key import DEVELOPMENT_KEY, DEVELOPMENT_OPERATOR_KEY
from chalicelib.domain.display import url_tokens
from chalicelib.domain.step_up import DEVELOPMENT_SECRET
from tests.leaks.forms import SHORTEST, forms

SHOWN_ONCE = frozenset({"secret", "key", "otpauth_uri", "assertion", "token"})
"""The members that hold a secret in the answer to the POST that makes it."""
SIGNATURES = ("v1=", "v1,", "v1a,")
"""What the inspector shows: a signature signs the one request that it came with (docs/decisions/0017)."""
PUBLIC = frozenset({DEVELOPMENT_KEY, DEVELOPMENT_OPERATOR_KEY, DEVELOPMENT_SECRET})
"""Secrets of one's own machine, which the README prints."""
IN_ENDPOINT_ROWS_ALONE = frozenset({"url", "headers"})
_GIVEN = ("authorization", "relay-step-up")
_TOKEN = re.compile(r"[A-Za-z0-9+/=_%.~-]{8,}")


class Watch:
    """Remembers secrets and the long words of everything shown; whatever is a secret's form has leaked."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._shown: dict[str, str] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._secrets.clear()
        self._shown.clear()

    @property
    def knows_any(self) -> bool:
        """Say whether there is a secret to look for."""
        return bool(self._secrets)

    def made(self, secret: str) -> None:
        """Take note of a secret."""
        if len(secret) >= SHORTEST and secret not in PUBLIC and not secret.startswith(SIGNATURES):
            self._secrets.add(secret)

    def seen(self, where: str, text: str | bytes) -> None:
        """Take note of what was shown somewhere: a log line, an answer, a row, a span of a trace."""
        whole = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        for token in _TOKEN.findall(whole.replace("\\/", "/")):
            self._shown.setdefault(token, where)

    def exchange(self, asked: Mapping[str, str], body: bytes, answer: bytes, where: str) -> None:
        """Take note of a request to the API and its answer: what is secret in them, and all the rest."""
        for name in _GIVEN:
            for word in asked.get(name, "").split(" ")[-1:]:
                self.made(word)
        self._of_endpoint(_json(body))
        said = _json(answer) if where.startswith("POST ") else None
        self.seen(f"the answer to {where}", json.dumps(self._rest(said)) if said else answer)

    def rows(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take note of a table's rows; what only the row of an endpoint may hold is left out there."""
        apart = IN_ENDPOINT_ROWS_ALONE if table.endswith("endpoints") else frozenset[str]()
        for row in rows:
            self.seen(f"table {table}", str({name: row[name] for name in row.keys() - apart}))

    def leaks(self) -> list[str]:
        """Say where secrets were shown, and in which form; never the secret."""
        if not self._shown or not self._secrets:
            return []
        all_shown = "\n".join(self._shown)
        found = []
        for secret in sorted(self._secrets):
            for form, how in forms(secret).items():
                if form in all_shown:
                    where = next(place for token, place in self._shown.items() if form in token)
                    found.append(f"a secret that begins with {secret[:4]!r} is shown {how} in {where}")
        return found

    def _rest(self, said: Any) -> Any:  # noqa: ANN401 - any part of an answer
        """Take note of what is shown this once, and give the rest of the answer."""
        if not isinstance(said, dict):
            return said
        for name in SHOWN_ONCE & said.keys():
            self.made(str(said[name]))
        return {name: self._rest(said[name]) for name in said.keys() - SHOWN_ONCE}

    def _of_endpoint(self, body: object) -> None:
        if not isinstance(body, dict):
            return
        if isinstance(headers := body.get("headers"), dict):
            for value in headers.values():
                self.made(str(value))
        if isinstance(credential := body.get("secret"), str):
            self.made(credential)
        types = body.get("event_types")
        if isinstance(url := body.get("url"), str):
            with suppress(ValueError):
                tokens = {token.reveal() for token in url_tokens(url)}
                # A path that is named after an event type holds no secret: types are shown everywhere.
                for token in tokens - set(types if isinstance(types, list) else ()):
                    self.made(token)


def _json(body: bytes) -> Any:  # noqa: ANN401 - whatever was sent
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


WATCH = Watch()
"""What watches the test that runs now, in this process."""
