"""The pydantic shapes of API bodies and queue messages, parsed once at the door; no rule and no I/O."""
