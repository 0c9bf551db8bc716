"""Finds the Chalice app that the runtime is to play."""

import importlib
import sys

from chalice.app import Chalice


def load_app(name: str) -> Chalice:
    """Import `module:attribute`; ends the process with one sentence when that is no Chalice app."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, ".")
    app = getattr(importlib.import_module(module), attribute or "app", None)
    if not isinstance(app, Chalice):
        sys.exit(f"{name} is not a Chalice app.")
    return app
