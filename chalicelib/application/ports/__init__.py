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
from chalicelib.application.ports.auditing import Asking, Auditing, ExportingAudit, Exports
from chalicelib.application.ports.counting import Counters
from chalicelib.application.ports.delivering import (
    Certificates,
    Changed,
    Ed25519,
    Finished,
    Gates,
    Note,
    Outbox,
    Reread,
    Sealer,
    Sender,
    Watched,
    Watching,
    Work,
)
from chalicelib.application.ports.ending import Advanced, Endings
from chalicelib.application.ports.keeping import (
    Endpoints,
    Extent,
    Generations,
    GivenUp,
    Health,
    Page,
    Reading,
)
from chalicelib.application.ports.limiting import Allowance, Allowances, Taken, Wish
from chalicelib.application.ports.owning import Elsewhere, Owners
from chalicelib.application.ports.purging import Purging
from chalicelib.application.ports.rebuilding import Rebuilding
from chalicelib.application.ports.replaying import BulkReplaying, Replaying, Walked
from chalicelib.application.ports.retaining import Expired, Letter, Retaining, Shelf, Stand
from chalicelib.application.ports.ringing import Bell, Bells, Hint, Receipts
from chalicelib.application.ports.tracing import Spans
from chalicelib.application.ports.trusting import (
    Codes,
    Credential,
    Factor,
    Keys,
    SecondFactors,
    Tenants,
)
from chalicelib.application.ports.tunnelling import Tickets
from chalicelib.application.ports.world import Clock, Dice, Patience, Unavailable

__all__ = [
    "Advanced",
    "Allowance",
    "Allowances",
    "Asking",
    "Auditing",
    "Bell",
    "Bells",
    "BulkReplaying",
    "Capture",
    "Capturing",
    "Certificates",
    "Changed",
    "Clock",
    "Codes",
    "Counters",
    "Credential",
    "Dice",
    "Ed25519",
    "Elsewhere",
    "Endings",
    "Endpoints",
    "Expired",
    "ExportingAudit",
    "Exports",
    "Extent",
    "Factor",
    "FanningOut",
    "Fanout",
    "Finished",
    "Gates",
    "Generations",
    "GivenUp",
    "Health",
    "Hint",
    "Idempotency",
    "Keys",
    "Letter",
    "Note",
    "Outbox",
    "Owing",
    "Owners",
    "Page",
    "Patience",
    "Payloads",
    "Purging",
    "Reading",
    "Rebuilding",
    "Receipts",
    "Replaying",
    "Reread",
    "Retaining",
    "Sealer",
    "SecondFactors",
    "Sender",
    "Shelf",
    "Spans",
    "Stand",
    "StoredEvent",
    "Subscriber",
    "Taken",
    "Tenants",
    "Tickets",
    "Unavailable",
    "Walked",
    "Watched",
    "Watching",
    "Wish",
    "Work",
]
