"""The check for leaked secrets, checked: what is planted is found in every form, and nothing else is."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.package import ROOT
from tests.leaks.forms import SHORTEST, forms
from tests.leaks.watch import Watch

SECRET = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()
PLANTED = """
import base64, json, logging, sys
import pytest
from chalicelib.domain.secret import Secret
from tests.leaks.watch import WATCH

TEXT = "{secret}"
logging.getLogger("relay").setLevel("INFO")

@pytest.fixture
def secret():
    return Secret(TEXT)

def test_planted_in_a_log_line(secret):
    logging.getLogger("relay").info("it is %s", secret.reveal())

def test_planted_in_what_a_line_has_besides(secret):
    logging.getLogger("relay").error("failed", extra={{"told": base64.b64encode(b"x" + TEXT.encode())}})

def test_planted_in_an_exception_that_is_logged(secret):
    try:
        raise ValueError(TEXT)
    except ValueError:
        logging.getLogger("relay").exception("failed")

def test_planted_in_output(secret):
    print(TEXT.encode().hex())

def test_planted_in_errors(secret):
    print(TEXT[6:], file=sys.stderr)

def test_planted_in_an_answer():
    WATCH.exchange({{}}, b"", json.dumps({{"secret": TEXT}}).encode(), "POST /v1/endpoints")
    WATCH.exchange({{}}, b"", json.dumps({{"detail": TEXT}}).encode(), "POST /v1/endpoints")

def test_planted_in_a_table(secret):
    WATCH.rows("relay-history", [{{"detail": TEXT}}])

def test_planted_from_a_url():
    WATCH.exchange({{}}, b'{{"url": "https://h.example/?key=S3CR3T-0123"}}', b"", "POST /v1/endpoints")
    logging.getLogger("relay").info("sent to https://h.example/?key=S3CR3T-0123")

def test_clean(secret):
    logging.getLogger("relay").info("it is %s", secret)
    WATCH.exchange({{}}, b"", json.dumps({{"secret": TEXT}}).encode(), "POST /v1/endpoints")
    WATCH.rows("relay-endpoints", [{{"headers": TEXT}}])
    print(secret)
"""


def test_a_secret_planted_anywhere_makes_the_run_fail_and_is_not_shown_by_that(tmp_path: Path) -> None:
    (tmp_path / "test_planted.py").write_text(PLANTED.format(secret=SECRET), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.leaks.plugin", "-p", "no:cacheprovider", "-rA", "-q",
         "--show-capture=no", "--rootdir", tmp_path, "-c", os.devnull, tmp_path],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    failed = {
        line.rpartition("::")[2].partition(" - ")[0]
        for line in done.stdout.splitlines()
        if line.startswith("ERROR ")
    }
    planted = {line[4:].partition("(")[0] for line in PLANTED.splitlines() if line.startswith("def test_")}
    assert failed == planted - {"test_clean"}
    assert SECRET not in done.stdout


@given(st.binary(min_size=0, max_size=9), st.binary(max_size=9), st.sampled_from(sorted(forms(SECRET))))
def test_every_form_of_a_secret_is_found_wherever_it_stands(before: bytes, after: bytes, form: str) -> None:
    watch = Watch()
    watch.made(SECRET)
    watch.seen("somewhere", before + b" " + form.encode() + b" " + after)
    assert watch.leaks()


@given(st.binary(max_size=9), st.binary(max_size=9))
def test_base64_is_found_at_every_alignment(before: bytes, after: bytes) -> None:
    whole = before + SECRET.encode() + after
    for coded in (base64.b64encode(whole), base64.urlsafe_b64encode(whole)):
        watch = Watch()
        watch.made(SECRET)
        watch.seen("somewhere", coded)
        assert watch.leaks()


@pytest.mark.parametrize("shown", [SECRET, SECRET[6:], quote(SECRET, ""), SECRET.encode().hex().upper()])
def test_a_secret_is_found_within_a_line(shown: str) -> None:
    watch = Watch()
    watch.made(SECRET)
    watch.seen("a line", f'{{"told": "{shown}", "more": 5}}')
    assert watch.leaks()
    assert SECRET not in str(watch.leaks())


def test_what_is_no_secret_is_not_found() -> None:
    watch = Watch()
    watch.made(SECRET)
    watch.made("short")
    watch.seen("a line", f"short {SECRET[: SHORTEST - 1]} whsec_ {SECRET[-SHORTEST:]}")
    assert watch.leaks() == []


def test_of_a_private_key_its_lines_are_found_and_not_what_stands_around_every_pem() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqG\nSM49AgEGCCqGSM49\n-----END PRIVATE KEY-----\n"
    watch = Watch()
    watch.made(key)
    watch.seen("here", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----")
    assert watch.leaks() == []
    watch.seen("there", "SM49AgEGCCqGSM49")
    assert len(watch.leaks()) == 1
