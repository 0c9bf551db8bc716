"""Deploys a stage and looks whether an event arrives: `python -m infra.deploy --stage prod`.

It takes an account from nothing to a working Relay and again to the next version. Run again after any
failure it goes on. OPERATOR_KEY is the operator's key; AWS_ENDPOINT_URL leads to an emulator.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from infra.deploying.account import Account
from infra.deploying.command import exit_code, say
from infra.deploying.deployment import Deployment
from infra.deploying.release import ReleaseError
from infra.deploying.stack import StackError
from infra.deploying.stage import StageError, load
from infra.deploying.verification import NotVerifiedError
from infra.package import ROOT, PackagingFailedError, package

_EXPECTED = (PackagingFailedError, ReleaseError, StackError, StageError, NotVerifiedError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Deploy as the command line asks; the exit code is 1 when it does not work, and says why."""
    asked = _options(arguments)
    return exit_code(lambda: _deploy(asked), *_EXPECTED)


def _deploy(asked: argparse.Namespace) -> None:
    stage = load(asked.stage)
    if asked.verify and not os.environ.get("OPERATOR_KEY"):
        raise StageError(
            "OPERATOR_KEY is not set: without the operator's key nobody can see whether an event"
            " arrives. VERIFY=no deploys without looking."
        )
    account = Account.of(stage, os.environ.get("AWS_ENDPOINT_URL", ""))
    deployment = Deployment(stage, account, say, os.environ.get("OPERATOR_KEY", ""))
    if asked.release:
        deployment.deploy_again(asked.release)
    else:
        say(f"Packaging the stage {stage.name}.")
        deployment.deploy(package(ROOT / "build" / stage.name, stage, architecture=account.architecture))
    say(f"Its address: {deployment.url()}")
    if asked.verify:
        say(f"A test event has arrived: delivery {deployment.verify(asked.to)}.")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.deploy", description=__doc__)
    parser.add_argument("--stage", required=True, help="a stage of infra/stages")
    parser.add_argument("--release", default="", help="deploy this release again instead of packaging")
    parser.add_argument(
        "--no-verify", dest="verify", action="store_false", help="do not look whether it works"
    )
    parser.add_argument(
        "--to", default="", help="where the test event goes, an https URL; Relay itself unless given"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
