"""The network of the sending functions: what it has a way to, and that nothing else has."""

import copy
import json
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import egress
from infra.functions import FUNCTIONS
from infra.template import NETWORK, read
from tests.infra.lookup import FUNCTION, ROLE, of_type

FUNCTIONS_LIVE_IN = [{"Ref": "EgressSubnetA"}, {"Ref": "EgressSubnetB"}]
ROUTES = {"EgressSubnetA": "EgressRoutesA", "EgressSubnetB": "EgressRoutesB"}
SENDING = {function.logical_id for function in FUNCTIONS if function.sends}
ANYWHERE = "0.0.0.0/0"
INTERFACES = "EgressInterfacesPolicy"


@pytest.fixture(scope="module")
def network() -> dict[str, Any]:
    return read(NETWORK)


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(egress.RECORD.read_text(encoding="utf-8"))
    return loaded


def test_exactly_the_functions_that_send_live_in_the_network(template: dict[str, Any]) -> None:
    placed = {name for name, about in of_type(template, FUNCTION).items() if "VpcConfig" in about}
    assert placed == SENDING != set()
    for name in placed:
        condition, where, otherwise = of_type(template, FUNCTION)[name]["VpcConfig"]["Fn::If"]
        assert (condition, otherwise) == ("InNetwork", {"Ref": "AWS::NoValue"})
        assert where == {
            "SecurityGroupIds": [{"Ref": "EgressSecurityGroup"}],
            "SubnetIds": FUNCTIONS_LIVE_IN,
        }


def test_the_network_stands_on_aws_unless_it_is_switched_off(template: dict[str, Any]) -> None:
    assert template["Conditions"]["InNetwork"] == {
        "Fn::And": [{"Condition": "OnAws"}, {"Fn::Equals": [{"Ref": "EgressNetwork"}, "on"]}]
    }
    assert template["Parameters"]["EgressNetwork"]["Default"] == "on"
    made = {name: about for name, about in template["Resources"].items() if name.startswith("Egress")}
    assert {about["Condition"] for about in made.values()} == {"InNetwork"}


def test_the_functions_subnets_have_a_way_out_through_a_nat_and_to_two_services_and_no_other(
    template: dict[str, Any],
) -> None:
    associations = of_type(template, "AWS::EC2::SubnetRouteTableAssociation").values()
    tables = {each["SubnetId"]["Ref"]: each["RouteTableId"]["Ref"] for each in associations}
    assert {subnet: tables[subnet] for subnet in ROUTES} == ROUTES
    routes = of_type(template, "AWS::EC2::Route").values()
    for table in ROUTES.values():
        (only,) = [each for each in routes if each["RouteTableId"] == {"Ref": table}]
        assert only["DestinationCidrBlock"] == ANYWHERE
        assert only["NatGatewayId"]["Ref"] in of_type(template, "AWS::EC2::NatGateway")
        assert only.keys() == {"RouteTableId", "DestinationCidrBlock", "NatGatewayId"}
    services = of_type(template, "AWS::EC2::VPCEndpoint").values()
    assert sorted(each["ServiceName"]["Fn::Sub"].rpartition(".")[2] for each in services) == [
        "dynamodb",
        "s3",
    ]
    for each in services:
        assert each["VpcEndpointType"] == "Gateway"
        assert [ref["Ref"] for ref in each["RouteTableIds"]] == list(ROUTES.values())


def test_the_gateways_lead_to_relays_own_tables_and_payloads_alone(template: dict[str, Any]) -> None:
    for each in of_type(template, "AWS::EC2::VPCEndpoint").values():
        for statement in each["PolicyDocument"]["Statement"]:
            assert "*" not in statement["Resource"]
            for one in map(json.dumps, statement["Resource"]):
                assert "${Prefix}" in one or "PayloadsBucket" in one


def test_nothing_else_leads_out_or_in(template: dict[str, Any]) -> None:
    kinds = {about["Type"] for about in template["Resources"].values()}
    ways = {"AWS::EC2::VPCPeeringConnection", "AWS::EC2::TransitGatewayAttachment", "AWS::EC2::VPNGateway"}
    assert not kinds & {*ways, "AWS::EC2::EgressOnlyInternetGateway", "AWS::EC2::Instance"}
    (group,) = of_type(template, "AWS::EC2::SecurityGroup").values()
    assert group["SecurityGroupIngress"] == []
    (out,) = group["SecurityGroupEgress"]
    assert (out["IpProtocol"], out["FromPort"], out["ToPort"], out["CidrIp"]) == ("tcp", 443, 443, ANYWHERE)
    for subnet in of_type(template, "AWS::EC2::Subnet").values():
        assert subnet["MapPublicIpOnLaunch"] is False


