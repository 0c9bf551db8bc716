"""Admitting requests: each key makes as many a second as its tenant's quota says, and no more."""

from dataclasses import dataclass

from chalicelib.application.authenticate import Caller
from chalicelib.application.ingest import events_of
from chalicelib.application.limiter import Limiter, Need
from chalicelib.application.ports import Allowance
from chalicelib.domain.allowance import UNCOUNTED
from chalicelib.domain.errors import ErrorCode, RelayError

TESTS_PER_SECOND = 5
"""Of a tenant: each may hold a function for as long as its endpoint takes to answer, 15 s at most."""


@dataclass(frozen=True, slots=True)
class AdmitRequests:
    """Counts requests a key; the operator's are not counted."""

    limiter: Limiter

    def admit(self, caller: Caller, events: int = 0) -> None:
        """Let a request in, or raise RelayError; events it will post are asked for in the same call."""
        if caller.is_operator:
            return
        quotas = caller.account.quotas
        need = Need(Allowance(caller.tenant, f"key-{caller.key_id}"), quotas.requests_per_second)
        ahead = [events_of(caller.tenant, quotas, events)] if events else []
        granted = self.limiter.take(need, ahead)
        if not granted.count:
            raise too_many_requests(need.per_second, granted.retry_after_s)

    def admit_test(self, caller: Caller) -> None:
        """Let a test of an endpoint in, or raise RelayError; a tenant without limits has none here either."""
        of_each_key = caller.account.quotas.requests_per_second
        if of_each_key >= UNCOUNTED:
            return
        per_second = min(TESTS_PER_SECOND, of_each_key)
        granted = self.limiter.take(Need(Allowance(caller.tenant, "tests"), per_second))
        if not granted.count:
            raise too_many_tests(per_second, granted.retry_after_s)


def too_many_requests(per_second: int, retry_after_s: int) -> RelayError:
    """Make the answer to a request above what its key may make; nothing of it was done."""
    return RelayError(
        ErrorCode.TOO_MANY_REQUESTS,
        f"The quota `requests_per_second` of each key of this tenant is {per_second}.",
        expected=f"the same request again, in {retry_after_s} s",
    ).after(retry_after_s)


def too_many_tests(per_second: int, retry_after_s: int) -> RelayError:
    """Make the answer to one more test than a tenant may send; nothing was sent."""
    return RelayError(
        ErrorCode.TOO_MANY_REQUESTS,
        f"A tenant sends at most {per_second} tests a second.",
        expected=f"the same request again, in {retry_after_s} s",
    ).after(retry_after_s)
