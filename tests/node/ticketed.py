"""`python -m tests.node.ticketed`: a node that owns everything, with tickets whose texts the tests know."""

import sys

from chalicelib.domain.tunnel import Ticket
from chalicelib.node.node import World, serve
from chalicelib.node.owners import Alone
from chalicelib.node.settings import load

FOR_EVER_MS = 1 << 52
TICKETS = {
    "tt_one": Ticket("tenant", "ep_1", FOR_EVER_MS),
    "tt_again": Ticket("tenant", "ep_1", FOR_EVER_MS),
    "tt_other": Ticket("other", "ep_1", FOR_EVER_MS),
    "tt_function": Ticket("", "", FOR_EVER_MS),
}


class KnownTickets:
    """Opens those, and sets nothing going."""

    def opened(self, text: str) -> Ticket | None:
        """Give what a text opens."""
        return TICKETS.get(text)

    def came(self, _ticket: Ticket) -> None:
        """Note nothing."""


def main() -> None:
    """Serve until the end."""

    def listening(port: int) -> None:
        sys.stdout.write(f"relay node on ws://127.0.0.1:{port}/ws\n")
        sys.stdout.flush()

    serve(load(), World(Alone(), KnownTickets(), lambda: "conn_0"), listening)


if __name__ == "__main__":
    main()
