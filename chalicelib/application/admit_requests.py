"""Admitting requests: each key makes as many a second as its tenant's quota says, and no more."""

from dataclasses import dataclass

from chalicelib.application.authenticate import Caller
from chalicelib.application.ingest import events_of
from chalicelib.application.limiter import Limiter, Need
from chalicelib.application.ports import Allowance
from chalicelib.domain.errors import ErrorCode, RelayError


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


def too_many_requests(per_second: int, retry_after_s: int) -> RelayError:
    """Make the answer to a request above what its key may make; nothing of it was done."""
    return RelayError(
        ErrorCode.TOO_MANY_REQUESTS,
        f"The quota `requests_per_second` of each key of this tenant is {per_second}.",
        expected=f"the same request again, in {retry_after_s} s",
    ).after(retry_after_s)
