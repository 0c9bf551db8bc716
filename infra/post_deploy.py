"""Says what `chalice deploy` cannot, and looks whether it holds: `python -m infra.post_deploy --stage prod`.

Run it after every `chalice deploy`. With OPERATOR_KEY set it lets a test event arrive too.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import httpx
from botocore.exceptions import BotoCoreError, ClientError

from infra.deploying.account import Account
from infra.deploying.beyond_chalice import BeyondChalice, NotAsMeantError
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
    try:
        stage = load(asked.stage)
        account = Account.of(stage, os.environ.get("AWS_ENDPOINT_URL", ""))
        beyond = BeyondChalice(stage, account, _say)
        if not asked.check:
            beyond.set()
        beyond.check()
        _say("Every event source takes back what its function names.")
        url = account.api_url(beyond.api_id)
        _say(f"Its address: {url}")
        if key := os.environ.get("OPERATOR_KEY"):
            with httpx.Client(base_url=url, timeout=_TIMEOUT_S, trust_env=not account.endpoint_url) as api:
                _say(
                    f"A test event has arrived: delivery {Verification(api, key, asked.to, _WITHIN_S).run()}."
                )
    except (NotAsMeantError, NotVerifiedError, StageError) as error:
        print(error, file=sys.stderr)
        return 1
    except (BotoCoreError, ClientError) as error:
        print(f"AWS refuses: {error}", file=sys.stderr)
        return 1
    return 0


def _say(sentence: str) -> None:
    print(sentence, flush=True)


if __name__ == "__main__":
    sys.exit(main())
