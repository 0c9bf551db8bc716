"""The Chalice app that all functions are registered with. What answers requests is in `http`."""

from collections.abc import Callable
from typing import Any

from chalice.app import Chalice, Request

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
        self.register_middleware(_named_in_the_log)

    def route(self, path: str, **kwargs: Any) -> Callable[..., Any]:  # noqa: ANN401 - chalice's signature
        """Register a route that takes any media type: its handler says what it cannot read."""
        return super().route(path, **{"content_types": ANY_TYPE, **kwargs})

    def __call__(self, event: Any, context: Any) -> Any:  # noqa: ANN401 - what Lambda gives and takes
        """Answer a proxy event; a caller who names no media type takes any."""
        headers = event.get("headers") or {}
        if not any(name.lower() == "accept" for name in headers):
            event = {**event, "headers": {**headers, "Accept": "*/*"}}
        return super().__call__(event, context)


def _named_in_the_log(event: Any, answer: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - chalice's signature
    """Let every line that is logged meanwhile name the function and the request that it is called for."""
    from chalicelib import telemetry  # noqa: PLC0415 - importing the app alone is to take less

    context: Any = event.lambda_context if isinstance(event, Request) else event.context
    with telemetry.invocation(context.function_name, context.aws_request_id):
        return answer(event)
