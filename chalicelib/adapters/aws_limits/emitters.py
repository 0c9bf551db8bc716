"""Where the hooks go: the event emitter of a boto3 client or session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.client import BaseClient

if TYPE_CHECKING:
    import boto3

    HasEvents = BaseClient | boto3.Session


def emitter_of(target: HasEvents) -> Any:  # noqa: ANN401 - botocore's two emitter classes share no typed base
    """Return the emitter of a client, or of a session, whose later clients inherit what is registered."""
    return target.meta.events if isinstance(target, BaseClient) else target.events
