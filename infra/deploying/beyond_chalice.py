"""What `chalice deploy` cannot say, said after it: partial batch answers above all. And whether it holds.

Without them a function's answer is ignored and the whole batch deleted, bells of failed lanes with it.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from infra.deploying.account import Account, Say
from infra.deploying.beside_chalice import deployed_name
from infra.deploying.chalice_copy import deployed
from infra.deploying.stage import Stage
from infra.functions import FUNCTIONS, Function
from infra.overlay import maximum
from infra.template import MERGE, read

PARTIAL: Final = ["ReportBatchItemFailures"]
_SETTLED_WITHIN_S: Final = 120
_HEADER: Final = "gatewayresponse.header."


class NotAsMeantError(Exception):
    """What of a deployment by chalice is not as it has to be: sentences for a person."""


@dataclass(frozen=True, slots=True)
class BeyondChalice:
    """A stage that chalice has deployed."""

    stage: Stage
    account: Account
    say: Say

    def set(self) -> None:
        """Set what is not as meant, and touch nothing else; NotAsMeantError when nothing is deployed."""
        known = self._known()
        for function in FUNCTIONS:
            if function.queue:
                self._set_mapping(function, known)
        for function in FUNCTIONS:
            self._set_retries(function)
        self._set_answers()

    def check(self) -> None:
        """Look again, at what is there and not at what was noted; NotAsMeantError names what is wrong."""
        wrong = [each for function in FUNCTIONS for each in self._wrong(function)]
        if wrong:
            raise NotAsMeantError("\n".join(wrong))

    @property
    def api_id(self) -> str:
        """Give the id of the API that chalice has made."""
        (api,) = (each for each in self._known() if each["resource_type"] == "rest_api")
        return str(api["rest_api_id"])

    def _known(self) -> list[Mapping[str, Any]]:
        """Read what chalice has noted."""
        path = deployed(self.stage)
        try:
            noted = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise NotAsMeantError(
                f"chalice has not deployed the stage {self.stage.name}: {path} is not there."
            ) from error
        resources: list[Mapping[str, Any]] = noted["resources"]
        return resources

    def _set_mapping(self, function: Function, known: list[Mapping[str, Any]]) -> None:
        """Let a function's queue take back what it names, and cap how many copies its queue asks for."""
        name = deployed_name(function, self.stage.name)
        found = [
            each["event_uuid"]
            for each in known
            if each["resource_type"] == "sqs_event" and each["lambda_arn"].endswith(f":{name}")
        ]
        if len(found) != 1:
            raise NotAsMeantError(f"chalice has noted {len(found)} event sources of {name}, not one.")
        wanted = self._wanted(function)
        mapping = self._settled(found[0])
        if {key: mapping.get(key) for key in wanted} != wanted:
            self.account.client("lambda").update_event_source_mapping(UUID=found[0], **wanted)
            self._settled(found[0])
            self.say(f"{name} answers for each message of a batch.")

    def _wanted(self, function: Function) -> dict[str, Any]:
        """Give what an event source has to have."""
        most = int(self.stage.parameters.get(maximum(function), function.most))
        return {"FunctionResponseTypes": PARTIAL, "ScalingConfig": {"MaximumConcurrency": most}}

    def _settled(self, uuid: str) -> Mapping[str, Any]:
        """Wait until nothing changes in an event source, and give it."""
        until = time.monotonic() + _SETTLED_WITHIN_S
        while True:
            found: Mapping[str, Any] = self.account.client("lambda").get_event_source_mapping(UUID=uuid)
            if not found["State"].endswith("ing"):
                return found
            if time.monotonic() > until:
                raise NotAsMeantError(f"The event source {uuid} is still {found['State']}.")
            time.sleep(self.account.look_every_s)

    def _set_retries(self, function: Function) -> None:
        """Let a schedule's runs not be made up for, where the template says so."""
        properties = read(MERGE)["Resources"].get(function.logical_id, {}).get("Properties", {})
        if wanted := properties.get("EventInvokeConfig"):
            self.account.client("lambda").put_function_event_invoke_config(
                FunctionName=deployed_name(function, self.stage.name), **wanted
            )

    def _set_answers(self) -> None:
        """Let what API Gateway answers by itself read like any other answer of Relay."""
        api = self.account.client("apigateway")
        there = {
            each["responseType"]: each for each in api.get_gateway_responses(restApiId=self.api_id)["items"]
        }
        changed = [
            each
            for each in _answers()
            if any(there[each["responseType"]].get(k) != v for k, v in each.items())
        ]
        for each in changed:
            api.put_gateway_response(restApiId=self.api_id, **each)
        if changed:
            api.create_deployment(restApiId=self.api_id, stageName="api")
            self.say(f"{len(changed)} answers of API Gateway are problem documents.")

    def _wrong(self, function: Function) -> Iterator[str]:
        """Say what of a function is not as meant."""
        name = deployed_name(function, self.stage.name)
        api = self.account.client("lambda")
        pages = api.get_paginator("list_event_source_mappings").paginate(FunctionName=name)
        mappings = [each for page in pages for each in page["EventSourceMappings"]]
        if len(mappings) != bool(function.queue):
            yield f"{name} has {len(mappings)} event sources, not {int(bool(function.queue))}."
        for each in mappings:
            wanted = self._wanted(function)
            lacking = [key for key in wanted if each.get(key) != wanted[key]]
            if lacking:
                yield f"The event source {each['UUID']} of {name} lacks {', '.join(lacking)}: run this again."
            if each["State"] != "Enabled":
                yield f"The event source {each['UUID']} of {name} is {each['State']}."


def _answers() -> Iterator[dict[str, Any]]:
    """Give API Gateway's own answers, as the template has them and in the words of its API."""
    for kind, about in read(MERGE)["Resources"]["RestAPI"]["Properties"]["GatewayResponses"].items():
        answer: dict[str, Any] = {"responseType": kind}
        headers = about["ResponseParameters"]["Headers"]
        answer["responseParameters"] = {f"{_HEADER}{name}": value for name, value in headers.items()}
        answer["responseTemplates"] = about["ResponseTemplates"]
        if "StatusCode" in about:
            answer["statusCode"] = str(about["StatusCode"])
        yield answer
