"""One stack of CloudFormation: what state it is in, how it is changed, and how it goes.

Whatever state an earlier run left it in, it is brought to one that can be changed, or the error says what
a person has to do.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from infra.deploying.account import Account, Say

_PATIENCE_S: Final = 3_600
_WORDS_MAX: Final = 10
_CHANGEABLE: Final = frozenset(
    {
        "CREATE_COMPLETE",
        "IMPORT_COMPLETE",
        "IMPORT_ROLLBACK_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
    }
)
_EMPTY: Final = frozenset({"", "DELETE_COMPLETE", "REVIEW_IN_PROGRESS"})
"""Nothing is there, or a change that nobody has executed."""
_UNFINISHED: Final = frozenset(
    {"CREATE_FAILED", "DELETE_FAILED", "IMPORT_ROLLBACK_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED"}
)
"""A first deployment, or a removal, that failed: what is left goes, and it begins again."""
_SAME: Final = ("didn't contain changes", "No updates are to be performed")
_CAPABILITIES: Final = ("CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")


class StackError(Exception):
    """Why a stack is not as asked: sentences for a person, with CloudFormation's own reasons."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a stack is to become; `takes_up` are resources that exist already and belong to no stack."""

    template_url: str
    parameters: Sequence[Mapping[str, Any]]
    takes_up: Sequence[Mapping[str, Any]] = ()
    template_body: str = ""


