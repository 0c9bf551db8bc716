"""Finds the Chalice app that the runtime is to play."""

import importlib
import sys

from chalice.app import Chalice

from chalicelib.settings import SettingsError

# On AWS every invocation has a process of its own. Here they share one, so its threads take turns often: one
# that reads a large batch must not keep another from answering.
_TURN_S = 0.0005


def load_app(name: str) -> Chalice:
    """Import `module:attribute`.

    Ends the process with one sentence when that is no Chalice app, or when its settings are wrong.
    """
    sys.setswitchinterval(_TURN_S)
    module, _, attribute = name.partition(":")
    sys.path.insert(0, ".")
    try:
        app = getattr(importlib.import_module(module), attribute or "app", None)
    except SettingsError as error:
        sys.exit(f"{name} does not start: {error}.")
    if not isinstance(app, Chalice):
        sys.exit(f"{name} is not a Chalice app.")
    return app
