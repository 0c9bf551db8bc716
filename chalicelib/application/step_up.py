"""Stepping up: a code of the second factor for an assertion, and an assertion for an elevated action."""

from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.application.auditing import Recorder
from chalicelib.application.authenticate import Caller, unknown_key
from chalicelib.application.ports import Clock, Codes, Dice, Factor, Sealer, SecondFactors
from chalicelib.domain import step_up
from chalicelib.domain.audit import Action, Actor, Difference
from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.errors import ErrorCode, RelayError
from chalicelib.domain.secret import Secret
from chalicelib.domain.step_up import ASSERTION_SECS, Assertion, ElevatedAction

HEADER = "Relay-Step-Up"
_BUSY_S = 1


@dataclass(frozen=True, slots=True)
class SteppedUp:
    """What an admin has shown, and the text that proves it."""

    assertion: Assertion
    text: Secret


@dataclass(frozen=True, slots=True)
class StepUp:
    """What stands between an admin's key and what a stolen one would be used for."""

    store: SecondFactors
    sealer: Sealer
    codes: Codes
    clock: Clock
    dice: Dice

    def prove(self, caller: Caller, code: str, actions: Sequence[ElevatedAction], by: Actor) -> SteppedUp:
        """Give an assertion for a code, which is good once; raises RelayError for any other.

        A try is counted before its code is looked at, and the counting ends with a right one.
        """
        factor = self._factor(caller)
        self._count(caller, factor)
        now_ms = self.clock.now_ms()
        step = self.codes.step_of(code, self._opened(caller, factor.totp), now_ms // 1000)
        change = Difference({}, {"actions": [each.value for each in actions]})
        record = Recorder(self.clock, self.dice).record(
            by, Action.STEPPED_UP, (caller.tenant, caller.key_id), change
        )
        if step is None or not self.store.accept(caller.tenant, caller.key_id, step, record):
            raise code_wrong()
        expires_s = now_ms // 1000 + ASSERTION_SECS
        assertion = Assertion(caller.tenant, caller.key_id, tuple(actions), expires_s)
        return SteppedUp(assertion, Secret(assertion.signed(self._opened(caller, factor.signing))))

    def require(self, caller: Caller, action: ElevatedAction, given: Secret | None) -> None:
        """Raise RelayError unless a fresh assertion of this caller allows an action."""
        if given is None:
            raise required(action)
        signing = self._opened(caller, self._factor(caller).signing)
        assertion = step_up.verified(given.reveal(), signing)
        now_s = self.clock.now_ms() // 1000
        if assertion is None or not assertion.allows(caller.tenant, caller.key_id, action, now_s):
            raise required(action)

    def _factor(self, caller: Caller) -> Factor:
        factor = self.store.get(caller.tenant, caller.key_id)
        if factor is None:
            raise unknown_key()
        return factor

    def _count(self, caller: Caller, factor: Factor) -> None:
        now_ms = self.clock.now_ms()
        locked_ms = factor.tries.locked_until_ms - now_ms
        if locked_ms > 0:
            raise locked(-(-locked_ms // 1000))
        if not self.store.count_try(
            caller.tenant, caller.key_id, factor.tries, factor.tries.one_more(now_ms)
        ):
            raise locked(_BUSY_S)

    def _opened(self, caller: Caller, sealed: WrappedSecret) -> Secret:
        return self.sealer.unseal(caller.tenant, sealed)


def required(action: ElevatedAction) -> RelayError:
    """Make the answer to an elevated action without a fresh assertion for it."""
    return RelayError(
        ErrorCode.STEP_UP_REQUIRED,
        "This needs more than an admin's key: the tenant's second factor, shown in the last five minutes.",
        field=HEADER,
        expected=f'the `assertion` that POST /v1/step-up gives this key for {{"code": "<the six digits>",'
        f' "actions": ["{action.value}"]}}',
    )


def code_wrong() -> RelayError:
    """Make the answer to a code that is wrong, too old or used: which of these, only its owner can tell."""
    return RelayError(
        ErrorCode.STEP_UP_CODE_WRONG,
        "The code is wrong, too old, or was used before.",
        field="code",
        expected="the six digits that the authenticator shows now; each is good once",
    )


def locked(seconds: int) -> RelayError:
    """Make the answer to a code that is not looked at, as there were too many wrong ones."""
    return RelayError(
        ErrorCode.STEP_UP_LOCKED,
        f"This key has sent too many wrong codes, or several at once; the next is taken in {seconds} s.",
        field="code",
        expected="no code until then",
    ).after(seconds)
