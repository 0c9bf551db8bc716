"""What every HTTP route shares: who asks, what was asked, and how answers and errors are written.

The one border where an unforeseen exception is caught.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalice.app import Chalice, Request, Response

from chalicelib import bootstrap
from chalicelib.application import tenants
from chalicelib.application.authenticate import Caller
from chalicelib.application.endpoints import stale
from chalicelib.application.ports import Extent, Unavailable
from chalicelib.application.step_up import HEADER
from chalicelib.domain.audit import Actor, ActorKind
from chalicelib.domain.delivery import Status
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret
from chalicelib.domain.step_up import ElevatedAction
from chalicelib.handlers import counted, problems
from chalicelib.wire import bodies, cursor, operations, parsing
from chalicelib.wire.cursor import LIST_DEFAULT, LIST_MAX
from chalicelib.wire.operations import Operation

JSON = "application/json"
_UNAVAILABLE = RelayError(
    ErrorCode.UNAVAILABLE, "Relay could not do this just now; nothing was lost. Try again."
)
_INTERNAL = RelayError(
    ErrorCode.INTERNAL_ERROR,
    "Relay failed at this request in a way that nobody foresaw; its operator finds the reason in the log.",
)
_ONCE = ("Authorization", "Content-Type", "Idempotency-Key", "If-Match", "Relay-Event-Type", HEADER)
_STEP_UP = HEADER.lower()
_POSTS_ONE = "post_event"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the caller, the body's exact bytes, headers in lower case, the query, whence it came.

    The headers are without credentials: of those, `proof` is what allows an elevated action.
    """

    caller: Caller
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str]
    address: str = ""
    proof: Secret | None = None

    @property
    def actor(self) -> Actor:
        """Say whose hand this is, for the audit."""
        kind = ActorKind.OPERATOR if self.caller.is_operator else ActorKind.KEY
        return Actor(kind, self.caller.key_id, self.address)

    def elevated(self, action: ElevatedAction) -> None:
        """Raise RelayError unless a fresh assertion for an action comes with the request."""
        bootstrap.step_up().require(self.caller, action, self.proof)

    def has_nothing_to_say(self) -> None:
        """Raise RelayError unless the body is left out, or an empty object."""
        if self.body:
            parsing.parse(bodies.EmptyBody, self.body)

    def as_read(self, version: int, kind: str) -> None:
        """Raise RelayError unless the request names the version that it changes."""
        given = self.headers.get("if-match")
        if given is None:
            raise RelayError(
                ErrorCode.IF_MATCH_REQUIRED,
                "A change has to say which version it is of.",
                field="If-Match",
                expected="the ETag of the latest GET",
            )
        if given.strip() != etag(version)["ETag"]:
            raise stale(kind)

    def page(
        self, listing: str, prefix: str = "", is_place: Callable[[str], bool] | None = None
    ) -> tuple[str, int]:
        """Read after which id a list continues and how long its page may be; raises RelayError.

        A list that goes by something else than ids says what is a place in it.
        """
        text = self.query.get("limit", str(LIST_DEFAULT))
        limit = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(LIST_MAX)) else 0
        if not 1 <= limit <= LIST_MAX:
            raise RelayError(
                ErrorCode.FIELD_INVALID, "The limit is not valid.", field="limit", expected=f"1 to {LIST_MAX}"
            )
        given = self.query.get("cursor")
        if is_place is not None:
            return cursor.load_place((self.caller.tenant, listing), is_place, given), limit
        return cursor.load((self.caller.tenant, listing), prefix, given), limit

    def cursor(self, listing: str, after: str) -> str | None:
        """Write the cursor that continues a list after a place; None at its end."""
        return cursor.dump(self.caller.tenant, listing, after)

    def listed(self, items: Sequence[Mapping[str, object]], listing: str, after: str) -> Response:
        """Answer with a page of a list and the cursor that continues it."""
        return reply({"items": items, "cursor": self.cursor(listing, after)})

    def extent(
        self, listing: str, prefix: str = "", is_place: Callable[[str], bool] | None = None
    ) -> tuple[str, Extent]:
        """Read which part of a list is asked for, of which time; the list's name says the time too."""
        since_ms, until_ms = parsing.times(self.query.get("since"), self.query.get("until"))
        named = f"{listing} from {since_ms} to {until_ms}"
        return named, Extent(*self.page(named, prefix, is_place), since_ms, until_ms)

    def status(self) -> Status | None:
        """Read which status deliveries are asked for by; raises RelayError naming the four."""
        text = self.query.get("status")
        if text is None:
            return None
        try:
            return Status(text)
        except ValueError:
            raise RelayError(
                ErrorCode.FIELD_INVALID,
                "There is no such status.",
                field="status",
                expected=f"one of: {', '.join(Status)}",
            ) from None


