"""The door: what a request for a WebSocket asks for, or why it is turned away. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qs, urlsplit

ID_MAX_BYTES = 256


class Role(StrEnum):
    """Which side of a session a socket is."""

    SERVER = "server"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a socket wants to be; `connection_id` is empty where it named none, and in v1."""

    server_id: str
    role: Role
    version: int
    connection_id: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request gets no WebSocket, as its HTTP answer."""

    status: int
    text: str
    headers: Mapping[str, str] | None = None


NOT_FOUND = Refusal(404, "not found")
NO_TICKET = Refusal(401, "no ticket")
NO_UPGRADE = Refusal(426, "Expected WebSocket upgrade")
DRAINING = Refusal(503, "draining")
NO_CLUSTER = Refusal(503, "cluster")
NO_OWNER = Refusal(503, "owner")
FULL = Refusal(503, "Relay connection capacity")
UNDER_PRESSURE = Refusal(503, "Relay memory pressure")


def path_of(target: str) -> str:
    """Give the path of a request's target; of one that cannot be read, none."""
    try:
        return urlsplit(target).path
    except ValueError:
        return ""


def asked_of(target: str) -> Asked | Refusal:
    """Read the query of a valid upgrade, checked in the order role, serverId, v, connectionId."""
    given = parse_qs(urlsplit(target).query, keep_blank_values=True)
    role, server_id, version, connection_id = (
        given.get(name, [""])[0] for name in ("role", "serverId", "v", "connectionId")
    )
    if role not in tuple(Role):
        return Refusal(400, "Missing or invalid role parameter")
    if not server_id:
        return Refusal(400, "Missing serverId parameter")
    if _size(server_id) > ID_MAX_BYTES:
        return Refusal(400, "serverId is too long")
    version = version.strip() or "1"
    if version not in {"1", "2"}:
        return Refusal(400, "Invalid v parameter (expected 1 or 2)")
    if version == "1":
        return Asked(server_id, Role(role), 1)
    connection_id = connection_id.strip()
    if _size(connection_id) > ID_MAX_BYTES:
        return Refusal(400, "connectionId is too long")
    return Asked(server_id, Role(role), 2, connection_id)


def token_of(authorization: str | None) -> str:
    """Read the token that a listener brings."""
    scheme, _, token = (authorization or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def owned_elsewhere(target: str, header: str) -> Refusal:
    """Send whoever asks to the node that owns the session."""
    return Refusal(409, "", {header: target})


def _size(text: str) -> int:
    return len(text.encode())
