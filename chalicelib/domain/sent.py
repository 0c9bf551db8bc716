"""What history keeps of a request: what nothing else can tell once its secret, URL or program has changed.

Everything else of it is made again from its event and its attempt; a custom header's value is never kept.
"""

from dataclasses import dataclass, field

from chalicelib.domain.signing import SignatureForm


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that left, or may have: where to, how signed and when, by what, and custom names.

    `url` is its display form, `signature` the header's whole value, `timestamp` in Unix
    seconds, `custom` the custom headers' names.
    """

    url: str
    form: SignatureForm
    timestamp: int
    signature: str = field(repr=False)
    agent: str
    custom: tuple[str, ...] = ()
