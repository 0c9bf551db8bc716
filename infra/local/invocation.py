"""What a function is told about one of its invocations, and how a local process keeps invocations apart.

Nothing of AWS's network is here: only the context object and the account and region every local ARN carries.
"""

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chalice.app import Chalice

ACCOUNT = "000000000000"
REGION = "us-east-1"
FUNCTION_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """Lambda's context object, with a real clock behind the remaining time."""

    function_name: str
    timeout_s: float = FUNCTION_TIMEOUT_S
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    started: float = field(default_factory=time.monotonic)
    function_version: str = "$LATEST"
    memory_limit_in_mb: int = 512
    identity: None = None
    client_context: None = None

    @property
    def invoked_function_arn(self) -> str:
        """Name the function the way Lambda does."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.function_name}"

    @property
    def log_group_name(self) -> str:
        """Name the log group Lambda would write to."""
        return f"/aws/lambda/{self.function_name}"

    @property
    def log_stream_name(self) -> str:
        """Name the one log stream of a local process."""
        return "local"

    @property
    def elapsed_s(self) -> float:
        """Say how long the invocation has run."""
        return time.monotonic() - self.started

    def get_remaining_time_in_millis(self) -> int:
        """Say how many milliseconds are left before Lambda would stop the function, never below 0."""
        return max(0, int((self.timeout_s - self.elapsed_s) * 1000))


class _ThreadBound:
    """An attribute of the app that every thread sees its own value of."""

    def __init__(self) -> None:
        self._here = threading.local()

    def __get__(self, app: object, owner: type | None = None) -> Any:  # noqa: ANN401 - the app's own values
        return getattr(self._here, "value", None)

    def __set__(self, app: object, value: Any) -> None:  # noqa: ANN401 - the app's own values
        self._here.value = value


def keep_threads_apart(app: Chalice) -> Chalice:
    """Let many threads call the app at once, each with its own current request; the same app comes back.

    On Lambda a process runs one invocation at a time, so Chalice keeps the current request in one attribute.
    """
    bound = {"current_request": _ThreadBound(), "lambda_context": _ThreadBound()}
    app.__class__ = type("ThreadedChalice", (type(app),), bound)
    for handler in app.handler_map.values():
        _build_middleware(handler)
    return app


def _build_middleware(handler: Callable[..., Any]) -> None:
    """Do once, before any thread can race for it, what an event handler does at its first call."""
    if hasattr(handler, "middleware_handlers") and getattr(handler, "handler", handler) is None:
        handler.handler = handler._build_middleware_handlers(  # type: ignore[attr-defined] # noqa: SLF001 - Chalice has no public way
            list(handler.middleware_handlers),
            original_handler=handler.func,  # type: ignore[attr-defined]
        )
