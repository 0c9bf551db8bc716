"""What an attempt's result means: one table from status or fault to verdict.

Source: DESIGN §5 (retryable, permanent, breaker evidence, Retry-After).
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from http import HTTPStatus


class Outcome(StrEnum):
    """The class of an attempt's outcome."""

    SUCCESS = "success"
    RETRYABLE = "retryable"
    DEFERRED = "deferred"
    PERMANENT = "permanent"
    UNKNOWN = "unknown"


class Evidence(StrEnum):
    """What an attempt tells the breaker about its endpoint."""

    ALIVE = "alive"
    FAILING = "failing"
    NONE = "none"


class Fault(StrEnum):
    """Why no answer came; stored with the attempt, shown to its owner."""

    CONNECT_FAILED = "connect_failed"
    DNS_FAILED = "dns_failed"
    TLS_FAILED = "tls_failed"
    CERTIFICATE_UNTRUSTED = "certificate_untrusted"
    CERTIFICATE_EXPIRED = "certificate_expired"
    CERTIFICATE_NAME = "certificate_name"
    TIMEOUT = "timeout"
    CONNECT_TIMEOUT = "connect_timeout"
    NO_RESPONSE = "no_response"
    PROTOCOL_ERROR = "protocol_error"
    REFUSED = "refused"
    BAD_URL = "bad_url"
    TOKEN_FAILED = "token_failed"  # noqa: S105 - the word for a fault
    ACCESS_DENIED = "access_denied"


class DeathReason(StrEnum):
    """Why a delivery was given up on."""

    PERMANENT_FAILURE = "permanent_failure"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    EXPIRED = "expired"
    REFUSED = "refused"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    ENDPOINT_DELETED = "endpoint_deleted"
    UNSUBSCRIBED = "unsubscribed"
    SKIPPED = "skipped"
    POISONED = "poisoned"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from one send: a status, or the fault that stood in its way.

    `body` is the start of the response, at most the response cap. Times are milliseconds: resolving and
    connecting, the TLS handshake, from the start to the first byte and to the end. `unsent`: nothing
    of the request has left. `unheard`: nobody was there to be asked, so nothing was tried.
    """

    status: int | None = None
    fault: Fault | None = None
    detail: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    truncated: bool = False
    connect_ms: int = 0
    tls_ms: int = 0
    first_byte_ms: int = 0
    total_ms: int = 0
    unsent: bool = False
    unheard: bool = False

    def header(self, name: str) -> str | None:
        """Give a response header's first value, whatever its case."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from a reply; `retry_after` is how long the endpoint asked to be left alone."""

    outcome: Outcome
    evidence: Evidence
    death: DeathReason | None = None
    retry_after: timedelta | None = None
    holds_endpoint: bool = False
    disables_endpoint: bool = False


BEFORE_SENDING = frozenset(
    {
        Fault.REFUSED,
        Fault.BAD_URL,
        Fault.DNS_FAILED,
        Fault.CONNECT_FAILED,
        Fault.CONNECT_TIMEOUT,
        Fault.TLS_FAILED,
        Fault.CERTIFICATE_UNTRUSTED,
        Fault.CERTIFICATE_EXPIRED,
        Fault.CERTIFICATE_NAME,
        Fault.TOKEN_FAILED,
        Fault.ACCESS_DENIED,
    }
)
"""Faults that stand before anything is sent."""

_ALWAYS_RETRIED = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_MAY_DEFER = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_OK, _REDIRECTION, _SERVER_ERROR, _BEYOND_HTTP = 200, 300, 500, 600
_FATAL = {
    Fault.REFUSED: DeathReason.REFUSED,
    Fault.BAD_URL: DeathReason.REFUSED,
}


def unsendable(size: int, max_bytes: int) -> DeathReason | None:
    """Say why a stored body must not be sent, by its size in bytes: it is over the limit of today."""
    return DeathReason.PAYLOAD_TOO_LARGE if size > max_bytes else None


