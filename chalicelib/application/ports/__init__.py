"""What the use cases need of the world, as protocols.

An adapter implements each against AWS, a fake in memory; both pass one contract suite. A port
raises `Unavailable` when our own infrastructure fails, never anything of its library's.
"""

from chalicelib.application.ports.accepting import (
    Capture,
    Capturing,
    FanningOut,
    Fanout,
    Idempotency,
    Owing,
    Payloads,
    StoredEvent,
    Subscriber,
)
from chalicelib.application.ports.delivering import (
    Changed,
    Finished,
    Gates,
    Outbox,
    Reread,
    Sealer,
    Sender,
    Watched,
    Watching,
    Work,
)
from chalicelib.application.ports.keeping import ApiKey, Endpoints, Generations, Health, Keys, Page, Reading
from chalicelib.application.ports.ringing import Bell, Bells, Hint, Receipts
from chalicelib.application.ports.world import Clock, Dice, Unavailable

__all__ = [
    "ApiKey",
    "Bell",
    "Bells",
    "Capture",
    "Capturing",
    "Changed",
    "Clock",
    "Dice",
    "Endpoints",
    "FanningOut",
    "Fanout",
    "Finished",
    "Gates",
    "Generations",
    "Health",
    "Hint",
    "Idempotency",
    "Keys",
    "Outbox",
    "Owing",
    "Page",
    "Payloads",
    "Reading",
    "Receipts",
    "Reread",
    "Sealer",
    "Sender",
    "StoredEvent",
    "Subscriber",
    "Unavailable",
    "Watched",
    "Watching",
    "Work",
]
