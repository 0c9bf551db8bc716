"""A payload filter: a pattern in the language of EventBridge's event patterns, and what it says of an event.

Grammar and meaning are AWS's as docs/decisions/0015 tells them, with the differences that stand there. No
pattern and no body makes matching slow: both are bounded, and nothing in it goes back over what it has read.
"""

from chalicelib.domain.pattern.grammar import PATTERN_MAX, admitted, compiled, mark, written
from chalicelib.domain.pattern.tree import COMPARED_MAX, VALUES_MAX, Pattern
from chalicelib.domain.pattern.values import members_of

__all__ = [
    "COMPARED_MAX",
    "PATTERN_MAX",
    "VALUES_MAX",
    "Pattern",
    "admitted",
    "compiled",
    "mark",
    "members_of",
    "written",
]