@dataclass(frozen=True, slots=True)
class Stack:
    """The stack of a stage."""

    name: str
    account: Account
    say: Say

    @property
    def _api(self) -> Any:  # noqa: ANN401  botocore makes its clients at run time
        return self.account.client("cloudformation")

    def exists(self) -> bool:
        """Say whether there is something that can be changed."""
        return self.status() not in _EMPTY

    def holds_anything(self) -> bool:
        """Say whether any resource is in it."""
        if not self.exists():
            return False
        found = self._api.list_stack_resources(StackName=self.name)["StackResourceSummaries"]
        return any(each["ResourceStatus"] != "DELETE_COMPLETE" for each in found)

    def outputs(self) -> dict[str, str]:
        """Give its outputs; none of a stack that is not there."""
        return {each["OutputKey"]: each["OutputValue"] for each in self._described().get("Outputs", ())}

    def parameters(self) -> set[str]:
        """Name the parameters that it has values of."""
        return {each["ParameterKey"] for each in self._described().get("Parameters", ())}

    def status(self) -> str:
        """Give its state in CloudFormation's word, or "" when there is none."""
        return str(self._described().get("StackStatus", ""))

    def make_ready(self) -> None:
        """Bring it to where it can be created or changed; StackError when that takes a person."""
        status = self._settled()
        if status == "UPDATE_FAILED":
            self.say("An update had failed and stood still: rolling it back.")
            self._api.rollback_stack(StackName=self.name)
            status = self._settled()
        if status == "UPDATE_ROLLBACK_FAILED":
            self.say("A rollback had failed: going on with it.")
            self._api.continue_update_rollback(StackName=self.name)
            status = self._settled()
        if status in _UNFINISHED:
            self.say(f"What an earlier run left unfinished ({status}) goes first; data is kept.")
            self.delete()
            status = ""
        if status not in _CHANGEABLE | _EMPTY:
            raise StackError(self._told(status))

    def apply(self, change: Change) -> bool:
        """Make a change and wait for its end; False when there was nothing to change."""
        named = self._create_change_set(change)
        described = self._planned(named)
        if described["Status"] == "FAILED":
            reason = described.get("StatusReason", "")
            if any(words in reason for words in _SAME):
                self._api.delete_change_set(StackName=self.name, ChangeSetName=named)
                return False
            raise StackError("\n  ".join([_untaken(reason), *self._invalid(ChangeSetName=named)]))
        self._tell(described)
        self._api.execute_change_set(StackName=self.name, ChangeSetName=named)
        status = self._settled()
        if status not in {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"}:
            raise StackError(self._told(status))
        return True

    def wait(self) -> None:
        """Wait until nothing is under way."""
        self._settled()

    def delete(self) -> None:
        """Let it go and wait until it is gone; what the template keeps stays."""
        if self.status() in {"", "DELETE_COMPLETE"}:
            return
        self._api.delete_stack(StackName=self.name)
        if (status := self._settled()) not in {"", "DELETE_COMPLETE"}:
            raise StackError(self._told(status))

    def _create_change_set(self, change: Change) -> str:
        name = f"{self.name}-{secrets.token_hex(8)}"
        kind = "UPDATE" if self.exists() else "CREATE"
        source = {"TemplateURL": change.template_url} if change.template_url else {}
        asked: dict[str, Any] = {"ImportExistingResources": True, "ChangeSetType": kind, **source}
        if change.takes_up:
            asked = {
                "ChangeSetType": "IMPORT",
                "ResourcesToImport": change.takes_up,
                "TemplateBody": change.template_body,
            }
        try:
            self._api.create_change_set(
                StackName=self.name,
                ChangeSetName=name,
                Parameters=change.parameters,
                Capabilities=_CAPABILITIES,
                **asked,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            raise StackError(_untaken(error.response["Error"]["Message"])) from error
        return name

    def _planned(self, named: str) -> Any:  # noqa: ANN401  whatever botocore answers
        """Wait until a change set is worked out."""
        for _ in self._looks():
            found = self._api.describe_change_set(StackName=self.name, ChangeSetName=named)
            if found["Status"] not in {"CREATE_PENDING", "CREATE_IN_PROGRESS"}:
                return found
        raise StackError(f"CloudFormation did not work out the change set {named} within the hour.")

    def _tell(self, described: Mapping[str, Any]) -> None:
        """Say how much a change set touches, and what it takes up or replaces, by name."""
        changes = [each["ResourceChange"] for each in described.get("Changes", ())]
        self.say(f"{len(changes)} resources change in the stack {self.name}.")
        for each in changes:
            if each["Action"] == "Import":
                self.say(f"  takes up again: {each['LogicalResourceId']}")
            if each.get("Replacement") == "True":
                self.say(f"  replaces: {each['LogicalResourceId']}")

    def _settled(self) -> str:
        """Wait until nothing is under way, whoever began it, and give the state."""
        status = self.status()
        for _ in self._looks():
            if not status.endswith("_IN_PROGRESS") or status in _EMPTY:
                return status
            status = self.status()
        raise StackError(f"The stack {self.name} is still {status} after an hour; run this again later.")

    def _looks(self) -> Any:  # noqa: ANN401  an iterator of nothing in particular
        """Give one look after another until the patience is over."""
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            yield
            time.sleep(self.account.look_every_s)

    def _described(self) -> Mapping[str, Any]:
        try:
            (found,) = self._api.describe_stacks(StackName=self.name)["Stacks"]
        except ClientError as error:
            if "does not exist" in error.response["Error"]["Message"]:
                return {}
            raise
        described: Mapping[str, Any] = found
        return described

    def _told(self, status: str) -> str:
        """Say what became of the stack, why, and what to do."""
        lines = [f"The stack {self.name} is {status}. {_ADVICE.get(status, _AGAIN)}"]
        lines += [
            f"  {each['LogicalResourceId']}: {each['ResourceStatusReason']}" for each in self._failures()
        ]
        lines += [f"  {sentence}" for sentence in self._invalid(StackName=self.name)]
        return "\n".join(lines)

    def _invalid(self, **of: str) -> list[str]:
        """Give what CloudFormation found wrong before it began, which it tells nowhere else."""
        events = self._api.describe_events(**of, Filters={"FailedEvents": True})["OperationEvents"]
        found = [each["ValidationStatusReason"] for each in events if each.get("ValidationStatusReason")]
        return found[:_WORDS_MAX]

    def _failures(self) -> list[Mapping[str, Any]]:
        """Give the failures of the last operation, newest first."""
        found: list[Mapping[str, Any]] = []
        for event in self._api.describe_stack_events(StackName=self.name)["StackEvents"]:
            about_itself = event["LogicalResourceId"] == self.name
            if about_itself and event.get("ResourceStatusReason", "") == "User Initiated":
                break
            if event["ResourceStatus"].endswith("_FAILED") and "cancelled" not in event.get(
                "ResourceStatusReason", "cancelled"
            ):
                found.append(event)
        return found[:_WORDS_MAX]


def _untaken(reason: str) -> str:
    return f"CloudFormation does not take the template: {reason}"


_AGAIN: Final = "Mend what is named below and run this again."
_ADVICE: Final = {
    "DELETE_FAILED": "Something of it could not be removed; mend that and run this again.",
    "ROLLBACK_COMPLETE": "Nothing of it was kept. Mend what is named below and run this again.",
    "UPDATE_ROLLBACK_COMPLETE": "What ran before runs on. Mend what is named below and run this again.",
    "UPDATE_ROLLBACK_FAILED": (
        "Neither the new nor the old version is whole. Mend what is named below and run this again, or leave"
        " it out with `aws cloudformation continue-update-rollback --resources-to-skip`."
    ),
}
