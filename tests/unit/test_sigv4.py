"""Our signature is the one that botocore makes of the same request."""

from datetime import UTC, datetime

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.adapters.sigv4 import Scope, signed

VISIBLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40)
SCOPES = st.sampled_from(
    [Scope("us-east-1", "dynamodb"), Scope("eu-central-1", "sqs"), Scope("us-east-1", "sqs")]
)
MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - the strategy adds the zone


@given(
    target=VISIBLE,
    body=st.binary(max_size=200),
    scope=SCOPES,
    credentials=st.builds(ReadOnlyCredentials, VISIBLE, VISIBLE, st.none() | VISIBLE, st.none()),
    now=MOMENTS,
)
def test_it_is_botocore_s(
    target: str, body: bytes, scope: Scope, credentials: ReadOnlyCredentials, now: datetime
) -> None:
    headers = {"Host": "127.0.0.1:4566", "X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth, "get_current_datetime", lambda: now)
        request = AWSRequest("POST", "http://127.0.0.1:4566/", headers=headers, data=body)
        auth.SigV4Auth(credentials, scope.service, scope.region).add_auth(request)
    assert signed(headers, body, scope, credentials, now) == dict(request.headers.items())
