"""The table of routes: what a path means and how it is written. `GET /` shows this table."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.receiver import behaviours, control, platforms
from tests.receiver.answer import Answer, plain
from tests.receiver.behaviours import Behaviour
from tests.receiver.control import Control
from tests.receiver.request import Request, Target
from tests.receiver.site import Site


@dataclass(frozen=True, slots=True)
class Delivery:
    """A route that is delivered to: logged, and its signature judged unless `verify` is false."""

    usage: str
    behave: Behaviour
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Command:
    """A route that steers the receiver: not logged."""

    usage: str
    obey: Control


def _index(_site: Site, _request: Request) -> Answer:
    """List the routes."""
    return plain(200, index())


DELIVERIES: Mapping[str, Delivery] = {
    "verify": Delivery("/verify[/<endpoint>]", behaviours.verify),
    "sink": Delivery("/sink", behaviours.sink, verify=False),
    "always500": Delivery("/always500", behaviours.always500),
    "slow": Delivery("/slow?ms=1000", behaviours.slow),
    "hang": Delivery("/hang", behaviours.hang),
    "flaky": Delivery("/flaky?pct=50[&seed=]", behaviours.flaky),
    "429": Delivery("/429?retry_after=<verbatim> or ?retry_after_date=<s from now>", behaviours.too_many),
    "bigbody": Delivery("/bigbody?kb=8192[&mode=length|chunked]", behaviours.bigbody),
    "trickle": Delivery("/trickle?ms=100[&in=body|headers|status]", behaviours.trickle),
    "toggle": Delivery("/toggle[/<key>]", behaviours.toggle),
    "status": Delivery("/status/<100-999>[?body=&location=&retry_after=]", behaviours.status),
    "redirect": Delivery("/redirect?to=<url>[&code=307]", behaviours.redirect),
    "gone": Delivery("/gone", behaviours.gone),
    "rst": Delivery("/rst", behaviours.rst),
    "close": Delivery("/close", behaviours.close),
    "cut": Delivery("/cut[?mode=length|chunked]", behaviours.cut),
    "raw": Delivery("/raw?b64=<bytes>[&then=close|stay]", behaviours.raw),
    "stale": Delivery("/stale?ms=50", behaviours.stale),
    "script": Delivery("/script/<key>", behaviours.script),
    "telegram": Delivery("/telegram/bot<token>/sendMessage", platforms.telegram, verify=False),
    "discord": Delivery("/discord/api/v10/webhooks/<webhook>/<token>", platforms.discord, verify=False),
    "slack": Delivery("/slack/services/<workspace>/<webhook>/<secret>", platforms.slack, verify=False),
}
COMMANDS: Mapping[str, Command] = {
    "": Command("GET /", _index),
    "secret": Command('POST /secret {"secret": "whsec_...", "endpoint"?: key}; GET; DELETE', control.secret),
    "received": Command(
        "GET /received[?path=&delivery_id=&event_id=&verified=&outcome=&after=&limit=&brief=1&count=1]",
        control.received,
    ),
    "stats": Command("GET /stats", control.stats),
    "reset": Command("POST /reset[?keep=secrets]", control.reset),
}
SWITCH = Command("POST /toggle[/<key>]?to=up|down|flip|<status>", control.toggle)
WRITE_SCRIPT = Command(
    'POST /script {"key": "a", "answers": [{"status": 500}, {"status": 200}]}', control.script
)


def find(target: Target) -> Delivery | Command | None:
    """Say what a target means, None when it means nothing."""
    family = target.family
    if family == "toggle" and "to" in target.query:
        return SWITCH
    if family == "script" and not target.rest:
        return WRITE_SCRIPT
    return DELIVERIES.get(family) or COMMANDS.get(family)


def index() -> str:
    """Give the list of routes as text."""
    steer = [*COMMANDS.values(), SWITCH, WRITE_SCRIPT]
    lines = ["Deliveries, by any method; a free suffix (/sink/a) counts apart:"]
    lines += [f"  {route.usage:<72} {_promise(route.behave)}" for route in DELIVERIES.values()]
    lines += ["The receiver itself:"]
    lines += [f"  {route.usage}\n      {_promise(route.obey)}" for route in steer]
    return "\n".join(lines)


def _promise(function: Behaviour | Control) -> str:
    return (function.__doc__ or "").partition("\n")[0]
