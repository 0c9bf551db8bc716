"""Prints the code of the development tenant's second factor, as an authenticator would show it."""

import pyotp

from chalicelib.domain.step_up import DEVELOPMENT_SECRET


def main() -> None:
    """Print the six digits of this moment."""
    print(pyotp.TOTP(DEVELOPMENT_SECRET).now())


if __name__ == "__main__":
    main()
