"""What a local run consists of: ports, places, programs and the environment they share.

Values only; who starts and watches them is the supervisor.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from chalicelib.domain.api_key import DEVELOPMENT_OPERATOR_KEY, digest
from infra.local.emulator import HOST, Emulator, EmulatorName
from infra.local.invocation import ACCOUNT, REGION
from infra.local.processes import Program

_LEADS_ELSEWHERE = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN")
_SWITCHED_ON = {
    "RELAY_ALLOW_PRIVATE_ENDPOINTS": "true",
    "RELAY_ALLOW_KEYLESS": "true",
    "RELAY_OPERATOR_KEY_SHA256": digest(DEVELOPMENT_OPERATOR_KEY),
    "RELAY_SWEEP_EXPIRED_ROWS": "true",
}
_WORKERS, _API, _NODE, _RECEIVER, _PREPARE = 1, 2, 3, 4, 5
_WORKERS_STOP_WITHIN_S = 20.0
_MOTO_ACCOUNT = "123456789012"


@dataclass(frozen=True, slots=True)
class Plan:
    """One local run, as its options say."""

    emulator: Emulator
    api_port: int
    receiver_port: int
    slots: int
    prefix: str
    app: str
    schedule_speed: float
    node_port: int = 0
    """Where the relay node listens; 0: there is none."""

    @property
    def state(self) -> Path:
        """The folder that holds everything a run leaves behind."""
        return self.emulator.state

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.state / "logs"

    @property
    def api_url(self) -> str:
        """Where the API answers."""
        return f"http://{HOST}:{self.api_port}"

    @property
    def receiver_url(self) -> str:
        """Where the receiver answers."""
        return f"http://{HOST}:{self.receiver_port}"

    @property
    def node_url(self) -> str:
        """Where the relay node listens, if there is one."""
        return f"http://{HOST}:{self.node_port}" if self.node_port else ""

    @property
    def topic_arn(self) -> str:
        """Name the topic of notices as the emulator does."""
        account = _MOTO_ACCOUNT if self.emulator.name is EmulatorName.MOTO else ACCOUNT
        return f"arn:aws:sns:{REGION}:{account}:{self.prefix}notices"

    def environment(self) -> Mapping[str, str]:
        """Give every process what it needs, and nothing that would lead it to a real account.

        The switches of development are on unless whoever starts it has set them; a person who watches it in a
        terminal gets text for a log.
        """
        inherited = {name: value for name, value in os.environ.items() if name not in _LEADS_ELSEWHERE}
        watched = {"RELAY_LOG_FORMAT": "text"} if sys.stdout.isatty() else {}
        return {
            **_SWITCHED_ON,
            **watched,
            **inherited,
            "AWS_ENDPOINT_URL": self.emulator.endpoint_url,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": f"{HOST},localhost",
            "PYTHONUNBUFFERED": "1",
            "RELAY_RESOURCE_PREFIX": self.prefix,
            "RELAY_PAYLOAD_BUCKET": f"{self.prefix}payloads",
            "RELAY_AUDIT_BUCKET": f"{self.prefix}audit",
            "RELAY_NOTICES_TOPIC_ARN": self.topic_arn,
            "RELAY_NODE_URL": self.node_url,
        }

    def prepare(self) -> Program:
        """Make the emulator ready, and end."""
        return self._python("preparation", "infra.local.prepare", rank=_PREPARE)

    def rebuild(self) -> Program:
        """Make what is derived again from history, and end."""
        return self._python("rebuild", "infra.rebuild", "--senders-are-stopped", rank=_PREPARE)

    def receiver(self) -> Program:
        """Run the misbehaving receiver."""
        return self._python("receiver", "tests.receiver", "--port", str(self.receiver_port), rank=_RECEIVER)

    def api(self) -> Program:
        """Serve the API."""
        options = ("--app", self.app, "--port", str(self.api_port))
        return self._python("API", "infra.local.api", *options, rank=_API, tells=True)

    def workers(self) -> Program:
        """Run event sources and schedules."""
        options = [
            "--app", self.app, "--slots", str(self.slots), "--schedule-speed", str(self.schedule_speed),
            "--stop-within", str(_WORKERS_STOP_WITHIN_S),
        ]  # fmt: skip
        if self.emulator.name is EmulatorName.MOTO:
            options.append("--short-polling")
        grace_s = _WORKERS_STOP_WITHIN_S + 5
        return self._python(
            "workers", "infra.local.workers", *options, rank=_WORKERS, tells=True, grace_s=grace_s
        )

    def node(self) -> Program:
        """Run a relay node that shares the table of sessions with whatever other node there is."""
        of_its_own = {
            "PASEO_RELAY_HOST": HOST,
            "PASEO_RELAY_PORT": str(self.node_port),
            "PASEO_RELAY_OWNERSHIP_TARGET": f"{HOST}:{self.node_port}",
            "PASEO_RELAY_REGISTRY": "dynamodb",
            "PASEO_RELAY_DRAIN_TIMEOUT_MS": "1000",
        }
        program = self._python("node", "chalicelib.node", rank=_NODE)
        return replace(program, environment={**program.environment, **of_its_own})

    def _python(
        self, name: str, *command: str, rank: int, tells: bool = False, grace_s: float = 15
    ) -> Program:
        return Program(
            name=name, command=(sys.executable, "-m", *command), environment=self.environment(),
            log=self.logs / f"{name.lower()}.log", rank=rank, grace_s=grace_s, tells=tells,
        )  # fmt: skip
