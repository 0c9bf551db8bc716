"""Sends to queues and buses in AWS accounts of others, by roles that it assumes for a while.

The one place that calls AWS as somebody else; no credential of theirs is stored anywhere.
"""

import asyncio
import http.client
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from chalicelib.adapters.aws_json import JsonService
from chalicelib.adapters.http.loop import BackgroundLoop
from chalicelib.adapters.http.sender import LoopOutbox, SendLimits
from chalicelib.application.ports import Unavailable
from chalicelib.domain.cloud import answers
from chalicelib.domain.cloud.address import parts
from chalicelib.domain.cloud.message import MAX_BYTES
from chalicelib.domain.endpoint import Transport
from chalicelib.domain.outcome import Fault, Reply
from chalicelib.domain.request import Errand, Request

SESSION_NAME = "relay-deliver"
SESSION_S = 3_600
RENEW_S = 300
"""How long before its end a session is replaced: more than an attempt takes, and clocks differ by."""
KNOWN_MAX = 1_000
IDLE_S = 4.0
"""For how long a connection is kept: a try is the only one, and must not meet one that AWS has closed."""
STEPS = 4
"""How often an attempt may wait, each time a part of its total timeout: for STS and a service, twice each."""

_OF_OURS = frozenset(
    "ExpiredToken ExpiredTokenException InvalidClientTokenId RequestExpired SignatureDoesNotMatch".split()
)
"""What STS says when the fault is with who asks, and with no role."""

Role = tuple[str, str]
"""A role's ARN, and the external id it is assumed with."""


@dataclass(frozen=True, slots=True)
class _Session:
    credentials: ReadOnlyCredentials
    renew_at_s: float


class Sessions:
    """Assumes roles; a session serves until shortly before its end, and is asked for once at a time."""

    def __init__(self, sts: Any, now_s: Callable[[], float] = time.time) -> None:  # noqa: ANN401 - boto3's client
        """Assume roles by this client of STS."""
        self._sts = sts
        self._now_s = now_s
        self._lock = threading.Lock()
        self._known: OrderedDict[Role, Future[_Session]] = OrderedDict()

    def credentials(self, role: Role) -> ReadOnlyCredentials:
        """Give the credentials of a role; raises botocore's errors."""
        with self._lock:
            found = self._known.get(role)
            mine = found is None or (found.done() and self._over(found))
            if found is None or mine:
                found = self._known[role] = Future()
            self._known.move_to_end(role)
            while len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
        if mine:
            try:
                found.set_result(self._assumed(role))
            except BaseException as error:
                found.set_exception(error)
                self.forget(role)
                raise
        return found.result().credentials

    def forget(self, role: Role) -> None:
        """Let the next attempt assume a role anew."""
        with self._lock:
            self._known.pop(role, None)

    def close(self) -> None:
        """Close the connections that no call is using."""
        self._sts.close()

    def _over(self, of: Future[_Session]) -> bool:
        return of.exception() is not None or of.result().renew_at_s <= self._now_s()

    def _assumed(self, role: Role) -> _Session:
        arn, external_id = role
        answer = self._sts.assume_role(
            RoleArn=arn, RoleSessionName=SESSION_NAME, ExternalId=external_id, DurationSeconds=SESSION_S
        )
        of = answer["Credentials"]
        credentials = ReadOnlyCredentials(of["AccessKeyId"], of["SecretAccessKey"], of["SessionToken"])
        return _Session(credentials, of["Expiration"].timestamp() - RENEW_S)


