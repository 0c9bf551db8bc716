"""`python -m chalicelib.node`: run one relay node until SIGTERM."""

import secrets
import sys

from chalicelib.application.ports import Owners
from chalicelib.node.node import serve
from chalicelib.node.owners import Alone
from chalicelib.node.settings import NodeSettings, NodeSettingsError, load


def main() -> int:
    """Run it; a wrong setting is told in one sentence."""
    try:
        settings = load()
    except NodeSettingsError as error:
        print(error, file=sys.stderr)
        return 1

    def listening(port: int) -> None:
        print(f"relay node on ws://{settings.host}:{port}/ws", flush=True)

    serve(settings, _owners(settings), lambda: f"conn_{secrets.token_hex(8)}", listening)
    return 0


def _owners(settings: NodeSettings) -> Owners:
    """Give the registry that the nodes share, or none."""
    if settings.registry == "none":
        return Alone()
    from chalicelib import bootstrap

    return bootstrap.owners(secrets.token_hex(8), settings.ownership_target, settings.lease_ms)


if __name__ == "__main__":
    raise SystemExit(main())
