"""`make dev` runs everything, keeps everything, stops everything, and says in one sentence what is wrong."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from infra.local.emulator import EmulatorName
from infra.local.processes import ROOT
from tests.e2e.stack import RelayStack, StackError

STUB = ("--app", "tests.fakes.local_app:app")
MISLEADING = {"AWS_PROFILE": "nowhere", "AWS_ACCESS_KEY_ID": "real", "HTTP_PROXY": "http://127.0.0.1:9"}


def send(stack: RelayStack, group: str, body: str) -> None:
    httpx.post(f"{stack.api_url}/send/{group}", content=body).raise_for_status()


def remembers(stack: RelayStack, key: str) -> bool:
    return httpx.get(f"{stack.api_url}/remembered/{key}").status_code == 200


def alive(pid: int) -> bool:
    """Say whether a process runs; one that only waits to be buried does not."""
    asked = ["ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return bool(state) and not state.startswith("Z")


def pids(stack: RelayStack) -> dict[str, int]:
    return {name: stack.pid(name) for name in ("emulator", "receiver", "api", "workers")}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayStack]:
    state = tmp_path_factory.mktemp("stack")
    with RelayStack(state, *STUB, "--schedule-speed", "60", settings=MISLEADING) as started:
        yield started


def test_a_message_from_the_api_reaches_a_function(stack: RelayStack) -> None:
    send(stack, "group", "hello")
    stack.until(lambda: remembers(stack, "hello"))
    seen = httpx.get(f"{stack.api_url}/remembered/hello").json()
    assert seen == {"group": "group", "pid": stack.pid("workers")}


def test_schedules_run_on_time(stack: RelayStack) -> None:
    stack.until(lambda: remembers(stack, "schedule"))
    first = httpx.get(f"{stack.api_url}/remembered/schedule").json()
    stack.until(lambda: httpx.get(f"{stack.api_url}/remembered/schedule").json() != first, within_s=5)


def test_the_receiver_runs_beside(stack: RelayStack) -> None:
    assert httpx.get(f"{stack.receiver_url}/received").status_code == 200


def test_it_says_what_runs_where_and_what_to_type_next(stack: RelayStack) -> None:
    said = stack.output()
    for text in (stack.api_url, stack.receiver_url, stack.endpoint_url, "ministack", "Ctrl-C", "curl -s"):
        assert text in said


def test_the_api_restarts_alone_while_messages_go_on(stack: RelayStack) -> None:
    before = pids(stack)
    queue = stack.client("sqs").get_queue_url(QueueName="relay-shard-0.fifo")["QueueUrl"]
    asked = stack.restart_api()
    stack.client("sqs").send_message(
        QueueUrl=queue, MessageBody="during", MessageGroupId="g", MessageDeduplicationId="during"
    )
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout == "The API was started again; deliveries went on.\n"
    after = pids(stack)
    assert after.pop("api") != before.pop("api")
    assert after == before
    stack.until(lambda: remembers(stack, "during"))


def test_no_run_leads_to_a_real_account_or_through_a_proxy(stack: RelayStack) -> None:
    environment = Path(f"/proc/{stack.pid('workers')}/environ").read_bytes().split(b"\0")
    assert b"AWS_ACCESS_KEY_ID=test" in environment
    assert b"NO_PROXY=127.0.0.1,localhost" in environment
    assert not [entry for entry in environment if entry.startswith(b"AWS_PROFILE")]


@pytest.mark.parametrize("name", ["api", "workers", "receiver"])
def test_a_dead_process_is_started_again_and_said_so(stack: RelayStack, name: str) -> None:
    before = pids(stack)
    stack.kill(name)
    stack.until(lambda: stack.pid(name) != before[name], within_s=30)
    shown = "API" if name == "api" else name
    assert f"The {shown} ended by signal 9; it was started again.\n" in stack.output()
    sent: list[str] = []

    def serves() -> bool:
        """Send one more, in a group of its own: the emulator may hand some to a poll of the dead process."""
        sent.append(f"after-{name}-{len(sent)}")
        send(stack, sent[-1], sent[-1])
        return any(remembers(stack, each) for each in sent)

    stack.until(serves, within_s=30)


def test_a_second_run_on_the_same_state_is_refused(stack: RelayStack) -> None:
    second = RelayStack(stack.state, *STUB)
    ran = subprocess.run(
        [sys.executable, "-m", "infra.local.dev", "--state-dir", second.state],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == f"Relay runs here already, with its state in {stack.state}.\n"


@pytest.mark.parametrize("part", ["API", "receiver", "emulator"])
def test_a_taken_port_is_one_sentence(stack: RelayStack, tmp_path: Path, part: str) -> None:
    other = RelayStack(tmp_path, *STUB)
    port = getattr(other.ports, part.lower())
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", port))
        taker.listen()
        with pytest.raises(StackError) as refusal:
            other.start()
    assert other.process.returncode == 1
    option = f"--{part.lower()}-port"
    assert str(refusal.value) == (
        f"Port {port} of the {part} is taken; stop what uses it, or choose another with {option}.\n"
    )


def test_what_was_left_is_found_again_and_goes_on(tmp_path: Path) -> None:
    first = RelayStack(tmp_path, *STUB)
    with first:
        payload = {"Bucket": "relay-payloads", "Key": "a/b"}
        first.client("s3").put_object(**payload, Body=bytes(range(256)))
        sealed = first.client("kms").encrypt(KeyId="alias/relay-secrets", Plaintext=b"secret")[
            "CiphertextBlob"
        ]
        send(first, "group", "before")
        first.until(lambda: remembers(first, "before"))
        queue = first.client("sqs").get_queue_url(QueueName="relay-delayed")["QueueUrl"]
        first.client("sqs").send_message(QueueUrl=queue, MessageBody="pending", DelaySeconds=3)
    assert first.errors() == ""
    second = RelayStack(tmp_path, *STUB, ports=first.ports)
    with second:
        second.until(lambda: remembers(second, "pending"))
        assert remembers(second, "before")
        assert second.client("s3").get_object(**payload)["Body"].read() == bytes(range(256))
        assert second.client("kms").decrypt(CiphertextBlob=sealed)["Plaintext"] == b"secret"


def test_a_signal_stops_all_of_it_cleanly(tmp_path: Path) -> None:
    stack = RelayStack(tmp_path, *STUB)
    with stack:
        running = pids(stack)
        stack.process.send_signal(signal.SIGTERM)
        assert stack.process.wait(60) == 0
    assert not [name for name, pid in running.items() if alive(pid)]
    assert stack.errors() == ""
    assert stack.output().endswith("Stopping.\n")
    for name in running:
        assert "Traceback" not in stack.log(name)


def test_a_signal_during_the_start_stops_it_too(tmp_path: Path) -> None:
    stack = RelayStack(tmp_path, *STUB)
    stack.begin()
    stack.until((tmp_path / "logs" / "emulator.log").exists)
    assert stack.stop() == 0
    assert stack.errors() == ""


def test_a_dead_emulator_ends_all_with_one_sentence(tmp_path: Path) -> None:
    stack = RelayStack(tmp_path, *STUB)
    with stack:
        running = pids(stack)
        stack.kill("emulator")
        assert stack.process.wait(60) == 1
    log = tmp_path / "logs" / "emulator.log"
    assert stack.errors() == (
        "The emulator ended by signal 9, so Relay stopped; what it had not written to disk is lost. "
        f"Its log is {log}.\n"
    )
    assert not [name for name, pid in running.items() if alive(pid)]


def test_nothing_survives_the_death_of_the_supervisor(tmp_path: Path) -> None:
    stack = RelayStack(tmp_path, *STUB)
    stack.start()
    running = pids(stack)
    send(stack, "group", "kept")
    stack.until(lambda: remembers(stack, "kept"))
    stack.process.kill()
    stack.until(lambda: not any(map(alive, running.values())), within_s=60)
    stack.stop()
    with RelayStack(tmp_path, *STUB, ports=stack.ports) as again:
        assert remembers(again, "kept")


def test_nothing_survives_the_death_of_the_test(tmp_path: Path) -> None:
    program = (
        "import pathlib, signal; from tests.e2e.stack import RelayStack; "
        f"RelayStack(pathlib.Path({str(tmp_path)!r}), *{STUB!r}).start(); signal.pause()"
    )
    test = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    watched = RelayStack(tmp_path)
    watched.until(lambda: "children" in watched.written(), within_s=60)
    running = [watched.written()["pid"], *watched.written()["children"].values()]
    test.kill()
    test.wait()
    watched.until(lambda: not any(map(alive, running)), within_s=60)


def test_an_app_that_does_not_import_is_one_sentence(tmp_path: Path) -> None:
    stack = RelayStack(tmp_path, "--app", "tests.fakes.nothing:app")
    with pytest.raises(StackError) as refusal:
        stack.start()
    assert stack.process.returncode == 1
    log = tmp_path / "logs" / "api.log"
    assert str(refusal.value) == (
        "The API ended before it was ready, with: "
        f"ModuleNotFoundError: No module named 'tests.fakes.nothing'. Its log is {log}.\n"
    )


def test_a_missing_emulator_environment_is_one_sentence(tmp_path: Path) -> None:
    stack = RelayStack(tmp_path, *STUB, settings={"EMULATOR_VENV": str(tmp_path / "nowhere")})
    with pytest.raises(StackError) as refusal:
        stack.start()
    assert stack.process.returncode == 2
    assert str(refusal.value) == (
        f"The emulator's environment {tmp_path / 'nowhere'} is missing; `make dev` makes it.\n"
    )


def test_an_unknown_emulator_is_one_sentence(tmp_path: Path) -> None:
    stack = RelayStack(tmp_path, *STUB, settings={"EMULATOR": "floci"})
    with pytest.raises(StackError) as refusal:
        stack.start()
    assert stack.process.returncode == 2
    assert str(refusal.value) == "EMULATOR=floci is not known; it is one of ministack, moto, localstack.\n"


def test_a_localstack_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    stack = RelayStack(tmp_path, *STUB, emulator=EmulatorName.LOCALSTACK)
    with pytest.raises(StackError) as refusal:
        stack.start()
    assert stack.process.returncode == 2
    assert str(refusal.value) == f"No localstack answers at {stack.endpoint_url}; start it first.\n"


def test_moto_serves_in_its_place(tmp_path: Path) -> None:
    with RelayStack(tmp_path, *STUB, emulator=EmulatorName.MOTO) as stack:
        send(stack, "group", "hello")
        stack.until(lambda: remembers(stack, "hello"))
        assert "forgets everything" in stack.output()


def test_asking_for_a_restart_where_nothing_runs_is_one_sentence(tmp_path: Path) -> None:
    asked = RelayStack(tmp_path).restart_api()
    assert (asked.returncode, asked.stdout) == (1, "")
    assert asked.stderr == "Relay does not run here; `make dev` starts it.\n"
