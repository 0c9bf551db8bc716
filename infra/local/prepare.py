"""Makes an emulator ready for Relay: infra/resources.yaml, then the development tenant and its key.

`python -m infra.local.prepare`, with the environment of every local process. Doing it again changes nothing.
"""

import importlib
import importlib.util
import os
import sys

from chalicelib.settings import SettingsError
from infra.local.provision import EmulatorUnreachableError, provision

sys.path.insert(0, ".")


def main() -> int:
    """Prepare the emulator at AWS_ENDPOINT_URL."""
    try:
        made = provision(
            endpoint_url=os.environ["AWS_ENDPOINT_URL"], prefix=os.environ["RELAY_RESOURCE_PREFIX"]
        )
    except EmulatorUnreachableError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    names = {
        "RELAY_PAYLOAD_BUCKET": made.bucket,
        "RELAY_AUDIT_BUCKET": made.audit_bucket,
        "RELAY_NOTICES_TOPIC_ARN": made.topic_arn,
    }
    for variable, name in names.items():
        if name != os.environ[variable]:
            sys.stderr.write(f"{variable} is not {name}, which resources.yaml makes.\n")
            return 1
    try:
        _seed()
    except SettingsError as error:
        sys.stderr.write(f"Relay does not start: {error}.\n")
        return 1
    return 0


def _seed() -> None:
    """Let the application make its development tenant and key, if it has any."""
    if importlib.util.find_spec("chalicelib.bootstrap") is not None:
        seed = getattr(importlib.import_module("chalicelib.bootstrap"), "seed_development", None)
        if seed is not None:
            seed()


if __name__ == "__main__":
    sys.exit(main())
