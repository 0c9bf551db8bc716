"""Finds the Chalice app that the runtime is to play."""

import importlib
import sys

from chalice.app import Chalice

from chalicelib.settings import SettingsError


def load_app(name: str) -> Chalice:
    """Import `module:attribute`.

    Ends the process with one sentence when that is no Chalice app, or when its settings are wrong.
    """
    module, _, attribute = name.partition(":")
    sys.path.insert(0, ".")
    try:
        app = getattr(importlib.import_module(module), attribute or "app", None)
    except SettingsError as error:
        sys.exit(f"{name} does not start: {error}.")
    if not isinstance(app, Chalice):
        sys.exit(f"{name} is not a Chalice app.")
    return app
