"""Makes what `chalice deploy` needs: `python -m infra.make_resources --stage prod`.

The stack beside chalice, and a copy of the app that names what the stack has made. Run it again after
every change of the code: the copy is what chalice deploys.
"""

import argparse
import hashlib
import os
import sys
from collections.abc import Sequence

from infra.deploying.account import Account
from infra.deploying.beside_chalice import SUFFIX, template
from infra.deploying.chalice_copy import ChaliceCopy
from infra.deploying.command import exit_code, say
from infra.deploying.deployment import OPERATOR
from infra.deploying.kept import Kept
from infra.deploying.release import Releases
from infra.deploying.stack import Change, Stack, StackError
from infra.deploying.stage import Stage, StageError, load
from infra.package import ROOT, PackagingFailedError


def main(arguments: Sequence[str] | None = None) -> int:
    """Make them; the exit code is 1 when that does not work, and says why."""
    parser = argparse.ArgumentParser(prog="python -m infra.make_resources", description=__doc__)
    parser.add_argument("--stage", required=True, help="a stage of infra/stages")
    asked = parser.parse_args(arguments)
    return exit_code(lambda: _make(asked), PackagingFailedError, StackError, StageError)


def _make(asked: argparse.Namespace) -> None:
    stage = load(asked.stage)
    account = Account.of(stage, os.environ.get("AWS_ENDPOINT_URL", ""))
    stack = make(stage, account)
    key = os.environ.get("OPERATOR_KEY", "")
    operator = hashlib.sha256(key.encode()).hexdigest() if key else stage.parameters.get(OPERATOR, "")
    folder = ChaliceCopy(stage, account, stack.outputs(), operator).write()
    chalice = f".venv/bin/chalice --project-dir {folder.relative_to(ROOT)} deploy --stage {stage.name}"
    say(f"Now: {chalice}\nThen: make post-deploy STAGE={stage.name}")


def make(stage: Stage, account: Account) -> Stack:
    """Make the stack beside chalice, or bring it to what it should be, and give it."""
    stack = Stack(stage.stack + SUFFIX, account, say)
    if Stack(stage.stack, account, say).exists():
        raise StackError(f"The stage {stage.name} is deployed in one stack; take that away first.")
    stack.make_ready()
    kept = Kept(stage, account, say)
    found = None if stack.holds_anything() else kept.taking_up()
    if found:
        say("Takes up what a removed stack has left.")
        stack.apply(found)
    release = Releases(stage, account).keep(template(stage.name))
    values = {"Prefix": stage.prefix, "EndpointUrl": account.endpoint_url, **stage.parameters}
    parameters = [
        {"ParameterKey": name, "ParameterValue": value}
        for name, value in values.items()
        if name in release.template["Parameters"]
    ]
    say(
        "The resources changed."
        if stack.apply(Change(release.url, parameters))
        else "The resources are there."
    )
    if found:
        kept.put_right()
    return stack


if __name__ == "__main__":
    sys.exit(main())
