"""The copy of the app that `chalice deploy` takes: what ships, and a configuration that names what is there.

Functions, their archive and their settings are as in the one stack, but for what chalice cannot say.
"""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from infra.deploying.account import Account
from infra.deploying.beside_chalice import role_output
from infra.deploying.stage import Stage
from infra.functions import FUNCTIONS, Function
from infra.overlay import reserved
from infra.package import ROOT, lay_out

_OPERATOR: Final = "RELAY_OPERATOR_KEY_SHA256"
_FROM_OUTPUTS: Final = {
    "RELAY_AUDIT_BUCKET": "AuditBucketName",
    "RELAY_NOTICES_TOPIC_ARN": "NoticesTopicArn",
    "RELAY_PAYLOAD_BUCKET": "PayloadsBucketName",
}
_SUBNETS: Final = ("EgressSubnetAId", "EgressSubnetBId")
_GROUP: Final = "EgressSecurityGroupId"
_QUEUE: Final = re.compile(r'(on_sqs_message\(queue=")relay-')


@dataclass(frozen=True, slots=True)
class ChaliceCopy:
    """The copy for a stage; `outputs` are those of the stack beside it."""

    stage: Stage
    account: Account
    outputs: Mapping[str, str]
    operator_sha256: str = ""
    """Empty: the operator stays who it is."""

    @property
    def folder(self) -> Path:
        """Say where it is."""
        return folder(self.stage)

    def write(self) -> Path:
        """Write it anew and say where it is; what chalice knows of earlier deployments stays."""
        operator = self.operator_sha256 or self._operator_before()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        config = lay_out(self.folder, self.stage, architecture=self.account.architecture)
        about = config["stages"][self.stage.name]
        about["environment_variables"] |= self._everywhere()
        about["xray"] = self._traces == "xray"
        for function in FUNCTIONS:
            self._fill_in(about["lambda_functions"][function.name], function, operator)
        self._name_queues()
        (self.folder / ".chalice" / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
        state = deployed(self.stage).parent
        state.mkdir(parents=True, exist_ok=True)
        (self.folder / ".chalice" / "deployed").symlink_to(state, target_is_directory=True)
        return self.folder

    def _everywhere(self) -> dict[str, str]:
        """Give the variables of every function."""
        emulator = {"AWS_ENDPOINT_URL": self.account.endpoint_url} if self.account.endpoint_url else {}
        return {"RELAY_RESOURCE_PREFIX": self.stage.prefix, "RELAY_TRACES": self._traces, **emulator}

    @property
    def _traces(self) -> str:
        """Say where spans go."""
        return self.stage.parameters.get("Traces", "off")

    def _fill_in(self, about: dict[str, Any], function: Function, operator: str) -> None:
        """Fill in what the stack has made for a function."""
        variables = about["environment_variables"]
        variables |= {name: self.outputs[_FROM_OUTPUTS[name]] for name in variables.keys() & _FROM_OUTPUTS}
        variables |= {"RELAY_RESOURCE_PREFIX": self.stage.prefix}
        variables |= {_OPERATOR: operator} if _OPERATOR in variables else {}
        del about["iam_policy_file"]
        about |= {"manage_iam_role": False, "iam_role_arn": self.outputs[role_output(function)]}
        most = int(self.stage.parameters.get(reserved(function), function.most))
        if most >= 0:
            about["reserved_concurrency"] = most
        if function.sends and _GROUP in self.outputs:
            about["subnet_ids"] = [self.outputs[each] for each in _SUBNETS]
            about["security_group_ids"] = [self.outputs[_GROUP]]

    def _operator_before(self) -> str:
        """Read who the operator was in the copy that is there."""
        try:
            config = json.loads((self.folder / ".chalice" / "config.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ""
        functions = config["stages"][self.stage.name]["lambda_functions"]
        return str(functions["api_handler"]["environment_variables"][_OPERATOR])

    def _name_queues(self) -> None:
        """Let the event sources be the stage's queues."""
        app = self.folder / "app.py"
        text, count = _QUEUE.subn(rf"\g<1>{self.stage.prefix}", app.read_text(encoding="utf-8"))
        if count != sum(bool(each.queue) for each in FUNCTIONS):
            raise ValueError("app.py names its queues in a way that is not known here")
        app.write_text(text, encoding="utf-8")


def folder(stage: Stage) -> Path:
    """Say where a stage's copy is."""
    return ROOT / "build" / "chalice" / stage.name


def deployed(stage: Stage) -> Path:
    """Say where chalice notes what it has deployed; losing it means conflicts."""
    return ROOT / ".chalice" / "deployed" / f"{stage.name}.json"
