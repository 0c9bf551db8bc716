"""Endpoints: creating, changing and deleting them, and the reads behind `GET /v1/endpoints`."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from chalicelib.application.auditing import Recorder
from chalicelib.application.authorizing import check_auth
from chalicelib.application.ports import Bell, Bells, Clock, Dice, Endpoints, Page, Unavailable
from chalicelib.application.signing_keys import KEY_BYTES, MadeKey, SigningKeys
from chalicelib.domain import audit, audited, ids, target
from chalicelib.domain.audit import Action, Actor, Difference
from chalicelib.domain.chat import platform
from chalicelib.domain.chat.platform import OFFICIAL, Origins
from chalicelib.domain.cloud import address as cloud
from chalicelib.domain.cloud.address import in_cloud, queue_of
from chalicelib.domain.delivery import Lane
from chalicelib.domain.endpoint import (
    ORDERED_MAX,
    REPLAY_LANE,
    Backlog,
    Endpoint,
    EndpointState,
    Transport,
)
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret
from chalicelib.domain.signing import SignatureForm, SignatureKey
from chalicelib.domain.target import Policy
from chalicelib.domain.tenant import QUOTAS_MAX

AFTER_INGEST_S = 61
_TRIES = 10
LOOKED_AT_MAX = 200
"""A tenant's newest endpoints that a new one is compared with."""
Resumption = tuple[Backlog, int]
"""What becomes of what waited, and from which Unix ms it is resumed (0 unless it is)."""
NewKey = SignatureKey | Secret | None
"""Which kind of signing key is to be made, or the credential of a chat, which its owner brings; or none."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A new endpoint and its signing key, whose secret is shown this once; of a chat its credential.

    A queue or bus of AWS has none. `beside` names the endpoints that lead to the same place.
    """

    endpoint: Endpoint
    key: MadeKey | None
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ManageEndpoints:
    """What an owner does with endpoints."""

    store: Endpoints
    keys: SigningKeys
    clock: Clock
    dice: Dice
    policy: Policy
    bells: Bells
    origins: Origins = OFFICIAL

    def register(
        self,
        draft: Endpoint,
        by: Actor,
        of: NewKey = SignatureKey.HMAC,
        at_most: int = QUOTAS_MAX.endpoints,
    ) -> Registered:
        """Create an endpoint from a draft without id and secret; raises RelayError.

        For a URL that cannot be an endpoint's, a key that signs in no such form, an endpoint above the quota,
        or an ordered one too many.
        """
        now_ms = self.clock.now_ms()
        url = self.checked(draft).url
        key = self._key(draft, of)
        endpoint = replace(
            draft,
            id=ids.new_id("ep", now_ms, self.dice.bits(ids.ENTROPY_BITS)),
            url=url,
            created_ms=now_ms,
            secrets=(key.wrapped,) if key else (),
        )
        beside = self._beside(endpoint)
        shown = Difference({}, audited.endpoint(endpoint))
        record = self._recorder.record(by, Action.ENDPOINT_CREATED, (endpoint.tenant, endpoint.id), shown)
        if not self.store.create(endpoint, record, at_most):
            full = not draft.ordered or self.store.count(draft.tenant) >= at_most
            raise too_many_endpoints(at_most) if full else too_many_ordered()
        return Registered(endpoint, key, beside)

    def _key(self, draft: Endpoint, of: NewKey) -> MadeKey | None:
        if of is None:
            return None
        if isinstance(of, Secret):
            return MadeKey(self.keys.sealed(draft.tenant, of), None)
        check_form(draft.signature, [of], "signature_key")
        return self.keys.make(draft.tenant, of, self.dice.key(KEY_BYTES))

    def _beside(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Name those of a tenant's newest endpoints that lead to where a new one does."""
        if endpoint.transport is Transport.TUNNEL:
            return ()
        newest = self.store.page(endpoint.tenant, "", LOOKED_AT_MAX).items
        return tuple(each.id for each in newest if target.same_place(each.url, endpoint.url))

    def get(self, tenant: str, endpoint_id: str) -> Endpoint:
        """Read an endpoint that is not deleted, or raise RelayError."""
        endpoint = self._read(tenant, endpoint_id)
        if endpoint.state is EndpointState.DELETED:
            raise not_found("endpoint", endpoint_id)
        return endpoint

    def get_to_change(self, tenant: str, endpoint_id: str) -> Endpoint:
        """Read an endpoint in order to change it, or raise RelayError; a deleted one is told as such."""
        endpoint = self._read(tenant, endpoint_id)
        if endpoint.state is EndpointState.DELETED:
            raise RelayError(
                ErrorCode.ENDPOINT_DELETED,
                "This endpoint was deleted; it can no longer be changed.",
                field="id",
                expected="an endpoint that is not deleted",
            )
        return endpoint

    def _read(self, tenant: str, endpoint_id: str) -> Endpoint:
        endpoint = self.store.get(tenant, endpoint_id) if ids.is_id(endpoint_id, "ep") else None
        if endpoint is None:
            raise not_found("endpoint", endpoint_id)
        return endpoint

    def page(self, tenant: str, after: str, limit: int) -> Page[Endpoint]:
        """List a tenant's endpoints, newest first."""
        return self.store.page(tenant, after, limit)

    def checked(self, new: Endpoint) -> Endpoint:
        """Give an endpoint with its URL as it is kept; raises RelayError for one that cannot be.

        Of a chat the policy looks at the URL that its messages will be posted to; what is in AWS is where
        AWS says, and has a role in its account.
        """
        check_auth(new)
        if in_cloud(new.transport):
            arn = cloud.address(new.transport, new.url)
            cloud.check_role(new.role, arn)
            return replace(new, url=arn)
        if new.transport is Transport.TUNNEL:
            return new
        if not platform.is_chat(new.transport):
            return replace(new, url=target.parse_target(new.url, self.policy).url)
        address = platform.address(new.transport, new.url)
        target.parse_target(platform.built_url(new.transport, address, self.origins), self.policy)
        return replace(new, url=address)

    def entrusted(self, chat: Endpoint, credential: Secret) -> Endpoint:
        """Give a chat with another credential in place of the one it has."""
        return replace(chat, secrets=(self.keys.sealed(chat.tenant, credential),))

    def change(self, old: Endpoint, new: Endpoint, by: Actor) -> Endpoint:
        """Write a changed endpoint over the one that was read; raises RelayError if it has moved on."""
        checked = self.checked(new).next_to(old, self.clock.now_ms())
        live = checked.live_secrets(checked.changed_ms // 1000)
        check_form(checked.signature, [each.kind for each in live], "signature")
        if not self.store.replace(old, checked, self._record(by, Action.ENDPOINT_CHANGED, old, checked)):
            raise stale()
        if _opens_up(old, checked):
            self._ring(checked)
        return checked

    def delete(self, old: Endpoint, by: Actor) -> None:
        """Delete an endpoint: from now on nothing is fanned out to it and nothing owed is sent."""
        gone = replace(old, state=EndpointState.DELETED).next_to(old, self.clock.now_ms())
        if not self.store.replace(old, gone, self._record(by, Action.ENDPOINT_DELETED, old, gone)):
            raise stale()
        self.bells.call_ending(old.tenant, old.id)

    def disable(self, tenant: str, endpoint_id: str, by: Actor) -> Endpoint:
        """Disable an endpoint: what it is owed, and will be, waits. One that is disabled stays as it is."""

        def off(endpoint: Endpoint) -> Endpoint | None:
            disabled = endpoint.state is EndpointState.DISABLED
            return None if disabled else endpoint.disabled(self.clock.now_ms())

        return self.switched((tenant, endpoint_id), off, by, Action.ENDPOINT_DISABLED)

    def enable(self, tenant: str, endpoint_id: str, resumption: Resumption, by: Actor) -> Endpoint:
        """Enable a disabled endpoint, what waits for it delivered, skipped, or resumed from a moment.

        What is skipped is never sent from now on, and is dead with reason `skipped`; raises RelayError.
        """
        backlog, from_ms = resumption

        def on(endpoint: Endpoint) -> Endpoint | None:
            if endpoint.state is not EndpointState.DISABLED:
                raise not_disabled()
            now_ms = self.clock.now_ms()
            before_ms = {Backlog.SKIP: now_ms, Backlog.RESUME_FROM: from_ms}.get(backlog, 0)
            return endpoint.enabled(now_ms, before_ms)

        if from_ms > self.clock.now_ms():
            raise not_yet()
        enabled = self.switched((tenant, endpoint_id), on, by, Action.ENDPOINT_ENABLED)
        self._ring(enabled)
        if backlog is not Backlog.DELIVER:
            self.bells.call_ending(tenant, endpoint_id)
        return enabled

    def switched(
        self,
        of: tuple[str, str],
        switch: Callable[[Endpoint], Endpoint | None],
        by: Actor,
        action: Action,
    ) -> Endpoint:
        """Switch an endpoint as it is now to what follows from that; None: it stays as it is."""
        for _ in range(_TRIES):
            old = self.get_to_change(*of)
            new = switch(old)
            if new is None:
                return old
            if self.store.replace(old, new, self._record(by, action, old, new)):
                return new
        raise Unavailable("the endpoint changed too often")

    @property
    def _recorder(self) -> Recorder:
        return Recorder(self.clock, self.dice)

    def _record(self, by: Actor, action: Action, old: Endpoint, new: Endpoint) -> audit.Record:
        change = audited.endpoint_change(old, new)
        return self._recorder.record(by, action, (new.tenant, new.id), change)

    def _ring(self, endpoint: Endpoint) -> None:
        """Ring every lane of an endpoint that may take more than before, or take again.

        And once more when an event must be in that was accepted by somebody who still saw it switched off.
        """
        now_ms = self.clock.now_ms()
        numbers = (*endpoint.lanes_ever, REPLAY_LANE)
        lanes = [Lane(endpoint.tenant, endpoint.id, number) for number in numbers]
        queue = queue_of(endpoint.transport)
        self.bells.ring([Bell(lane, now_ms, queue=queue) for lane in lanes])
        for lane in lanes:
            self.bells.ring_later(lane, AFTER_INGEST_S, queue)


def _opens_up(old: Endpoint, new: Endpoint) -> bool:
    before, after = old.limits, new.limits
    return new.state is EndpointState.ENABLED and (
        old.state is not new.state
        or old.url != new.url
        or after.rate_per_second > before.rate_per_second
        or after.burst > before.burst
        or after.max_concurrency > before.max_concurrency
    )


def check_form(form: SignatureForm, kinds: Collection[SignatureKey], field: str) -> None:
    """Raise RelayError, naming a field, if a key of one of these kinds cannot sign in a form."""
    if form is SignatureForm.RELAY and SignatureKey.ED25519 in kinds:
        raise RelayError(
            ErrorCode.FIELD_INVALID,
            "Ed25519 keys sign in the standard form only.",
            field=field,
            expected="`signature`: `standard`, or no Ed25519 key that still signs",
        )


def not_found(kind: str, name: str) -> RelayError:
    """Make the answer to an id that names nothing of this tenant's."""
    shown = name if name.isascii() and name.isprintable() else "that id"
    return RelayError(ErrorCode.NOT_FOUND, f"There is no {kind} {shown[:100]}.", field="id")


def too_many_endpoints(at_most: int) -> RelayError:
    """Make the answer to one more endpoint than the tenant's quota allows."""
    return RelayError(
        ErrorCode.TOO_MANY_ENDPOINTS,
        f"This tenant has {at_most} endpoints, as many as its quota `endpoints` allows.",
        expected="one of the endpoints deleted first, or a larger quota",
    )


def too_many_ordered() -> RelayError:
    """Make the answer to one more ordered endpoint than a tenant may have."""
    return RelayError(
        ErrorCode.TOO_MANY_ORDERED_ENDPOINTS,
        f"This tenant has {ORDERED_MAX} ordered endpoints already, the most there may be.",
        field="ordering",
        expected="`none`, or one of the ordered endpoints deleted first",
    )


def not_disabled() -> RelayError:
    """Make the answer to enabling an endpoint that is enabled: what waits for it is on its way."""
    return RelayError(
        ErrorCode.ENDPOINT_ENABLED,
        "This endpoint is enabled already; what it is owed is being delivered.",
        field="id",
        expected="an endpoint that is disabled",
    )


def not_yet() -> RelayError:
    """Make the answer to skipping what has not been received yet."""
    return RelayError(
        ErrorCode.FIELD_INVALID,
        "`resume_from` lies in the future: what comes until then cannot be skipped.",
        field="resume_from",
        expected="a time that has passed",
    )


def stale(kind: str = "endpoint") -> RelayError:
    """Make the answer to a change of something that has changed since it was read."""
    return RelayError(
        ErrorCode.VERSION_STALE,
        f"The {kind} has changed since you read it.",
        field="If-Match",
        expected="the ETag of the latest GET",
    )
