"""Rotating an endpoint's signing key: two are live for a while, so that receivers can change over."""

from dataclasses import dataclass, replace

from chalicelib.application.endpoints import ManageEndpoints, check_form, stale
from chalicelib.application.signing_keys import KEY_BYTES, MadeKey
from chalicelib.domain.audit import Action, Actor
from chalicelib.domain.endpoint import Endpoint
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import SignatureKey


@dataclass(frozen=True, slots=True)
class Rotation:
    """What a rotation is to be: for how long both keys sign, of which kind the new one is (None: as before).

    With a `version` it is made only if the endpoint is still that.
    """

    overlap_s: int
    kind: SignatureKey | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Rotated:
    """An endpoint with its new key."""

    endpoint: Endpoint
    key: MadeKey


@dataclass(frozen=True, slots=True)
class RotateKeys:
    """What an owner does with an endpoint's keys; each takes effect with the very next attempt."""

    manage: ManageEndpoints

    def rotate(self, of: tuple[str, str], rotation: Rotation, by: Actor) -> Rotated:
        """Give an endpoint a new signing key, the one it has going on to sign for a while; raises RelayError.

        At most two are live: one that was ending already ends at once.
        """
        manage = self.manage
        tenant, _ = of
        now = manage.get_to_change(*of)
        kind = rotation.kind or now.signature_key
        check_form(now.signature, [kind], "signature_key")
        key = manage.keys.make(tenant, kind, manage.dice.key(KEY_BYTES))

        def turned(endpoint: Endpoint) -> Endpoint:
            _check_version(endpoint, rotation.version)
            check_form(endpoint.signature, [kind], "signature_key")
            return endpoint.rotated(key.wrapped, manage.clock.now_ms(), rotation.overlap_s)

        return Rotated(manage.switched(of, turned, by, Action.SECRET_ROTATED), key)

    def replace(self, of: tuple[str, str], credential: Secret, version: int | None, by: Actor) -> Rotated:
        """Give a chat another credential; the one it has is forgotten at once. Raises RelayError."""
        manage = self.manage
        sealed = manage.keys.sealed(of[0], credential)

        def turned(endpoint: Endpoint) -> Endpoint:
            _check_version(endpoint, version)
            return replace(endpoint, secrets=(sealed,)).next_to(endpoint, manage.clock.now_ms())

        return Rotated(manage.switched(of, turned, by, Action.SECRET_ROTATED), MadeKey(sealed, None))

    def end_overlap(self, of: tuple[str, str], within_s: int, version: int | None, by: Actor) -> Endpoint:
        """Let the previous key sign no longer than so many seconds from now; never longer than it would."""

        def ended(endpoint: Endpoint) -> Endpoint | None:
            _check_version(endpoint, version)
            return endpoint.overlap_ended(self.manage.clock.now_ms(), within_s)

        return self.manage.switched(of, ended, by, Action.OVERLAP_ENDED)


def _check_version(endpoint: Endpoint, version: int | None) -> None:
    if version is not None and version != endpoint.version:
        raise stale()
