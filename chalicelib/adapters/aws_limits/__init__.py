"""What AWS refuses and emulators let through, refused on this side of the wire.

Registered on a boto3 client in tests, so that a call that only an emulator would accept fails there and
then, with the call, the parameter and the rule named. Nothing here sends a request, and nothing in production
needs it. The rules are AWS's documented quotas and validation; where its documents leave a doubt, the
stricter reading holds: for DelaySeconds=0 on a FIFO queue, DynamoDB's reserved words without quotes in
PartiQL, OR in the condition of a PartiQL write, and characters that SQS may replace instead of refusing.
"""

from chalicelib.adapters.aws_limits.call_counter import CallCounter, count_calls
from chalicelib.adapters.aws_limits.hooks import refuse_what_aws_refuses
from chalicelib.adapters.aws_limits.refusal import AwsWouldRefuse
from chalicelib.adapters.aws_limits.table_keys import KnownTables, TableKeys

__all__ = [
    "AwsWouldRefuse",
    "CallCounter",
    "KnownTables",
    "TableKeys",
    "count_calls",
    "refuse_what_aws_refuses",
]
