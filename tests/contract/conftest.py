"""The emulators, each started once on a free port; every test has a prefix, and so resources, of its own."""

import os
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import trustme

from chalicelib.adapters.dynamodb.records import Tables
from chalicelib.adapters.dynamodb.tables import DynamoTables
from chalicelib.adapters.http.own_tls import own_context
from chalicelib.adapters.http.tls import tls_context
from infra import trust
from infra.local.emulator import EmulatorName, default_venv, free_port, running
from infra.local.provision import REGION, Provisioned, provision
from tests.contract.emulated import counter, json_service, strict_client
from tests.contract.given import EMULATORS, MEMORY, Stores, everywhere, stores_over
from tests.fakes.memory_tables import MemoryTables
from tests.leaks.tables import watch_tables
from tests.leaks.watch import WATCH

_RESETS = ("/_ministack/reset", "/moto-api/reset")


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not (default_venv() / "bin" / "python").exists() and not os.environ.get("CI"):
        pytest.skip("ministack is not there: `make test` installs it into .venv-emulator")
    yield from _running(EmulatorName.MINISTACK, tmp_path_factory.mktemp("ministack"))


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from _running(EmulatorName.MOTO, tmp_path_factory.mktemp("moto"))


@pytest.fixture(scope="session", autouse=True)
def credentials() -> Iterator[None]:
    """Made-up credentials, never the caller's own."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_DEFAULT_REGION", REGION)
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield


def _running(name: EmulatorName, state: Path) -> Iterator[str]:
    with running(name, state, free_port()) as url:
        yield url
        for service in ("dynamodb", "sqs"):
            json_service(service, url).close()


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[trustme.CA]:
    """Make an authority that the process trusts while the test runs."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "bundle.pem"))
    trust.write(tmp_path / "bundle.pem", tmp_path / "authorities")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "authorities"))
    _forget_contexts()
    yield made
    _forget_contexts()


def _forget_contexts() -> None:
    tls_context.cache_clear()
    own_context.cache_clear()


@pytest.fixture
def prefix() -> str:
    return f"t{uuid.uuid4().hex[:8]}-"


@pytest.fixture(params=EMULATORS)
def emulator(request: pytest.FixtureRequest) -> str:
    """The address of each emulator in turn."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def ministack_provisioned(ministack: str, prefix: str) -> Iterator[Provisioned]:
    """Everything that resources.yaml describes, on ministack."""
    yield provision(ministack, prefix)
    _forget_all(ministack)


@pytest.fixture
def moto_provisioned(moto: str, prefix: str) -> Iterator[Provisioned]:
    """Everything that resources.yaml describes, on moto."""
    yield provision(moto, prefix)
    _forget_all(moto)


@pytest.fixture(params=EMULATORS)
def provisioned(request: pytest.FixtureRequest) -> Provisioned:
    """Everything that resources.yaml describes, on each emulator in turn."""
    made: Provisioned = request.getfixturevalue(f"{request.param}_provisioned")
    return made


@pytest.fixture(params=everywhere)
def tables(request: pytest.FixtureRequest, prefix: str) -> Iterator[Tables]:
    """The tables in memory, then on each emulator."""
    if request.param == MEMORY:
        memory = MemoryTables()
        yield memory
        for key, record in memory.records.by_key.items():
            WATCH.rows(key.table, [record])
    else:
        yield from _tables_on(request.getfixturevalue(request.param), prefix)


def _tables_on(url: str, prefix: str) -> Iterator[DynamoTables]:
    provision(url, prefix, tables_only=True)
    yield DynamoTables(json_service("dynamodb", url), prefix)
    _forget_all(url)


def _forget_all(url: str) -> None:
    """Empty an emulator, in milliseconds where destroying one by one takes a tenth of a second.

    Each test has its own prefix whatever comes of this; but moto copies every table in every transaction.
    What it has stored is looked through for its secrets first.
    """
    client = strict_client("dynamodb", url)
    watch_tables(WATCH, client, client.list_tables()["TableNames"] if WATCH.knows_any else ())
    for path in _RESETS:
        asked = urllib.request.Request(url + path, method="POST")  # noqa: S310 - the emulator just started
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(asked, timeout=10):  # noqa: S310
            return


@pytest.fixture
def stores(tables: Tables) -> Stores:
    """Every semantic store, over each of the tables."""
    return stores_over(tables)


@pytest.fixture
def calls(tables: Tables, request: pytest.FixtureRequest) -> Callable[[], int]:
    """Count the calls to the store since this was last asked."""
    if isinstance(tables, MemoryTables):
        return partial(_counted, lambda: len(tables.faults.steps), tables.faults.steps.clear)
    counted = counter("dynamodb", request.getfixturevalue(request.node.callspec.params["tables"]))
    counted.reset()
    return partial(_counted, counted.total, counted.reset)


def _counted(count: Callable[[], int], reset: Callable[[], None]) -> int:
    total = count()
    reset()
    return total
