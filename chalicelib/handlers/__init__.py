"""One module per Lambda: parse, call, answer, log one line; no rule, and nobody but app.py may import it.

A module is loaded when it is first asked for: every process registers all functions, and runs one of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.handlers import (
        audit,
        counted,
        delayed_bells,
        deliver,
        deliveries,
        end_owed,
        endpoints,
        events,
        export_audit,
        fan_out,
        http,
        keys,
        measure,
        notices,
        notify,
        purge,
        purges,
        reconcile,
        replay_many,
        replays,
        retention,
        service,
        starting,
        step_up,
        tenants,
    )
else:

    def __getattr__(name: str) -> object:
        """Load the module of a name."""
        full = f"{__name__}.{name}"
        try:
            return import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full:
                raise
            raise AttributeError(f"there is no handler {name}") from None


__all__ = [
    "audit",
    "counted",
    "delayed_bells",
    "deliver",
    "deliveries",
    "end_owed",
    "endpoints",
    "events",
    "export_audit",
    "fan_out",
    "http",
    "keys",
    "measure",
    "notices",
    "notify",
    "purge",
    "purges",
    "reconcile",
    "replay_many",
    "replays",
    "retention",
    "service",
    "starting",
    "step_up",
    "tenants",
]
