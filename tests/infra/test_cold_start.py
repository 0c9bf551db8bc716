import os
import subprocess
import sys

from infra.package import ROOT

LIBSODIUM = """
import sys
import app
from chalicelib.adapters.ed25519 import NaclEd25519
made = NaclEd25519()
assert "nacl" not in sys.modules
made.sign(bytes(32), b"")
assert "nacl" in sys.modules
"""
IMPORT = "import time; began = time.perf_counter(); import app; print(time.perf_counter() - began)"


def test_the_app_is_imported_without_aws_or_settings(figures: list[str]) -> None:
    """Chalice imports it while packaging; a cold start waits for it."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "RELAY_"))}
    unreachable = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_EC2_METADATA_DISABLED": "true"}
    command = [sys.executable, "-W", "error", "-c", IMPORT]
    took = [_seconds(command, {**kept, **unreachable}) for _ in range(3)]
    figures.append(f"cold import of app.py in a fresh interpreter: {min(took) * 1e3:.0f} ms")


def test_libsodium_is_loaded_by_the_first_key_pair_that_signs_and_nothing_before() -> None:
    done = subprocess.run([sys.executable, "-c", LIBSODIUM], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 0


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)
