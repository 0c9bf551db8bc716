"""Every operation of the API, once: from here come /openapi.json, who may ask, and which queries are known.

A new route is a row in the module of its topic; the tests of tests/handlers/test_openapi.py compare the rows
with the routes of app.py, and tests/handlers/relay.py holds each answer to what its row declares.
"""

from collections.abc import Mapping

from chalicelib.wire.operations.audit import AUDIT
from chalicelib.wire.operations.deliveries import DELIVERIES
from chalicelib.wire.operations.endpoints import ENDPOINTS
from chalicelib.wire.operations.events import EVENTS
from chalicelib.wire.operations.operation import PATH, Answer, Bytes, ListOf, Operation, Parameter
from chalicelib.wire.operations.service import SERVICE
from chalicelib.wire.operations.trust import TRUST

__all__ = ["OPERATIONS", "PATH", "Answer", "Bytes", "ListOf", "Operation", "Parameter", "find"]

OPERATIONS = (*EVENTS, *ENDPOINTS, *DELIVERIES, *AUDIT, *TRUST, *SERVICE)
_FOUND: Mapping[tuple[str, str], Operation] = {(each.method, each.path): each for each in OPERATIONS}


def find(method: str, path: str) -> Operation:
    """Give the operation of a route, its path as app.py has it; raises LookupError."""
    try:
        return _FOUND[method, path]
    except KeyError:
        raise LookupError(f"{method} {path} has no row in chalicelib/wire/operations") from None
