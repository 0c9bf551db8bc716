"""The reconcile function: once a minute, what nobody looked at is rung."""

from dataclasses import asdict

from chalicelib import bootstrap


def handle() -> None:
    """Sweep once and log what was done."""
    bootstrap.log().info("reconcile.swept", extra=asdict(bootstrap.reconcile().run()))
