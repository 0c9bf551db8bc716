"""A webhook receiver that misbehaves on demand, and the witness of what arrived.

Run it with ``python -m tests.receiver`` or inside a test with ``with Receiver() as receiver:``. It imports
nothing of the product: what it says about a signature is a second opinion.
"""

from tests.receiver.server import Receiver

__all__ = ["Receiver"]
