"""Hanging the rules on a client: one hook per service, run on the finished parameters of every call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.validate import ParamValidator

from chalicelib.adapters.aws_limits import kms, s3, sns, sqs
from chalicelib.adapters.aws_limits.dynamodb import DynamoDbRules
from chalicelib.adapters.aws_limits.emitters import emitter_of
from chalicelib.adapters.aws_limits.model_limits import check_against_model
from chalicelib.adapters.aws_limits.refusal import AwsWouldRefuse, refuse
from chalicelib.adapters.aws_limits.table_keys import KnownTables

if TYPE_CHECKING:
    from collections.abc import Callable

    from botocore.model import OperationModel

    from chalicelib.adapters.aws_limits.emitters import HasEvents
    from chalicelib.adapters.aws_limits.refusal import Params

    Rules = Callable[[str, Params], None]


def refuse_what_aws_refuses(target: HasEvents, tables: KnownTables | None = None) -> None:
    """Make a boto3 client, or all clients a session makes from now on, raise AwsWouldRefuse.

    `tables` carries key schemas from one client to the next; without it a client knows only the tables that
    it created or described itself, and takes `pk` and `sk` for the keys of all others.
    """
    emitter = emitter_of(target)
    known = KnownTables() if tables is None else tables
    for service, rules in _rules(known).items():
        emitter.register_last(f"before-parameter-build.{service}", partial(_look, service, rules))
    emitter.register_last("after-call.dynamodb.CreateTable", known.learn_from_answer)
    emitter.register_last("after-call.dynamodb.DescribeTable", known.learn_from_answer)


def _rules(known: KnownTables) -> dict[str, Rules]:
    return {
        "dynamodb": DynamoDbRules(known).check,
        "kms": kms.check,
        "s3": s3.check,
        "sns": sns.check,
        "sqs": sqs.check,
    }


def _look(service: str, rules: Rules, params: dict[str, Any], model: OperationModel, **_: object) -> None:
    call = f"{service}.{model.name}"
    try:
        _check_shape(params, model)
        check_against_model(params, model)
        rules(model.name, params)
    except AwsWouldRefuse as refusal:
        raise refusal.in_call(call) from None


def _check_shape(params: dict[str, Any], model: OperationModel) -> None:
    """Refuse missing parameters and wrong types, also when the client's own validation is switched off."""
    if model.input_shape is None:
        return
    try:
        report = ParamValidator().validate(params, model.input_shape)
    except RecursionError:
        refuse("parameters", "nested deeper than any call allows")
    if report.has_errors():
        refuse("parameters", report.generate_report())