def test_addresses_that_are_not_public_are_shut_before_what_is_open(template: dict[str, Any]) -> None:
    entries = of_type(template, "AWS::EC2::NetworkAclEntry").values()
    out = [each for each in entries if each["Egress"]]
    refused = {each["CidrBlock"]: each["RuleNumber"] for each in out if each["RuleAction"] == "deny"}
    assert refused.keys() == {
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
    }
    (opened,) = [each for each in out if each["RuleAction"] == "allow"]
    assert opened["RuleNumber"] > max(refused.values())
    assert (opened["PortRange"], opened["CidrBlock"]) == ({"From": 443, "To": 443}, ANYWHERE)
    guarded = of_type(template, "AWS::EC2::SubnetNetworkAclAssociation").values()
    assert [each["SubnetId"] for each in guarded] == FUNCTIONS_LIVE_IN


def test_only_lambda_may_touch_the_functions_interfaces(template: dict[str, Any]) -> None:
    roles = of_type(template, ROLE)
    given = {name for name, about in roles.items() if INTERFACES in json.dumps(about["ManagedPolicyArns"])}
    assert given == {function.role_id for function in FUNCTIONS if function.sends}
    policy = of_type(template, "AWS::IAM::ManagedPolicy")[INTERFACES]
    allowed, denied = policy["PolicyDocument"]["Statement"]
    assert (allowed["Effect"], denied["Effect"]) == ("Allow", "Deny")
    assert allowed["Action"] == denied["Action"]
    assert list(denied["Condition"]["ArnLike"]) == ["lambda:SourceFunctionArn"]


def test_every_range_is_a_28_and_no_two_overlap(network: dict[str, Any]) -> None:
    ranges = [
        ip_network(each) for pair in network["Metadata"]["EgressRanges"].values() for each in pair.values()
    ]
    assert {each.prefixlen for each in ranges} == {28}
    assert not [(one, two) for one in ranges for two in ranges if one is not two and one.overlaps(two)]


def test_the_ranges_that_are_deployed_are_the_announced_ones(
    network: dict[str, Any], record: dict[str, Any]
) -> None:
    assert list(egress.faults(network, record)) == []


def with_a_change(record: dict[str, Any], **fields: object) -> dict[str, Any]:
    """Give the record with a second version, announced in good time unless a field says otherwise."""
    changed = copy.deepcopy(record)
    ranges = {"us-east-1": {"active": "192.0.2.0/28", "standby": "203.0.113.16/28"}}
    second = {"version": 2, "announced_on": "2027-01-01", "effective_on": "2027-06-01", "ranges": ranges}
    changed["versions"].append(second | fields)
    return changed


def edited(tmp_path: Path, network: dict[str, Any]) -> Path:
    """Write a copy of the template in which one range has moved."""
    changed = copy.deepcopy(network)
    changed["Metadata"]["EgressRanges"] = {
        "us-east-1": {"Active": "192.0.2.0/28", "Standby": "203.0.113.16/28"}
    }
    path = tmp_path / "network.yaml"
    path.write_text(yaml.safe_dump(changed), encoding="utf-8")
    return path


def written(tmp_path: Path, record: dict[str, Any]) -> Path:
    path = tmp_path / "egress_ranges.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


def test_a_range_that_moves_without_a_record_fails(
    tmp_path: Path, network: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert egress.main(edited(tmp_path, network)) == 1
    assert "add version 2, announced 90 days before" in capsys.readouterr().out


def test_a_range_that_moves_with_a_record_in_good_time_passes(
    tmp_path: Path, network: dict[str, Any], record: dict[str, Any]
) -> None:
    assert egress.main(edited(tmp_path, network), written(tmp_path, with_a_change(record))) == 0


def bad_records() -> Iterator[tuple[dict[str, object], str]]:
    yield {"effective_on": "2027-03-31"}, "takes effect 89 days after"
    yield {"version": 3}, "not numbered"
    yield {"announced_on": "2026-01-01"}, "announced before version 1"


@pytest.mark.parametrize("fields, words", list(bad_records()))
def test_a_record_that_gives_receivers_no_time_fails(
    tmp_path: Path, network: dict[str, Any], record: dict[str, Any], fields: dict[str, object], words: str
) -> None:
    told = list(egress.faults(read(edited(tmp_path, network)), with_a_change(record, **fields)))
    assert [words in each for each in told] == [True]