def etag(version: int) -> dict[str, str]:
    """Write the header that says which version of a thing is shown."""
    return {"ETag": f'"{version}"'}


View = Callable[..., Response]


def answer(app: Chalice, view: View, **path: str) -> Response:
    """Answer a request that counts nothing itself; what an earlier one left to count is stored."""
    response = answered(app, view, **path)
    counted.flush_waiting()
    return response


def answered(app: Chalice, view: View, **path: str) -> Response:
    """Authenticate, call a view with what was asked, and turn errors into problem documents.

    Who may ask, and with which query, is the operation's row in wire/operations.
    """
    return guarded(app, lambda: view(_asked(app.current_request), **path))


def guarded(app: Chalice, view: Callable[[], Response]) -> Response:
    """Call a view that may be asked by anyone, and turn errors into problem documents."""
    try:
        return view()
    except RelayError as error:
        return problem(error)
    except Unavailable as error:
        bootstrap.log().exception("request.unavailable", exc_info=error, extra=_named(app.current_request))
        return problem(_UNAVAILABLE)
    except Exception as error:  # noqa: BLE001 - the handler's border
        bootstrap.log().exception("request.failed", exc_info=error, extra=_named(app.current_request))
        return problem(_INTERNAL)


def problem(error: RelayError) -> Response:
    """Answer with an error, and when to ask again if that cures it."""
    status = problems.status_of(error.code).value
    later = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else None
    return _response(problems.text(error), status, problems.CONTENT_TYPE, later)


def reply(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with JSON."""
    return _response(json.dumps(body), status, JSON, headers)


def exact(
    body: str | bytes, content_type: str, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with exactly these bytes."""
    return _response(body, status, content_type, headers)


def _response(
    body: str | bytes, status: int, content_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    content = body.encode() if isinstance(body, str) else body
    return Response(content, {"Content-Type": content_type, **(headers or {})}, status)


def _named(request: Request | None) -> dict[str, Any]:
    """Name a request in the log: what its caller was told, and the route without its ids."""
    if request is None:
        return {}
    return {
        "request_id": request.context.get("requestId"),
        "method": request.method,
        "route": request.path,
    }


def _asked(request: Request | None) -> Asked:
    if request is None:
        raise RuntimeError("no request is being answered")
    headers = _headers(request)
    query: Mapping[str, str] = request.query_params or {}
    operation = operations.find(request.method, request.path)
    caller = bootstrap.authenticate().caller(_taken(headers, "authorization"))
    bootstrap.admit_requests().admit(caller, events=int(operation.id == _POSTS_ONE))
    if not (operation.keyless_too and caller.is_anyone):
        caller.must_be(*operation.roles or ())
    _only_known(query, operation)
    if operation.method != "GET":
        tenants.must_stay(caller.account)
    address = str((request.context.get("identity") or {}).get("sourceIp") or "")
    proof = _taken(headers, _STEP_UP)
    return Asked(caller, _body(request), headers, query, address, proof)


def _taken(headers: dict[str, str], name: str) -> Secret | None:
    """Take a credential out of the headers, so that whatever shows those shows it not."""
    given = headers.pop(name, None)
    return None if given is None else Secret(given)


def _only_known(query: Mapping[str, str], operation: Operation) -> None:
    known = [each.name for each in operation.query]
    for name in query:
        if name not in known:
            raise RelayError(
                ErrorCode.FIELD_UNKNOWN,
                f"Unknown query parameter: {name[:100]}.",
                field=name[:100],
                expected="any of: " + (", ".join(known) or "none"),
            )


def _headers(request: Request) -> dict[str, str]:
    """Give the headers by lower-case name; two that could be read as either are refused."""
    given: dict[str, list[str]] = {}
    for name, values in request.to_original_event()["multiValueHeaders"].items():
        given.setdefault(name.lower(), []).extend(values)
    for name in _ONCE:
        if len(given.get(name.lower(), ())) > 1:
            raise RelayError(
                ErrorCode.FIELD_INVALID,
                f"The header {name} is there more than once.",
                field=name,
                expected="the header once",
            )
    return {name: values[-1] for name, values in given.items()}


def _body(request: Request) -> bytes:
    raw = request.raw_body
    return raw.encode("utf-8") if isinstance(raw, str) else raw
