"""One emulator for all of this tier; each test has a Relay with a prefix of its own in it."""

import asyncio
import json
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from chalicelib import bootstrap, telemetry
from chalicelib.adapters.aws_limits.call_counter import CallCounter, count_calls
from chalicelib.domain.api_key import digest
from infra.local.emulator import EmulatorName, free_port, running
from infra.local.provision import Provisioned, provision
from tests.handlers.log_pages import ALWAYS, LINES
from tests.handlers.relay import SHARED, Relay, clients_of, count_counting, forget
from tests.leaks.tables import watch_tables
from tests.leaks.watch import WATCH
from tests.receiver import Receiver

MakeRelay = Callable[..., Relay]
Start = Callable[[Provisioned, dict[str, str]], Relay]
OPERATOR_KEY = "relay_operator.nobody-knows"
_PREFIXES, _TENANTS = count(1), count(1)
_DEVELOPMENT = {"RELAY_ALLOW_KEYLESS": "true", "RELAY_ALLOW_PRIVATE_ENDPOINTS": "true"}


def set_environment(patch: pytest.MonkeyPatch, endpoint_url: str, settings: dict[str, str]) -> None:
    """Give the process the environment of a function at an emulator, and nothing of the machine's own."""
    for name in list(os.environ):
        if name.startswith(("RELAY_", "AWS_")):
            patch.delenv(name)
    credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    place = {"AWS_ENDPOINT_URL": endpoint_url, "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in {**credentials, **place, **settings}.items():
        patch.setenv(name, value)


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(EmulatorName.MINISTACK, tmp_path_factory.mktemp("emulator"), free_port()) as endpoint_url:
        yield endpoint_url


@pytest.fixture(scope="session")
def clients(emulator: str) -> dict[str, Any]:
    return clients_of(emulator)


@pytest.fixture(scope="session")
def services(emulator: str) -> Iterator[list[CallCounter]]:
    """Make the app's own AWS clients once: no setting of this tier changes them. Their calls are counted."""
    with pytest.MonkeyPatch.context() as environment:
        set_environment(environment, emulator, {"RELAY_STRICT_AWS": "true"})
        forget(*SHARED)
        counters = [count_calls(bootstrap.client(name)) for name in ("dynamodb", "sqs", "s3", "kms", "sns")]
        counters.append(count_counting(bootstrap.client("dynamodb")))
        made = [bootstrap.json_service(name) for name in ("dynamodb", "sqs")]
    yield counters
    for each in made:
        each.close()
    if bootstrap.sender.cache_info().currsize:
        _drop_connections(bootstrap.sender())
    if bootstrap.cloud_sender.cache_info().currsize:
        bootstrap.cloud_sender().close()
    forget(*SHARED)


def _drop_connections(sender: Any) -> None:  # noqa: ANN401 - looked into as nothing but a test may
    closing = sender._transport.aclose()  # noqa: SLF001 - a function's process has no end at which to close
    asyncio.run_coroutine_threadsafe(closing, sender._loop.get()).result(10)  # noqa: SLF001 - as above


@pytest.fixture(scope="session")
def listening() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def receiver(listening: Receiver) -> Receiver:
    listening.reset()
    return listening


@pytest.fixture(scope="session")
def emptied(emulator: str, clients: dict[str, Any]) -> Iterator[Provisioned]:
    """Give what tests may share that must leave it as empty as they found it."""
    made = provision(emulator, "h0-")
    yield made
    assert Relay(made, clients).nothing_is_stored()


@pytest.fixture
def start(
    clients: dict[str, Any], services: list[CallCounter], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Start]:
    """Give what starts a Relay with these settings on what was provisioned."""

    def start_on(made: Provisioned, settings: dict[str, str]) -> Relay:
        named = {"RELAY_RESOURCE_PREFIX": made.prefix, "RELAY_PAYLOAD_BUCKET": made.bucket}
        named["RELAY_AUDIT_BUCKET"] = made.audit_bucket
        if made.topic_arn is not None:
            named["RELAY_NOTICES_TOPIC_ARN"] = made.topic_arn
        set_environment(monkeypatch, made.endpoint_url, {"RELAY_STRICT_AWS": "true", **named, **settings})
        forget()
        for counter in services:
            counter.reset()
        return Relay(made, clients, tuple(services))

    yield start_on
    forget()


@pytest.fixture
def make_relay(emulator: str, start: Start, clients: dict[str, Any]) -> Iterator[MakeRelay]:
    """Give what makes a Relay of its own with these settings; without any it is one of production."""
    made: list[Provisioned] = []

    def make(**settings: str) -> Relay:
        made.append(provision(emulator, f"h{next(_PREFIXES)}-"))
        return start(made[-1], settings)

    yield make
    for each in made:
        watch_tables(WATCH, clients["dynamodb"], each.tables.values())


@pytest.fixture
def relay(make_relay: MakeRelay) -> Relay:
    """Give a Relay as `make dev` runs it: no key needed, private addresses allowed."""
    return make_relay(**_DEVELOPMENT)


@pytest.fixture(scope="session")
def shared(emulator: str) -> Provisioned:
    """Give what the tenants of many tests live in."""
    return provision(emulator, "h-")


@pytest.fixture
def tenant(shared: Provisioned, start: Start, clients: dict[str, Any]) -> Iterator[Relay]:
    """Give a Relay as a tenant of its own sees it, who asks the API and looks at nothing behind it."""
    name = f"t{next(_TENANTS)}"
    yield start(shared, _DEVELOPMENT).another(name)
    watch_tables(WATCH, clients["dynamodb"], shared.tables.values(), name)


@pytest.fixture
def empty_relay(emptied: Provisioned, start: Start) -> Relay:
    """Give such a Relay in which nothing is stored, and which has to stay so."""
    return start(emptied, _DEVELOPMENT)


@pytest.fixture
def guarded(make_relay: MakeRelay) -> Relay:
    """Give a Relay as production runs it, asked by an admin of the tenant `acme`."""
    return make_relay().another("acme")


@pytest.fixture
def operator(make_relay: MakeRelay) -> Relay:
    """Give a Relay as production runs it, asked by its operator."""
    made = make_relay(RELAY_OPERATOR_KEY_SHA256=digest(OPERATOR_KEY))
    return replace(made, key=OPERATOR_KEY)


@pytest.fixture
def empty_guarded(emptied: Provisioned, start: Start) -> Relay:
    """Give such a Relay in which nothing is stored, and which has to stay so."""
    return start(emptied, {}).another("acme")


class Lines(logging.Handler):
    """What the functions log, as the JSON that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))

    def named(self, message: str) -> list[dict[str, Any]]:
        parsed = [json.loads(text) for text in self.texts]
        return [line for line in parsed if line["message"] == message]


@pytest.fixture
def lines() -> Iterator[Lines]:
    yield from _heard(Lines())


@pytest.fixture(scope="session", autouse=True)
def documented() -> Iterator[None]:
    """Hold every line of the tier to docs/operations.md: its message and its keys are there."""
    with contextmanager(_heard)(Lines()) as heard:
        yield
        told: dict[str, set[str]] = defaultdict(set)
        for line in map(json.loads, heard.texts):
            told[line["message"]] |= line.keys()
    undocumented = {name: keys - ALWAYS - LINES.get(name, set()) for name, keys in told.items()}
    assert {name: keys for name, keys in undocumented.items() if keys or name not in LINES} == {}


def _heard(handler: Lines) -> Iterator[Lines]:
    handler.setFormatter(telemetry.logger().registered_formatter)
    logging.getLogger("relay").addHandler(handler)
    yield handler
    logging.getLogger("relay").removeHandler(handler)
