"""What a listener prints: a line a delivery for a person, or an object a delivery for a program."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from chalicelib.cli.local import Answer


class Telling:
    """Writes to standard output."""

    def __init__(self, *, as_json: bool) -> None:
        """Write for a program, or for a person."""
        self._as_json = as_json

    def say(self, sentence: str, **about: object) -> None:
        """Tell of the listener itself."""
        print(json.dumps({"said": sentence, **about}) if self._as_json else sentence, flush=True)

    def delivered(self, headers: Mapping[str, str], answer: Answer) -> None:
        """Tell what became of a delivery; `headers` by name in lower case."""
        delivery_id = headers.get("relay-delivery-id") or headers.get("webhook-id", "")
        event_type, attempt = headers.get("relay-event-type", ""), headers.get("relay-attempt", "")
        came_to = answer.fault.value if answer.fault else str(answer.status)
        if self._as_json:
            told = {
                "delivery_id": delivery_id,
                "event_type": event_type,
                "attempt": int(attempt or 0),
                "status": answer.status or None,
                "fault": answer.fault.value if answer.fault else None,
                "ms": answer.ms,
            }
            print(json.dumps(told), flush=True)
            return
        at = datetime.now(UTC).astimezone().strftime("%H:%M:%S")
        print(f"{at}  {event_type}  {delivery_id}  attempt {attempt}  {came_to}  {answer.ms} ms", flush=True)
