"""Takes a stage away: `python -m infra.destroy --stage staging`. Data is kept unless told otherwise."""

import argparse
import os
import sys
from collections.abc import Sequence

from infra.deploying.account import Account
from infra.deploying.command import exit_code
from infra.deploying.deployment import Deployment
from infra.deploying.stack import StackError
from infra.deploying.stage import Stage, StageError, load


def main(arguments: Sequence[str] | None = None) -> int:
    """Destroy as the command line asks; the exit code is 1 when it does not work, and says why."""
    asked = _options(arguments)
    return exit_code(lambda: _destroy(asked), StackError, StageError)


def _destroy(asked: argparse.Namespace) -> None:
    stage = load(asked.stage)
    account = Account.of(stage, os.environ.get("AWS_ENDPOINT_URL", ""))
    Deployment(stage, account, print).destroy(data=_data(stage, asked))


def _data(stage: Stage, asked: argparse.Namespace) -> bool:
    """Say whether data goes too; StageError unless that was said twice."""
    if asked.data == "delete" and asked.confirm != stage.stack:
        raise StageError(
            f"DATA=delete deletes every event, endpoint and payload of {stage.stack} for good; repeat it"
            f" with CONFIRM={stage.stack}."
        )
    return bool(asked.data == "delete")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.destroy", description=__doc__)
    parser.add_argument("--stage", required=True, help="a stage of infra/stages")
    parser.add_argument("--data", choices=("keep", "delete"), default="keep", help="what becomes of its data")
    parser.add_argument("--confirm", default="", help="the name of its stack, when its data is to be deleted")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
