"""Answers each line of standard input with what docs/verifiers/relay_webhooks.py says of it."""

import base64
import sys

from relay_webhooks import genuine  # type: ignore[import-not-found] # lies beside it when it runs


def _text(coded: str) -> str:
    return base64.b64decode(coded).decode()


for line in sys.stdin:
    now, body, keys, named = line.rstrip("\n").split("\t")
    pairs = (each.split("=", 1) for each in named.split(",") if each)
    headers = {name: _text(value) for name, value in pairs}
    verdict = genuine(headers, base64.b64decode(body), [_text(key) for key in keys.split(",")], int(now))
    sys.stdout.write(f"{str(verdict).lower()}\n")
