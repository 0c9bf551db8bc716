"""Settings: a closed, bounded, documented list. What is wrong starts nothing and says which."""

import os
import re
import subprocess
import sys

import pytest

from chalicelib import bootstrap
from chalicelib.domain.api_key import DEVELOPMENT_OPERATOR_KEY, digest
from chalicelib.settings import Settings, SettingsError, load
from infra.local.emulator import free_port
from infra.package import ROOT
from tests.handlers.conftest import MakeRelay

CONFIGURATION = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
EMULATOR = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}
PUBLIC = {name: field for name, field in Settings.model_fields.items() if name != "real_aws"}
ROW = re.compile(r"^\| `RELAY_([A-Z0-9_]+)` \| `([^`]*)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
IN_WORDS = {
    "resource_prefix": (
        "lower case, digits and hyphens, a letter first and a hyphen last, 2 to 24",
        ["x" * 23 + "-", "relay2-"],
        ["", "x" * 24 + "-", "Relay-", "relay", "a_b-", "ü-", "a-\n"],
    ),
    "payload_bucket": (
        "a bucket's name: lower case, digits, hyphens and dots, 3 to 63",
        ["abc", "a" * 63, "a.b-c"],
        ["", "ab", "a" * 64, "A-b", "-ab", "abc\n"],
    ),
    "audit_bucket": ("a bucket's name, likewise", ["relay-audit"], ["", "ab", "A-b"]),
    **{
        f"{name}_origin": (
            "a URL without query, no `/` at its end",
            ["https://a.example", "http://127.0.0.1:8080/telegram", "https://[fd00::5]:8443"],
            [
                "",
                "a.example",
                "https://a.example/",
                "https://a.example?x",
                "ftp://a",
                "https://u@a",
                "https://a\n",
            ],
        )
        for name in ("telegram", "discord", "slack")
    },
    "notices_topic_arn": (
        "an SNS topic's ARN, or empty",
        ["", "arn:aws:sns:us-east-1:000000000000:relay-notices", "arn:aws-cn:sns:cn-north-1:123456789012:n"],
        ["relay-notices", "arn:aws:sqs:us-east-1:000000000000:relay-notices", "arn:aws:sns:us-east-1:1:n"],
    ),
    "operator_key_sha256": (
        "64 hex digits, or empty",
        ["", "0" * 64, digest("relay_operator.nobody-knows")],
        ["0" * 63, "0" * 65, "G" * 64, "0" * 64 + "\n", "relay_operator.nobody-knows"],
    ),
    "allowed_ports": (
        "port numbers separated by commas, or `*`",
        ["1", "443,65535", "*"],
        ["", "0", "65536", "443,", "443, 8443", "https", "*,443", "443\n"],
    ),
    "outbound_proxy": (
        "an address and a port, or empty",
        ["", "10.0.0.5:3128", "[fd00::5]:3128"],
        ["10.0.0.5", "proxy.example:3128", "10.0.0.5:0", "10.0.0.5:65536", ":3128", "10.0.0.5:3128\n"],
    ),
    "node_url": (
        "`http://` or `https://`, a host and perhaps a port, or empty",
        ["", "http://127.0.0.1:4000", "https://relay.example.com"],
        [
            "relay.example.com",
            "wss://relay.example.com",
            "https://relay.example.com/",
            "https://a b",
            "http://x\n",
        ],
    ),
    "log_format": ("`json` or `text`", ["json", "text"], ["", "JSON", "text\n"]),
    "traces": ("`off` or `xray`", ["off", "xray"], ["", "on", "xray\n"]),
    "log_level": ("`DEBUG`, `INFO`, `WARNING` or `ERROR`", ["DEBUG", "ERROR"], ["", "info", "INFO\n"]),
}
REFUSED = {
    "unknown": ({"RELAY_NONSENSE": "1"}, ["RELAY_NONSENSE", "docs/configuration.md"]),
    "two unknown": ({"RELAY_B": "1", "RELAY_A": "1"}, ["RELAY_A, RELAY_B"]),
    "misspelt": ({"RELAY_SHARDS": "4"}, ["RELAY_SHARDS"]),
    "set by hand": ({"RELAY_REAL_AWS": "false"}, ["RELAY_REAL_AWS"]),
    "no number": ({"RELAY_SHARD_COUNT": "four"}, ["RELAY_SHARD_COUNT"]),
    "below its bound": ({"RELAY_SHARD_COUNT": "0"}, ["RELAY_SHARD_COUNT", "1"]),
    "above its bound": ({"RELAY_BATCH_MAX_EVENTS": "101"}, ["RELAY_BATCH_MAX_EVENTS", "100"]),
    "empty": ({"RELAY_LEASE_SECS": ""}, ["RELAY_LEASE_SECS"]),
    "no truth": ({"RELAY_BREAKER": "maybe"}, ["RELAY_BREAKER"]),
    "no level": ({"RELAY_LOG_LEVEL": "loud"}, ["RELAY_LOG_LEVEL", "DEBUG"]),
    "no prefix": ({"RELAY_RESOURCE_PREFIX": "a.b"}, ["RELAY_RESOURCE_PREFIX"]),
    "no bucket": ({"RELAY_PAYLOAD_BUCKET": "A_b"}, ["RELAY_PAYLOAD_BUCKET"]),
    "no ports": ({"RELAY_ALLOWED_PORTS": "https"}, ["RELAY_ALLOWED_PORTS", "separated by commas"]),
    "port 0": ({"RELAY_ALLOWED_PORTS": "443,0"}, ["RELAY_ALLOWED_PORTS"]),
    "port 70000": ({"RELAY_ALLOWED_PORTS": "70000"}, ["RELAY_ALLOWED_PORTS", "65535"]),
    "f102_lease_shorter_than_a_request": (
        {"RELAY_LEASE_SECS": "30", "RELAY_TOTAL_TIMEOUT_SECS": "29"},
        ["RELAY_LEASE_SECS is 30", "RELAY_TOTAL_TIMEOUT_SECS 29", "at least 32"],
    ),
    "f102_function_shorter_than_a_lease": (
        {"RELAY_FUNCTION_TIMEOUT_SECS": "44"},
        ["RELAY_FUNCTION_TIMEOUT_SECS is 44", "RELAY_LEASE_SECS, 45"],
    ),
    "cooldown over its ceiling": (
        {"RELAY_BREAKER_COOLDOWN_SECS": "301"},
        ["RELAY_BREAKER_MAX_COOLDOWN_SECS", "RELAY_BREAKER_COOLDOWN_SECS"],
    ),
    "the development operator on AWS": (
        {"RELAY_OPERATOR_KEY_SHA256": digest(DEVELOPMENT_OPERATOR_KEY)},
        ["RELAY_OPERATOR_KEY_SHA256", "AWS_ENDPOINT_URL"],
    ),
    "keyless on AWS": ({"RELAY_ALLOW_KEYLESS": "true"}, ["RELAY_ALLOW_KEYLESS", "AWS_ENDPOINT_URL"]),
}


@pytest.mark.parametrize("environment, words", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_wrong_is_told(environment: dict[str, str], words: list[str]) -> None:
    with pytest.raises(SettingsError) as refused:
        load(environment)
    for word in words:
        assert word in str(refused.value)
    assert "\n" not in str(refused.value)


def test_f102_the_defaults_leave_a_request_time_within_its_lease_and_a_lease_within_the_function() -> None:
    of = load({})
    assert of.total_timeout_secs + 2 <= of.lease_secs <= of.function_timeout_secs


def test_what_is_not_relay_s_is_not_looked_at() -> None:
    assert load({"RELAYBENCH_COUNTS": "x", "PATH": "/bin", "RELAY": "x"}) == load({})


@pytest.mark.parametrize("word", ["true", "1", "yes", "on", "T", "TRUE"])
def test_the_development_switch_opens_schemes_and_ports_unless_they_are_set(word: str) -> None:
    opened = load({"RELAY_ALLOW_PRIVATE_ENDPOINTS": word})
    assert (opened.require_https, opened.allowed_ports) == (False, None)
    kept = load(
        {
            "RELAY_ALLOW_PRIVATE_ENDPOINTS": word,
            "RELAY_REQUIRE_HTTPS": "true",
            "RELAY_ALLOWED_PORTS": "443,8443",
        }
    )
    assert (kept.require_https, kept.allowed_ports) == (True, frozenset({443, 8443}))


REAL = [
    {},
    {"AWS_ENDPOINT_URL": ""},
    {"AWS_ENDPOINT_URL": "https://dynamodb.us-east-1.amazonaws.com"},
    {"AWS_ENDPOINT_URL": "https://SQS.cn-north-1.AMAZONAWS.com.cn/"},
    {"AWS_ENDPOINT_URL": "https://s3.us-east-1.api.aws"},
    {**EMULATOR, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
    {**EMULATOR, "AWS_ENDPOINT_URL_DYNAMODB": "https://dynamodb.us-east-1.amazonaws.com"},
    {"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:8000"},
]
EMULATED = [
    EMULATOR,
    {"AWS_ENDPOINT_URL": "http://localhost.localstack.cloud:4566"},
    {**EMULATOR, "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:8000"},
]


@pytest.mark.parametrize("environment", REAL, ids=str)
def test_whatever_could_reach_amazon_is_real_and_needs_keys(environment: dict[str, str]) -> None:
    assert load(environment).real_aws
    with pytest.raises(SettingsError, match="RELAY_ALLOW_KEYLESS"):
        load({**environment, "RELAY_ALLOW_KEYLESS": "true"})


@pytest.mark.parametrize("environment", EMULATED, ids=str)
def test_an_emulator_for_everything_is_not_real(environment: dict[str, str]) -> None:
    assert load({**environment, "RELAY_ALLOW_KEYLESS": "true"}).real_aws is False


def test_the_development_key_is_not_written_on_aws(
    make_relay: MakeRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay = make_relay()
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    with pytest.raises(SettingsError):
        bootstrap.seed_development()
    assert relay.rows("tenants") == []


@pytest.mark.parametrize(
    "environment, word",
    [
        ({"RELAY_NONSENSE": "1"}, "RELAY_NONSENSE"),
        ({"RELAY_TOTAL_TIMEOUT_SECS": "60"}, "RELAY_LEASE_SECS"),
    ],
    ids=["unknown", "contradiction"],
)
def test_the_api_does_not_start_and_says_which_in_one_sentence(
    environment: dict[str, str], word: str
) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("RELAY_", "AWS_"))}
    ended = subprocess.run(
        [sys.executable, "-m", "infra.local.api", "--port", str(free_port())],
        check=False,
        cwd=ROOT,
        env={**inherited, **EMULATOR, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode != 0
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("app:app does not start: ")
    assert word in line
    assert line.endswith(".")


def documented() -> dict[str, tuple[str, str, str]]:
    return {row[1].lower(): (row[2], row[3], row[4]) for row in ROW.finditer(CONFIGURATION)}


def test_every_setting_is_documented_and_no_other() -> None:
    assert sorted(documented()) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_documented_default_is_the_default(name: str) -> None:
    default, _, _ = documented()[name]
    assert getattr(load({f"RELAY_{name.upper()}": default}), name) == PUBLIC[name].default


def bounds(name: str) -> str:
    """Write a setting's bounds as the page has them."""
    if name in IN_WORDS:
        return IN_WORDS[name][0]
    if PUBLIC[name].annotation is bool:
        return "`true` or `false`"
    limits = {
        kind: getattr(each, kind)
        for each in PUBLIC[name].metadata
        for kind in ("ge", "le")
        if hasattr(each, kind)
    }
    return f"{limits['ge']:,} to {limits['le']:,}"


@pytest.mark.parametrize("name", PUBLIC)
def test_documented_bounds_are_the_bounds(name: str) -> None:
    _, told, meaning = documented()[name]
    assert told == bounds(name)
    assert len(meaning) > 15


@pytest.mark.parametrize("name", IN_WORDS)
def test_bounds_in_words_are_kept(name: str) -> None:
    _, good, bad = IN_WORDS[name]
    for value in good:
        load({f"RELAY_{name.upper()}": value})
    for value in bad:
        with pytest.raises(SettingsError, match=f"RELAY_{name.upper()}"):
            load({f"RELAY_{name.upper()}": value})


def test_the_lambdas_environment_is_made_of_settings() -> None:
    config = (ROOT / ".chalice/config.json").read_text(encoding="utf-8")
    named = {each.removeprefix("RELAY_").lower() for each in re.findall(r"RELAY_[A-Z0-9_]+", config)}
    assert named <= set(PUBLIC)