def judge(reply: Reply, now: datetime) -> Verdict:
    """Decide what a reply means. `now` (aware UTC) is what a Retry-After date is measured from."""
    if reply.status is not None:
        return _judge_status(reply.status, reply.header("retry-after"), now)
    death = _FATAL.get(reply.fault) if reply.fault else None
    if death is not None:
        return Verdict(Outcome.PERMANENT, Evidence.NONE, death=death)
    return Verdict(Outcome.RETRYABLE, Evidence.FAILING)


def _judge_status(status: int, retry_after: str | None, now: datetime) -> Verdict:
    failing = _SERVER_ERROR <= status < _BEYOND_HTTP
    evidence = Evidence.FAILING if failing else Evidence.ALIVE
    if _OK <= status < _REDIRECTION:
        return Verdict(Outcome.SUCCESS, evidence)
    asked = retry_after_of(retry_after, now) if status in _MAY_DEFER and retry_after else None
    if asked is not None:
        holds = status == HTTPStatus.TOO_MANY_REQUESTS
        return Verdict(Outcome.DEFERRED, evidence, retry_after=asked, holds_endpoint=holds)
    if status >= _SERVER_ERROR or status in _ALWAYS_RETRIED:
        return Verdict(Outcome.RETRYABLE, evidence)
    return Verdict(
        Outcome.PERMANENT,
        evidence,
        death=DeathReason.PERMANENT_FAILURE,
        disables_endpoint=status == HTTPStatus.GONE,
    )


_MONTHS = {
    name: number
    for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), start=1)
}
_SECONDS = re.compile(r"0*(?P<digits>[0-9]+)", re.ASCII)
_DIGITS_MAX = 9
_IMF = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?P<d>\d\d) (?P<m>[A-Z][a-z]{2}) (?P<y>\d{4})"
    r" (?P<h>\d\d):(?P<i>\d\d):(?P<s>\d\d)(?: (?:GMT|UTC|[+-]0000))?",
    re.ASCII,
)
_RFC850 = re.compile(
    r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?P<d>\d\d)-(?P<m>[A-Z][a-z]{2})-(?P<y>\d\d)"
    r" (?P<h>\d\d):(?P<i>\d\d):(?P<s>\d\d) GMT",
    re.ASCII,
)
_ASCTIME = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<m>[A-Z][a-z]{2}) (?P<d>[ \d]\d)"
    r" (?P<h>\d\d):(?P<i>\d\d):(?P<s>\d\d) (?P<y>\d{4})",
    re.ASCII,
)
_CENTURY_PIVOT = 50


def retry_after_of(value: str, now: datetime) -> timedelta | None:
    """Read a Retry-After header: seconds or an HTTP date (RFC 9110 §10.2.3), else None.

    A date without a zone is UTC; one in the past is no wait. Never negative.
    """
    text = value.strip(" \t")
    seconds = _SECONDS.fullmatch(text)
    if seconds is not None:
        digits = seconds["digits"]
        return timedelta(seconds=int(digits) if len(digits) <= _DIGITS_MAX else 10**_DIGITS_MAX)
    moment = _http_date(text, now)
    return None if moment is None else max(timedelta(), moment - now)


def _http_date(text: str, now: datetime) -> datetime | None:
    found = _IMF.fullmatch(text) or _RFC850.fullmatch(text) or _ASCTIME.fullmatch(text)
    if found is None or found["m"] not in _MONTHS:
        return None
    year = int(found["y"])
    if len(found["y"]) == 2:  # noqa: PLR2004 - the two digits of an RFC 850 year
        year += now.year - now.year % 100
        year -= 100 if year > now.year + _CENTURY_PIVOT else 0
    try:
        return datetime(
            year,
            _MONTHS[found["m"]],
            int(found["d"]),
            int(found["h"]),
            int(found["i"]),
            int(found["s"]),
            tzinfo=UTC,
        )
    except ValueError:
        return None
