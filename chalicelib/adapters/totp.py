"""One-time codes by pyotp: time-based, six digits, a new one every thirty seconds."""

import hmac

import pyotp

from chalicelib.domain.secret import Secret
from chalicelib.domain.step_up import DRIFT_STEPS, STEP_SECS

ISSUER = "Relay"


class PyotpCodes:
    """Knows time-based one-time codes (RFC 6238)."""

    def step_of(self, code: str, secret: Secret, now_s: int) -> int | None:
        """Give the time step that a code is of, at most one away from now; None when it is of none."""
        made = pyotp.TOTP(secret.reveal(), interval=STEP_SECS)
        now = now_s // STEP_SECS
        steps = range(now - DRIFT_STEPS, now + DRIFT_STEPS + 1)
        fitting = [
            step for step in steps if hmac.compare_digest(made.generate_otp(step).encode(), code.encode())
        ]
        return fitting[-1] if fitting else None

    def uri(self, secret: Secret, account: str) -> Secret:
        """Write a secret as an authenticator reads it, as a QR code shows it."""
        made = pyotp.TOTP(secret.reveal(), interval=STEP_SECS)
        return Secret(made.provisioning_uri(name=account, issuer_name=ISSUER))
