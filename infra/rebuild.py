"""Makes owed rows, dead letters and gates again from history: `python -m infra.rebuild`.

It works on what the environment leads to, as a function would: RELAY_RESOURCE_PREFIX, AWS_ENDPOINT_URL and
the credentials. While it runs nobody may send: on AWS the event source mappings are disabled first.
"""

import argparse
import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chalicelib.application.rebuild import Rebuilt

sys.path.insert(0, ".")


def main() -> int:
    """Rebuild, and say what was done."""
    parser = argparse.ArgumentParser(prog="python -m infra.rebuild", description=__doc__)
    parser.add_argument("--senders-are-stopped", action="store_true", required=True)
    parser.parse_args()
    bootstrap: Any = importlib.import_module("chalicelib.bootstrap")
    settings: Any = importlib.import_module("chalicelib.settings")
    ports: Any = importlib.import_module("chalicelib.application.ports")
    try:
        done = bootstrap.rebuild().run()
    except settings.SettingsError as error:
        sys.stderr.write(f"Relay does not start: {error}.\n")
        return 1
    except ports.Unavailable as error:
        sys.stderr.write(f"The rebuild did not come to its end: {error}; run it again, it goes on.\n")
        return 1
    sys.stdout.write(said(done) + "\n")
    return 0


def said(done: "Rebuilt") -> str:
    """Say in sentences what a rebuild has done."""
    again = (done.gates, "gate"), (done.owed, "owed row"), (done.dead_letters, "dead letter")
    lines = [
        f"Went through the history of {_count(done.endpoints, 'endpoint')}.",
        f"Made again: {', '.join(_count(*each) for each in again)}.",
        f"Put right: {_count(done.corrected, 'owed row')}.",
        f"Removed, as it had ended or moved on: {_count(done.removed, 'owed row')}.",
    ]
    if done.unexplained:
        lines.append(f"Left alone, as history knows nothing of it: {_count(done.unexplained, 'owed row')}.")
    return "\n".join(lines)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


if __name__ == "__main__":
    sys.exit(main())
