"""The Chalice app that all functions are registered with. What answers requests is in `http`."""

from collections.abc import Callable
from typing import Any

from chalice.app import Chalice

from chalicelib import bootstrap

ANY_TYPE = ["*/*"]


class Api(Chalice):
    """The Chalice app of Relay: bodies of any media type come and go as exact bytes."""

    def __init__(self) -> None:
        """Read the settings, so that wrong ones start nothing, and declare every media type binary.

        Binary means that nothing between producer and us rewrites a body. Raises SettingsError.
        """
        bootstrap.settings()
        super().__init__(app_name="relay", configure_logs=False)
        self.api.binary_types = ANY_TYPE

    def route(self, path: str, **kwargs: Any) -> Callable[..., Any]:  # noqa: ANN401 - chalice's signature
        """Register a route that takes any media type: its handler says what it cannot read."""
        return super().route(path, **{"content_types": ANY_TYPE, **kwargs})

    def __call__(self, event: Any, context: Any) -> Any:  # noqa: ANN401 - what Lambda gives and takes
        """Answer a proxy event; a caller who names no media type takes any."""
        headers = event.get("headers") or {}
        if not any(name.lower() == "accept" for name in headers):
            event = {**event, "headers": {**headers, "Accept": "*/*"}}
        return super().__call__(event, context)
