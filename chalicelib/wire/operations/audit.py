"""The operations of the audit."""

from chalicelib.domain.api_key import Role
from chalicelib.domain.audit import Action
from chalicelib.domain.errors import ErrorCode
from chalicelib.wire import answers
from chalicelib.wire.operations.operation import PAGED, Answer, ListOf, Operation, Parameter

SUBJECT_MAX = 100
_TIME = {"type": "string", "format": "date-time"}

AUDIT = (
    Operation(
        method="GET",
        path="/v1/audit",
        id="list_audit",
        says="List who changed what of the tenant, newest first.",
        roles=frozenset({Role.OPERATOR, Role.ADMIN}),
        query=(
            *PAGED,
            Parameter(
                "action",
                "Only what was done so; a page may then be short, and `cursor` says whether there is more.",
                {"type": "string", "enum": [*Action]},
            ),
            Parameter(
                "subject",
                "Only what was done to the thing with this id.",
                {"type": "string", "maxLength": SUBJECT_MAX},
            ),
            Parameter("tenant", "Whose, for the operator; also of a tenant that was purged."),
            Parameter("since", "Only what was done then or later.", _TIME),
            Parameter("until", "Only what was done before.", _TIME),
        ),
        answers={200: Answer("A page of records.", ListOf(answers.AuditAnswer))},
        errors=frozenset({ErrorCode.NOT_FOUND}),
    ),
)
