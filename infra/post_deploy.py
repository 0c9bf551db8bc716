"""Says what `chalice deploy` cannot, and looks whether it holds: `python -m infra.post_deploy --stage prod`.

Run it after every `chalice deploy`. With OPERATOR_KEY set it lets a test event arrive too.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import httpx

from infra.deploying.account import Account
from infra.deploying.beyond_chalice import BeyondChalice, NotAsMeantError
from infra.deploying.command import exit_code, say
from infra.deploying.stage import StageError, load
from infra.deploying.verification import NotVerifiedError, Verification

_TIMEOUT_S = 35
_WITHIN_S = 120


def main(arguments: Sequence[str] | None = None) -> int:
    """Set and look; the exit code is 1 when it is not as meant, and says what."""
    parser = argparse.ArgumentParser(prog="python -m infra.post_deploy", description=__doc__)
    parser.add_argument("--stage", required=True, help="a stage of infra/stages")
    parser.add_argument("--check", action="store_true", help="only look, set nothing")
    parser.add_argument("--to", default="", help="where the test event goes; Relay itself unless given")
    asked = parser.parse_args(arguments)
    return exit_code(lambda: _set_and_look(asked), NotAsMeantError, NotVerifiedError, StageError)


def _set_and_look(asked: argparse.Namespace) -> None:
    stage = load(asked.stage)
    account = Account.of(stage, os.environ.get("AWS_ENDPOINT_URL", ""))
    beyond = BeyondChalice(stage, account, say)
    if not asked.check:
        beyond.set()
    beyond.check()
    say("Every event source takes back what its function names.")
    url = account.api_url(beyond.api_id)
    say(f"Its address: {url}")
    if key := os.environ.get("OPERATOR_KEY"):
        with httpx.Client(base_url=url, timeout=_TIMEOUT_S, trust_env=not account.endpoint_url) as api:
            say(f"A test event has arrived: delivery {Verification(api, key, asked.to, _WITHIN_S).run()}.")


if __name__ == "__main__":
    sys.exit(main())
