"""Secrets wrapped by KMS, bound to their tenant; unwrapped ones are remembered for minutes only."""

import time
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.application.ports import Unavailable
from chalicelib.domain.endpoint import WrappedSecret
from chalicelib.domain.secret import Secret

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient

CACHE_SECONDS = 300
CACHE_MAX = 10_000


class KmsSealer:
    """Wraps and unwraps secrets under one key."""

    def __init__(self, client: "KMSClient", key_id: str) -> None:
        """Use a client and a key's alias."""
        self._client = client
        self._key_id = key_id
        self._open: dict[tuple[str, bytes], tuple[float, Secret | None]] = {}

    def seal(self, tenant: str, secret: Secret) -> bytes:
        """Encrypt a secret for storing."""
        try:
            answer = self._client.encrypt(
                KeyId=self._key_id,
                Plaintext=secret.reveal().encode(),
                EncryptionContext={"tenant": tenant},
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the key service failed") from error
        return answer["CiphertextBlob"]

    def unseal(self, tenant: str, secret: WrappedSecret) -> Secret:
        """Decrypt a stored secret, through a short-lived cache."""
        now = time.monotonic()
        sealed = (tenant, secret.ciphertext)
        until, known = self._open.get(sealed, (0.0, None))
        if known is not None and until > now:
            return known
        try:
            answer = self._client.decrypt(
                CiphertextBlob=secret.ciphertext, EncryptionContext={"tenant": tenant}
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("the key service failed") from error
        opened = Secret(answer["Plaintext"].decode())
        if len(self._open) >= CACHE_MAX:
            self._open.clear()
        self._open[sealed] = (now + CACHE_SECONDS, opened)
        return opened
