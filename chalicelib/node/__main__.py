"""`python -m chalicelib.node`: run one relay node until SIGTERM."""

import secrets
import sys

from chalicelib import bootstrap
from chalicelib.domain.tunnel import Ticket
from chalicelib.node.node import World, serve
from chalicelib.node.owners import Alone, NoTickets
from chalicelib.node.settings import NodeSettings, load
from chalicelib.settings import SettingsError


def main() -> int:
    """Run it; a wrong setting is told in one sentence."""
    try:
        settings = load()
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 1

    def listening(port: int) -> None:
        print(f"relay node on ws://{settings.host}:{port}/ws", flush=True)

    serve(settings, _world(settings), listening)
    return 0


class StoredTickets:
    """Tickets as the API gave them out."""

    def opened(self, text: str) -> Ticket | None:
        """Give what a ticket opens."""
        return bootstrap.tunnels().opened(text)

    def came(self, ticket: Ticket) -> None:
        """Set going what waited for a listener."""
        bootstrap.listener_came().run(ticket.tenant, ticket.endpoint_id)


def _world(settings: NodeSettings) -> World:
    """Give the registry that the nodes share and the tickets beside it, or none of both."""

    def new_id() -> str:
        return f"conn_{secrets.token_hex(8)}"

    if settings.registry == "none":
        return World(Alone(), NoTickets(), new_id)
    owners = bootstrap.owners(secrets.token_hex(8), settings.ownership_target, settings.lease_ms)
    return World(owners, StoredTickets(), new_id)


if __name__ == "__main__":
    raise SystemExit(main())
