"""The functions of a Chalice app, called as Lambda would, each failure one line of the log."""

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from infra.local.invocation import FUNCTION_TIMEOUT_S, LambdaContext
from infra.local.logs import log_line


class FunctionFailedError(Exception):
    """The function raised or ran out of time; the log has said why."""


@dataclass(frozen=True, slots=True)
class Function:
    """One Lambda: its name and the handler that Chalice registered."""

    name: str
    handler: Callable[[Any, Any], Any]
    timeout_s: float = FUNCTION_TIMEOUT_S

    def invoke(self, event: dict[str, Any], **logged: object) -> Any:  # noqa: ANN401 - whatever it answers
        """Run the handler and return its answer; FunctionFailedError once the failure is logged.

        A thread cannot be stopped as Lambda stops a process: what ran too long counts as failed when it ends.
        """
        context = LambdaContext(self.name, self.timeout_s)
        try:
            answer = self.handler(event, context)
        except Exception as error:
            self._log_raised(context, error, logged)
            raise FunctionFailedError(self.name) from error
        if context.elapsed_s > self.timeout_s:
            self.log("function.timed_out", context, elapsed_s=round(context.elapsed_s, 3), **logged)
            raise FunctionFailedError(self.name)
        return answer

    def log(self, message: str, context: LambdaContext, **fields: object) -> None:
        """Write one line about one invocation."""
        log_line(logging.ERROR, message, function=self.name, request_id=context.aws_request_id, **fields)

    def _log_raised(self, context: LambdaContext, error: Exception, logged: dict[str, object]) -> None:
        self.log(
            "function.failed",
            context,
            error=type(error).__name__,
            detail=str(error),
            traceback=traceback.format_exc(),
            **logged,
        )
