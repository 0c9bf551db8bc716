"""What `make package` hands to CloudFormation."""

import json
import re
from typing import Any
from zipfile import ZipFile

import pytest

from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.handlers.problems import document
from chalicelib.settings import load
from infra.functions import FUNCTIONS, Function
from infra.package import ROOT, STAGE, Package
from infra.template import MERGE, read
from tests.infra.lookup import FUNCTION, QUEUE, ROLE, TABLE, of_type, queue_of, sources

EACH = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
MEGABYTE = 1_000_000
AARCH64 = 0xB7
"""What an ELF file has at offset 18 for the processors of Lambda's arm64."""


def test_every_logical_id_that_is_merged_in_exists(template: dict[str, Any]) -> None:
    nameless = [name for name, about in template["Resources"].items() if "Type" not in about]
    assert not nameless, "misspelt in infra/merge_template.yaml or infra/functions.py"
    assert set(read(MERGE)["Resources"]) <= set(template["Resources"])


def test_the_packaged_functions_are_those_of_the_table(template: dict[str, Any]) -> None:
    assert set(of_type(template, FUNCTION)) == {function.logical_id for function in FUNCTIONS}


def test_every_queue_but_none_twice_feeds_its_function(template: dict[str, Any]) -> None:
    fed = {name: queue_of(source) for name, source in sources(template).items()}
    assert fed == {function.logical_id: function.queue for function in FUNCTIONS if function.queue}
    assert sorted(fed.values()) == sorted(of_type(template, QUEUE))


def test_every_mapping_takes_partial_batch_answers(template: dict[str, Any]) -> None:
    for name, source in sources(template).items():
        assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert source["BatchSize"] == 10 or not name.startswith("Deliver")


def test_no_mapping_of_a_fifo_queue_waits_for_a_batch(template: dict[str, Any]) -> None:
    queues = of_type(template, QUEUE)
    fifo = [source for source in sources(template).values() if queues[queue_of(source)].get("FifoQueue")]
    assert len(fifo) == 8
    assert not [source for source in fifo if "MaximumBatchingWindowInSeconds" in source]


def test_messages_stay_hidden_for_six_timeouts(template: dict[str, Any]) -> None:
    functions = of_type(template, FUNCTION)
    queues = of_type(template, QUEUE)
    for name, source in sources(template).items():
        assert queues[queue_of(source)]["VisibilityTimeout"] >= 6 * functions[name]["Timeout"]


def test_fifo_queues_keep_their_attributes_when_merged(template: dict[str, Any]) -> None:
    fifo = [queue for queue in of_type(template, QUEUE).values() if queue.get("FifoQueue")]
    assert len(fifo) == 8
    for queue in fifo:
        assert queue["DeduplicationScope"] == "messageGroup"
        assert queue["FifoThroughputLimit"] == "perMessageGroupId"


def test_tables_keep_expiry_and_backups_when_merged(template: dict[str, Any], source: dict[str, Any]) -> None:
    tables = of_type(template, TABLE)
    assert tables.keys() == of_type(source, TABLE).keys()
    for table in tables.values():
        assert table["TimeToLiveSpecification"]["Enabled"] is True
        assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True


@EACH
def test_a_function_runs_as_configured(function: Function, template: dict[str, Any]) -> None:
    made = of_type(template, FUNCTION)[function.logical_id]
    assert made["FunctionName"] == {"Fn::Sub": f"${{Prefix}}{function.deployed_name}"}
    assert made["Handler"] == ("app.app" if function.name == "api_handler" else f"app.{function.name}")
    assert made["Architectures"] == ["arm64"]
    # A whole processor for the one that walks every endpoint in its minute.
    memory = 1769 if function.name == "measure" else 512
    assert (made["Timeout"], made["MemorySize"], made["Runtime"]) == (60, memory, "python3.11")


@EACH
def test_a_function_has_a_role_of_its_own_with_its_own_policy(
    function: Function, template: dict[str, Any]
) -> None:
    functions = of_type(template, FUNCTION)
    assert functions[function.logical_id]["Role"] == {"Fn::GetAtt": [function.role_id, "Arn"]}
    users = [name for name, about in functions.items() if about["Role"]["Fn::GetAtt"][0] == function.role_id]
    assert users == [function.logical_id]
    role = of_type(template, ROLE)[function.role_id]
    (attached,) = role["Policies"]
    # The others are there under a condition: tests/infra/test_network.py and test_traces.py.
    assert set(role["ManagedPolicyArns"]) == {"Fn::If"}
    assert f"/aws/lambda/${{Prefix}}{function.deployed_name}:*" in json.dumps(attached["PolicyDocument"])
    assert '"*"' not in json.dumps(attached["PolicyDocument"])


