"""Deploys a stage: takes up what an earlier one left, makes a release its stack, lets an event arrive."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from infra.deploying.account import Account, Say
from infra.deploying.kept import Kept
from infra.deploying.release import OUTPUT, Release, ReleaseError, Releases
from infra.deploying.stack import Change, Stack
from infra.deploying.stage import Stage, StageError
from infra.deploying.verification import Verification
from infra.package import Package

OPERATOR: Final = "OperatorKeySha256"
API: Final = "RestAPIId"
_TIMEOUT_S: Final = 35


@dataclass(frozen=True, slots=True)
class Deployment:
    """A stage and the account it goes to; `operator_key` opens the tenant that the check is made with."""

    stage: Stage
    account: Account
    say: Say
    operator_key: str = ""

    @property
    def stack(self) -> Stack:
        """Give its stack."""
        return Stack(self.stage.stack, self.account, self.say)

    @property
    def releases(self) -> Releases:
        """Give its releases."""
        return Releases(self.stage, self.account)

    def deploy(self, package: Package) -> bool:
        """Deploy a package; False when it runs already."""
        release = self.releases.add(package)
        declared = set(release.template["Parameters"])
        if strange := sorted(self.stage.parameters.keys() - declared):
            raise StageError(
                f"The template has no parameter {', '.join(strange)} of the stage {self.stage.name}."
            )
        return self.deploy_release(release)

    def deploy_again(self, digest: str) -> bool:
        """Deploy a release that was deployed before, under the stage's parameters of today."""
        return self.deploy_release(self.releases.find(digest))

    def deploy_release(self, release: Release) -> bool:
        """Make the stack this release; whatever state it is in, it goes on from there."""
        stack = self.stack
        stack.make_ready()
        before = stack.outputs().get(OUTPUT)
        kept = Kept(self.stage, self.account, self.say)
        found = None if stack.holds_anything() else kept.taking_up()
        if found:
            self.say("Takes up what a removed stack has left.")
            stack.apply(found)
        changed = stack.apply(Change(release.url, self._parameters(release)))
        if found:
            kept.put_right()
        self.say(f"Release {release.digest} {'is deployed' if changed else 'was deployed already'}.")
        if changed and before not in {None, release.digest}:
            self.say(
                f"Before it ran {before}; to go back: make deploy STAGE={self.stage.name} RELEASE={before}"
            )
        return changed

    def url(self) -> str:
        """Give the address of the deployed API; ReleaseError when nothing is deployed."""
        outputs = self.stack.outputs()
        if API not in outputs:
            raise ReleaseError(f"The stage {self.stage.name} is not deployed.")
        return self.account.api_url(outputs[API])

    def verify(self, destination: str = "", *, within_s: float = 120) -> str:
        """Let an event arrive through the deployed API; NotVerifiedError when it does not."""
        direct = bool(self.account.endpoint_url)
        with httpx.Client(base_url=self.url(), timeout=_TIMEOUT_S, trust_env=not direct) as api:
            return Verification(api, self.operator_key, destination, within_s).run()

    def destroy(self, *, data: bool) -> None:
        """Remove the stack, and its data only when told; what is gone already is no error."""
        stack = self.stack
        stack.wait()
        stack.delete()
        self.say(f"The stack {stack.name} is gone.")
        kept = Kept(self.stage, self.account, self.say)
        if data:
            kept.delete()
            kept.delete_bucket(self.releases.bucket)
        else:
            self.say("Tables, buckets and the key were kept; the next make deploy takes them up again.")

    def _parameters(self, release: Release) -> Sequence[Mapping[str, Any]]:
        """Give the parameters that the release knows; an operator that nobody names stays who it is."""
        declared = release.template["Parameters"]
        values = {"Prefix": self.stage.prefix, "EndpointUrl": self.account.endpoint_url, **self._operator()}
        values |= self.stage.parameters
        given: list[Mapping[str, Any]] = [
            {"ParameterKey": name, "ParameterValue": value}
            for name, value in values.items()
            if name in declared
        ]
        if OPERATOR not in values and OPERATOR in self.stack.parameters():
            given.append({"ParameterKey": OPERATOR, "UsePreviousValue": True})
        return given

    def _operator(self) -> Mapping[str, str]:
        """Give the hash of the operator's key; StageError when the stage names another's."""
        if not self.operator_key:
            return {}
        digest = hashlib.sha256(self.operator_key.encode()).hexdigest()
        if self.stage.parameters.get(OPERATOR, digest) != digest:
            raise StageError(f"OPERATOR_KEY is not the key whose SHA-256 the stage {self.stage.name} has.")
        return {OPERATOR: digest}
