"""`python -m chalicelib.cli listen --forward http://localhost:3000/hook`: bring webhooks to this machine."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from chalicelib.cli.api import Api, ApiError
from chalicelib.cli.listen import Listener, TakenOverError
from chalicelib.cli.local import Local
from chalicelib.cli.telling import Telling

API_URL = "http://127.0.0.1:8080"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what goes wrong is told in a sentence."""
    asked = _parser().parse_args(arguments)
    telling = Telling(as_json=asked.json)
    api = Api(asked.api, os.environ.get("RELAY_API_KEY", ""))
    try:
        asyncio.run(Listener(api, Local(asked.forward), telling).run(asked.endpoint, asked.events or ["*"]))
    except KeyboardInterrupt:
        return 0
    except (ApiError, TakenOverError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chalicelib.cli", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    listen = commands.add_parser("listen", help="bring an endpoint's webhooks to this machine")
    listen.add_argument("--forward", required=True, help="where they go, such as http://localhost:3000/hook")
    listen.add_argument(
        "--events", action="append", help="event types to take, such as 'order.*'; all if not given"
    )
    listen.add_argument("--endpoint", default="", help="a tunnel that is there already, by its id")
    listen.add_argument("--json", action="store_true", help="write one JSON object a delivery")
    listen.add_argument(
        "--api", default=os.environ.get("RELAY_API_URL", API_URL), help="the API's address, or RELAY_API_URL"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