@EACH
def test_a_function_writes_to_a_log_that_ends(function: Function, template: dict[str, Any]) -> None:
    group = of_type(template, "AWS::Logs::LogGroup")[f"{function.logical_id}LogGroup"]
    assert group["LogGroupName"] == {"Fn::Sub": f"/aws/lambda/${{Prefix}}{function.deployed_name}"}
    assert group["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    assert template["Resources"][function.logical_id]["DependsOn"] == [f"{function.logical_id}LogGroup"]


@EACH
def test_a_function_is_given_names_and_no_secret(function: Function, template: dict[str, Any]) -> None:
    variables = of_type(template, FUNCTION)[function.logical_id]["Environment"]["Variables"].copy()
    assert variables["RELAY_RESOURCE_PREFIX"] == {"Ref": "Prefix"}
    hashed = "RELAY_OPERATOR_KEY_SHA256"
    assert variables.pop(hashed, {"Ref": "OperatorKeySha256"}) == {"Ref": "OperatorKeySha256"}
    assert not [name for name in variables if re.search(r"SECRET|PASSWORD|TOKEN|KEY|CREDENTIAL", name)]
    buckets = {"RELAY_PAYLOAD_BUCKET", "RELAY_AUDIT_BUCKET"}
    named = {"RELAY_RESOURCE_PREFIX", "RELAY_NOTICES_TOPIC_ARN", *buckets}
    assert variables.keys() <= {"AWS_ENDPOINT_URL", "RELAY_TRACES", *named}
    assert variables["AWS_ENDPOINT_URL"]["Fn::If"][:2] == ["OnAws", {"Ref": "AWS::NoValue"}]


@EACH
def test_a_function_that_may_reach_a_bucket_or_topic_is_told_its_name(
    function: Function, template: dict[str, Any]
) -> None:
    names = {
        "PayloadsBucket": "RELAY_PAYLOAD_BUCKET",
        "AuditBucket": "RELAY_AUDIT_BUCKET",
        "NoticesTopic": "RELAY_NOTICES_TOPIC_ARN",
    }
    variables = of_type(template, FUNCTION)[function.logical_id]["Environment"]["Variables"]
    needed = {names[each.resource] for each in function.grants if each.resource in names}
    assert needed == set(names.values()) & variables.keys()


def test_every_configured_variable_is_a_setting() -> None:
    config = json.loads((ROOT / ".chalice" / "config.json").read_text(encoding="utf-8"))
    for about in config["stages"][STAGE]["lambda_functions"].values():
        assert load(about["environment_variables"]).resource_prefix == "relay-"


@EACH
def test_a_function_and_its_event_source_are_capped_by_parameters(
    function: Function, template: dict[str, Any]
) -> None:
    parameters = template["Parameters"]
    made = of_type(template, FUNCTION)[function.logical_id]
    _, cap, _ = made["ReservedConcurrentExecutions"]["Fn::If"]
    assert parameters[cap["Ref"]]["Default"] >= 2
    if function.queue:
        _, scaling, _ = sources(template)[function.logical_id]["ScalingConfig"]["Fn::If"]
        maximum = scaling["MaximumConcurrency"]["Ref"]
        assert 2 <= parameters[maximum]["Default"] <= parameters[cap["Ref"]]["Default"]


def test_the_caps_leave_an_account_its_hundred_unreserved(template: dict[str, Any]) -> None:
    caps = [
        about["Default"]
        for name, about in template["Parameters"].items()
        if name.endswith("ReservedConcurrency")
    ]
    assert sum(caps) <= 1_000 - 100


def test_reconcile_runs_each_minute_and_is_never_made_up_for(template: dict[str, Any]) -> None:
    reconcile = of_type(template, FUNCTION)["Reconcile"]
    (event,) = reconcile["Events"].values()
    assert event == {"Type": "Schedule", "Properties": {"Schedule": "rate(1 minute)"}}
    assert reconcile["EventInvokeConfig"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}


def test_an_unknown_path_is_a_404_problem(template: dict[str, Any]) -> None:
    api = template["Resources"]["RestAPI"]["Properties"]
    answer = api["GatewayResponses"]["MISSING_AUTHENTICATION_TOKEN"]
    assert answer["StatusCode"] == 404
    assert json.loads(answer["ResponseTemplates"]["application/json"])["code"] == ErrorCode.NOT_FOUND


def test_what_the_gateway_answers_itself_is_a_problem_with_a_known_code(template: dict[str, Any]) -> None:
    answers = template["Resources"]["RestAPI"]["Properties"]["GatewayResponses"]
    assert {"DEFAULT_4XX", "DEFAULT_5XX"} <= answers.keys()
    for answer in answers.values():
        assert answer["ResponseParameters"]["Headers"]["Content-Type"] == "'application/problem+json'"
        text = answer["ResponseTemplates"]["application/json"]
        problem = json.loads(text.replace("$context.error.messageString", '"what it says"'))
        known = document(RelayError(ErrorCode(problem["code"]), problem["detail"]))
        assert {**problem, "status": 0} == {**known, "status": 0}
        assert problem.get("status") == answer.get("StatusCode")


def test_the_gateway_leaves_bytes_alone(template: dict[str, Any]) -> None:
    api = template["Resources"]["RestAPI"]["Properties"]
    assert "MinimumCompressionSize" not in api
    assert api["DefinitionBody"]["x-amazon-apigateway-binary-media-types"]
    assert template["Globals"]["Api"]["OpenApiVersion"] == "2.0"


def test_the_archive_holds_what_runs_and_nothing_that_lambda_has(packaged: Package) -> None:
    with ZipFile(packaged.archive) as archive:
        names = archive.namelist()
        roots = {name.partition("/")[0] for name in names}
    assert {"app.py", "chalicelib", "chalice", "pydantic", "httpx"} <= roots
    assert not roots & {"aws_xray_sdk", "boto3", "botocore", "infra", "tests", "vendor", "requirements.txt"}
    assert not [name for name in names if name.endswith(".pyc") or name.startswith("chalicelib/cli/")]


def test_the_archive_runs_on_lambdas_processors(packaged: Package) -> None:
    with ZipFile(packaged.archive) as archive:
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
        machines = {int.from_bytes(archive.read(name)[18:20], "little") for name in libraries}
    assert machines == {AARCH64}


def test_the_archive_fits_into_lambda(packaged: Package) -> None:
    with ZipFile(packaged.archive) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    assert packaged.archive_bytes < 50 * MEGABYTE
    assert unpacked < 250 * MEGABYTE