class CloudSender:
    """Sends errands side by side, each an AWS call under the role of its endpoint's owner."""

    def __init__(
        self,
        sessions: Sessions,
        client_of: Callable[[str, str], Any],
        limits: SendLimits,
        loop: BackgroundLoop,
    ) -> None:
        """Send with these sessions; `client_of` makes a boto3 client of a service in a region."""
        self._sessions = sessions
        self._client_of = client_of
        self._limits = limits
        self._loop = loop
        self._lock = threading.Lock()
        self._services: dict[tuple[str, str], JsonService] = {}
        self._threads = ThreadPoolExecutor(limits.max_in_flight, "cloud")

    def outbox(self) -> LoopOutbox:
        """Open a place for the sends of one invocation; the limit of sends at once is its own."""
        return LoopOutbox(self._loop.get(), self.send, self._limits.max_in_flight)

    def close(self) -> None:
        """Close the connections that no call is using."""
        for each in self._services.values():
            each.close()
        self._sessions.close()

    async def send(self, request: Request) -> Reply:
        """Make one call and give what came back; never raises for what an endpoint or its owner does.

        What is cancelled is waited for: nothing is under way any more when this returns.
        """
        began = time.monotonic()
        send = partial(copy_context().run, self._send, request)
        running = asyncio.get_running_loop().run_in_executor(self._threads, send)
        try:
            reply = await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise
        spent_ms = int((time.monotonic() - began) * 1000)
        return replace(reply, total_ms=spent_ms, first_byte_ms=0 if reply.status is None else spent_ms)

    def _send(self, request: Request) -> Reply:
        errand = request.errand
        if errand is None:
            return Reply(fault=Fault.REFUSED, detail="this function sends to AWS alone", unsent=True)
        if errand.size > MAX_BYTES[errand.transport]:
            return replace(answers.too_large(f"{errand.size} bytes"), unsent=True)
        role = (errand.role, errand.external_id)
        latest_s = time.monotonic() + self._limits.total_timeout_s / 2
        try:
            credentials = self._sessions.credentials(role)
        except ClientError as error:
            if _code(error) in _OF_OURS:
                raise Unavailable("AWS does not take Relay's own credentials") from error
            return answers.not_assumed(_code(error), _status(error))
        except NoCredentialsError as error:
            raise Unavailable("there are no credentials to assume a role with") from error
        except BotoCoreError as error:
            return replace(_broken(error), unsent=True)
        if time.monotonic() > latest_s:
            return Reply(fault=Fault.TIMEOUT, detail="assuming the role took too long", unsent=True)
        return self._call(request.url, errand, role, credentials)

    def _call(self, arn: str, errand: Errand, role: Role, credentials: ReadOnlyCredentials) -> Reply:
        of = parts(arn)
        try:
            if errand.transport is Transport.SQS:
                service = self._service("sqs", of.region)
                where = {"QueueUrl": f"{service.url.rstrip('/')}/{of.account}/{of.name}"}
                answer = service.call_as(credentials, "SendMessage", **where, **errand.parameters)
            else:
                service = self._service("events", of.region)
                answer = service.call_as(credentials, "PutEvents", Entries=[errand.parameters])
        except ClientError as error:
            reply = answers.refused(_code(error), _status(error), _said(error))
            if reply.fault is Fault.ACCESS_DENIED:
                self._sessions.forget(role)
            return reply
        except BotoCoreError as error:
            return _broken(error)
        return answers.taken(answer)

    def _service(self, name: str, region: str) -> JsonService:
        with self._lock:
            if (name, region) not in self._services:
                step_s = self._limits.total_timeout_s / STEPS
                made = JsonService(self._client_of(name, region), tries=1, timeout_s=step_s, idle_s=IDLE_S)
                self._services[name, region] = made
            return self._services[name, region]


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]


def _said(error: ClientError) -> str:
    return error.response["Error"]["Message"]


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))


def _broken(error: BotoCoreError) -> Reply:
    """Say what an exchange with AWS broke off for, in words that name no address."""
    cause = error.__cause__ or error.kwargs.get("error")
    if isinstance(cause, TimeoutError) or "timeout" in type(error).__name__.lower():
        return Reply(fault=Fault.TIMEOUT, detail="AWS did not answer in time")
    if isinstance(cause, http.client.HTTPException):
        return Reply(fault=Fault.PROTOCOL_ERROR, detail="what AWS answered cannot be read")
    return Reply(fault=Fault.NO_RESPONSE, detail="AWS could not be reached, or broke off")
