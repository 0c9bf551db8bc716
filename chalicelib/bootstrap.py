"""Puts the parts together: settings to adapters to use cases, each made once per process.

Each part is imported where it is made, so that a function loads only what it needs.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from chalicelib import settings as configuration
from chalicelib.settings import SETTLE_MARGIN_SECS, START_MARGIN_SECS, Settings

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

    from chalicelib.adapters.aws_json import JsonService
    from chalicelib.adapters.clock import SystemClock, SystemDice
    from chalicelib.adapters.cloud import CloudSender
    from chalicelib.adapters.dynamodb.auditing import DynamoAuditing
    from chalicelib.adapters.dynamodb.bulk_replays import DynamoBulkReplays
    from chalicelib.adapters.dynamodb.capturing import DynamoCapturing
    from chalicelib.adapters.dynamodb.endpoints import DynamoEndpoints
    from chalicelib.adapters.dynamodb.noticing import DynamoNoticing
    from chalicelib.adapters.dynamodb.purging import DynamoPurging
    from chalicelib.adapters.dynamodb.tables import DynamoTables
    from chalicelib.adapters.dynamodb.trusting import DynamoKeys, DynamoTenants
    from chalicelib.adapters.dynamodb.work import DynamoGates, DynamoWork
    from chalicelib.adapters.http.sender import GuardedSender
    from chalicelib.adapters.kms import KmsSealer
    from chalicelib.adapters.s3 import S3Payloads
    from chalicelib.adapters.sqs import Queues, SqsBells, SqsReceipts
    from chalicelib.adapters.totp import PyotpCodes
    from chalicelib.application.admit_requests import AdmitRequests
    from chalicelib.application.api_keys import ManageKeys
    from chalicelib.application.authenticate import Authenticate, KnownKeys
    from chalicelib.application.authorizing import Authorize
    from chalicelib.application.bulk_replay import OrderReplays, ReplayMany
    from chalicelib.application.deliver import Deliver
    from chalicelib.application.end_owed import EndOwed
    from chalicelib.application.endpoints import ManageEndpoints
    from chalicelib.application.export_audit import ExportAudit
    from chalicelib.application.fan_out import FanOutLater
    from chalicelib.application.ingest import Ingest
    from chalicelib.application.inspect import Inspect
    from chalicelib.application.limiter import Limiter
    from chalicelib.application.measure_backlog import MeasureBacklog
    from chalicelib.application.notify import Notify
    from chalicelib.application.pacing import Pacing
    from chalicelib.application.ports import Sender
    from chalicelib.application.purge import OrderPurges, PurgeAll
    from chalicelib.application.questions import Questions
    from chalicelib.application.rebuild import Rebuild
    from chalicelib.application.reconcile import Reconcile
    from chalicelib.application.replay import Replay
    from chalicelib.application.retention import Retention
    from chalicelib.application.rotate import RotateKeys
    from chalicelib.application.showing import Showing
    from chalicelib.application.signing_keys import SigningKeys
    from chalicelib.application.step_up import StepUp
    from chalicelib.application.tenants import ManageTenants
    from chalicelib.application.try_endpoint import TryEndpoint
    from chalicelib.domain.api_key import ApiKey
    from chalicelib.domain.chat.platform import Origins
    from chalicelib.domain.gate import Rules
    from chalicelib.domain.target import Policy
    from chalicelib.domain.tenant import Tenant


# More than the clocks of two machines differ by.
PURGE_MARGIN_MS = 10_000
# What is published twice is read twice: the next run tries again.
_TRIED_ONCE = frozenset({"sns"})


@cache
def settings() -> Settings:
    """Read the settings; raises SettingsError."""
    return configuration.load()


@cache
def log() -> "Logger":
    """Give the logger."""
    from chalicelib import telemetry

    return telemetry.logger(settings().log_level)


@cache
def clock() -> "SystemClock":
    """Give the machine's clock."""
    from chalicelib.adapters.clock import SystemClock

    return SystemClock()


@cache
def dice() -> "SystemDice":
    """Give the machine's randomness."""
    from chalicelib.adapters.clock import SystemDice

    return SystemDice()


@cache
def client(service: str) -> Any:  # noqa: ANN401 - boto3's clients have no common type
    """Make the one client of an AWS service; a strict one refuses what AWS would and emulators do not."""
    from chalicelib.adapters import clients

    once = service in _TRIED_ONCE
    made = clients.make(service, validate=settings().strict_aws, attempts=1 if once else clients.ATTEMPTS)
    if settings().strict_aws:
        from chalicelib.adapters.aws_limits import refuse_what_aws_refuses

        refuse_what_aws_refuses(made)
    return made


@cache
def json_service(name: str) -> "JsonService":
    """Give the lean client of DynamoDB or SQS, with the hooks of the full one; the store tells the time."""
    from chalicelib.adapters.aws_json import JsonService

    return JsonService(client(name), clock().hear if name == "dynamodb" else None)


@cache
def rules() -> "Rules":
    """Give the numbers of every gate.

    A lease that is hardly longer than a request leaves less to pace ahead in.
    """
    from chalicelib.domain.gate import SECOND, Rules

    of = settings()
    spare_secs = of.lease_secs - of.total_timeout_secs - START_MARGIN_SECS - SETTLE_MARGIN_SECS
    return Rules(
        of.breaker,
        of.breaker_threshold,
        of.breaker_cooldown_secs * SECOND,
        of.breaker_max_cooldown_secs * SECOND,
        of.ramp_secs * SECOND,
        of.lease_secs * SECOND,
        of.total_timeout_secs * SECOND,
        min(Rules().reserve, spare_secs * SECOND),
        auto_disable=of.auto_disable,
        auto_disable_after=of.auto_disable_secs * SECOND,
        auto_disable_attempts=of.auto_disable_attempts,
    )


@cache
def policy() -> "Policy":
    """Say where requests may go."""
    from chalicelib.domain.target import Policy

    of = settings()
    return Policy(of.require_https, of.allow_private_endpoints, of.allowed_ports)


@cache
def origins() -> "Origins":
    """Say where the chats' platforms are reached."""
    from chalicelib.domain.chat.platform import Origins

    of = settings()
    return Origins(of.telegram_origin, of.discord_origin, of.slack_origin)


@cache
def tables() -> "DynamoTables":
    """Give the tables."""
    from chalicelib.adapters.dynamodb.tables import DynamoTables

    return DynamoTables(json_service("dynamodb"), settings().resource_prefix)


@cache
def capturing() -> "DynamoCapturing":
    """Give the store of ingest."""
    from chalicelib.adapters.dynamodb.capturing import DynamoCapturing

    return DynamoCapturing(tables())


@cache
def endpoints() -> "DynamoEndpoints":
    """Give the store of endpoints."""
    from chalicelib.adapters.dynamodb.endpoints import DynamoEndpoints

    return DynamoEndpoints(tables(), rules())


@cache
def api_keys() -> "DynamoKeys":
    """Give the store of API keys."""
    from chalicelib.adapters.dynamodb.trusting import DynamoKeys

    return DynamoKeys(tables())


@cache
def tenants() -> "DynamoTenants":
    """Give the store of tenants."""
    from chalicelib.adapters.dynamodb.trusting import DynamoTenants

    return DynamoTenants(tables())


@cache
def work() -> "DynamoWork":
    """Give the work list and history."""
    from chalicelib.adapters.dynamodb.work import DynamoWork

    return DynamoWork(tables())


@cache
def gates() -> "DynamoGates":
    """Give the gates."""
    from chalicelib.adapters.dynamodb.work import DynamoGates

    return DynamoGates(tables())


@cache
def payloads() -> "S3Payloads":
    """Give the store of bodies over the inline limit."""
    from chalicelib.adapters.s3 import S3Payloads

    return S3Payloads(client("s3"), settings().payload_bucket)


@cache
def signing_keys() -> "SigningKeys":
    """Give what makes and opens signing keys."""
    from chalicelib.adapters.ed25519 import NaclEd25519
    from chalicelib.application.signing_keys import SigningKeys

    return SigningKeys(sealer(), NaclEd25519())


@cache
def sealer() -> "KmsSealer":
    """Give the key service."""
    from chalicelib.adapters.kms import KmsSealer

    return KmsSealer(client("kms"), f"alias/{settings().resource_prefix}secrets")


@cache
def queues() -> "Queues":
    """Give the queues' URLs."""
    from chalicelib.adapters.sqs import Queues

    return Queues(json_service("sqs"), settings().resource_prefix)


@cache
def bells() -> "SqsBells":
    """Give what rings lanes."""
    from chalicelib.adapters.sqs import SqsBells

    return SqsBells(json_service("sqs"), queues(), settings().shard_count)


@cache
def receipts(queue_arn: str) -> "SqsReceipts":
    """Give the received bells of a queue, by its ARN."""
    from chalicelib.adapters.sqs import SqsReceipts

    name = queue_arn.rpartition(":")[2].removeprefix(settings().resource_prefix)
    return SqsReceipts(json_service("sqs"), queues().url(name))


@cache
def sender() -> "GuardedSender":
    """Give the one sender of the process; its connections outlive invocations."""
    from chalicelib.adapters.http.dial import Proxy
    from chalicelib.adapters.http.loop import BackgroundLoop
    from chalicelib.adapters.http.sender import GuardedSender, SendLimits
    from chalicelib.adapters.http.transport import GuardedTransport, Timeouts

    of = settings()
    timeouts = Timeouts(of.connect_timeout_secs, of.read_timeout_secs)
    proxy = Proxy(*of.outbound_proxy) if of.outbound_proxy else None
    transport = GuardedTransport(policy(), timeouts, proxy=proxy)
    limits = SendLimits(of.total_timeout_secs, of.response_max_bytes, of.max_in_flight)
    return GuardedSender(transport, limits, BackgroundLoop(), clock().now_ms)


@cache
def client_in(service: str, region: str) -> Any:  # noqa: ANN401 - boto3's clients have no common type
    """Make the client of an AWS service in a region where somebody else's queues and buses are."""
    from chalicelib.adapters import clients

    return clients.make(service, region=region)


@cache
def cloud_sender() -> "CloudSender":
    """Give what sends to queues and buses in AWS accounts of others."""
    from chalicelib.adapters import clients
    from chalicelib.adapters.cloud import STEPS, CloudSender, Sessions
    from chalicelib.adapters.http.loop import BackgroundLoop
    from chalicelib.adapters.http.sender import SendLimits

    of = settings()
    sts = clients.make("sts", attempts=1, timeout_s=of.total_timeout_secs / STEPS)
    limits = SendLimits(of.total_timeout_secs, of.response_max_bytes, of.max_in_flight)
    return CloudSender(Sessions(sts), client_in, limits, BackgroundLoop())


@cache
def limiter() -> "Limiter":
    """Give what counts; what a process has taken it spends wherever it is needed."""
    from chalicelib.adapters.dynamodb.limiting import DynamoAllowances
    from chalicelib.application.limiter import Limiter

    return Limiter(DynamoAllowances(tables()), clock())


@cache
def admit_requests() -> "AdmitRequests":
    """Give the use case that holds keys to their quotas."""
    from chalicelib.application.admit_requests import AdmitRequests

    return AdmitRequests(limiter())


@cache
def pacing() -> "Pacing":
    """Give what paces fan-outs; a tenant's budget is known for as long as a key is."""
    from chalicelib.application.pacing import KnownQuotas, Pacing

    quotas = KnownQuotas(tenants(), clock(), settings().key_cache_secs * 1000)
    return Pacing(limiter(), clock(), quotas.fan_out_per_second)


@cache
def ingest() -> "Ingest":
    """Give the use case that accepts events."""
    from chalicelib.application.ingest import Ingest, IngestLimits

    of = settings()
    limits = IngestLimits(of.payload_max_bytes, of.inline_max_bytes, of.inline_fanout_max)
    return Ingest(capturing(), payloads(), bells(), clock(), dice(), limits, limiter(), pacing())


@cache
def fan_out() -> "FanOutLater":
    """Give the use case that fans out later."""
    from chalicelib.adapters.dynamodb.capturing import DynamoFanningOut
    from chalicelib.application.fan_out import FanOutLater

    return FanOutLater(DynamoFanningOut(tables()), capturing(), payloads(), bells(), clock(), pacing())


@cache
def manage_endpoints() -> "ManageEndpoints":
    """Give the use case behind the endpoint routes."""
    from chalicelib.application.endpoints import ManageEndpoints

    return ManageEndpoints(endpoints(), signing_keys(), clock(), dice(), policy(), bells(), origins())


@cache
def authorize() -> "Authorize":
    """Give the use case that checks and seals what endpoints are authenticated with."""
    from chalicelib.adapters.http.own_tls import OpenSslCertificates
    from chalicelib.application.authorizing import Authorize

    return Authorize(signing_keys(), OpenSslCertificates(), clock(), policy())


@cache
def rotate_keys() -> "RotateKeys":
    """Give the use case that rotates signing keys."""
    from chalicelib.application.rotate import RotateKeys

    return RotateKeys(manage_endpoints())


@cache
def end_owed() -> "EndOwed":
    """Give the use case that ends deliveries in pages."""
    from chalicelib.adapters.dynamodb.endings import DynamoEndings
    from chalicelib.application.end_owed import EndOwed

    return EndOwed(DynamoEndings(tables()), endpoints(), gates(), work(), bells(), clock())


@cache
def measure_backlog() -> "MeasureBacklog":
    """Give the use case that counts what waits."""
    from chalicelib.application.measure_backlog import MeasureBacklog

    return MeasureBacklog(endpoints(), gates(), work(), clock())


@cache
def questions() -> "Questions":
    """Give the use case that answers what happened."""
    from chalicelib.adapters.dynamodb.reading import DynamoReading
    from chalicelib.application.questions import Questions

    return Questions(DynamoReading(tables()), endpoints(), payloads(), clock())


@cache
def showing() -> "Showing":
    """Give the use case that makes what may be seen."""
    from chalicelib.adapters.dynamodb.reading import DynamoReading
    from chalicelib.application.showing import Showing

    return Showing(DynamoReading(tables()), payloads(), tenants(), clock())


@cache
def inspect() -> "Inspect":
    """Give the use case that shows requests of the past."""
    from chalicelib.application.inspect import Inspect

    return Inspect(questions(), showing(), origins())


@cache
def replay() -> "Replay":
    """Give the use case that replays a delivery."""
    from chalicelib.adapters.dynamodb.replaying import DynamoReplaying
    from chalicelib.application.replay import Replay

    return Replay(DynamoReplaying(tables()), questions(), bells(), clock(), dice())


@cache
def try_endpoint() -> "TryEndpoint":
    """Give the use case that sends tests."""
    from chalicelib.adapters.clock import SystemPatience
    from chalicelib.adapters.dynamodb.replaying import DynamoReplaying
    from chalicelib.application.try_endpoint import TryEndpoint

    return TryEndpoint(
        endpoints(),
        capturing(),
        DynamoReplaying(tables()),
        questions(),
        bells(),
        clock(),
        dice(),
        SystemPatience(),
    )


@cache
def bulk_replays() -> "DynamoBulkReplays":
    """Give the store of bulk replays."""
    from chalicelib.adapters.dynamodb.bulk_replays import DynamoBulkReplays

    return DynamoBulkReplays(tables())


@cache
def order_replays() -> "OrderReplays":
    """Give the use case behind the routes of bulk replays."""
    from chalicelib.application.bulk_replay import OrderReplays

    return OrderReplays(bulk_replays(), endpoints(), bells(), clock(), dice())


@cache
def replay_many() -> "ReplayMany":
    """Give the use case that works bulk replays off."""
    from chalicelib.adapters.dynamodb.replaying import DynamoReplaying
    from chalicelib.application.bulk_replay import ReplayMany

    return ReplayMany(bulk_replays(), DynamoReplaying(tables()), endpoints(), work(), bells(), clock())


@cache
def authenticate() -> "Authenticate":
    """Give the use case that says who asks."""
    from chalicelib.application.authenticate import Authenticate

    of = settings()
    return Authenticate(api_keys(), known_keys(), clock(), of.allow_keyless, of.operator_key_sha256)


@cache
def known_keys() -> "KnownKeys":
    """Give what this process remembers of keys."""
    from chalicelib.application.authenticate import KnownKeys

    return KnownKeys(settings().key_cache_secs * 1000)


@cache
def manage_keys() -> "ManageKeys":
    """Give the use case behind the routes of keys."""
    from chalicelib.application.api_keys import ManageKeys

    return ManageKeys(api_keys(), known_keys(), clock(), dice())


@cache
def codes() -> "PyotpCodes":
    """Give what knows one-time codes."""
    from chalicelib.adapters.totp import PyotpCodes

    return PyotpCodes()


@cache
def step_up() -> "StepUp":
    """Give the use case that stands before elevated actions."""
    from chalicelib.adapters.dynamodb.trusting import DynamoSecondFactors
    from chalicelib.application.step_up import StepUp

    return StepUp(DynamoSecondFactors(tables()), sealer(), codes(), clock(), dice())


@cache
def deliver() -> "Deliver":
    """Give the use case of the delivery plane, for what is sent over HTTP."""
    return _deliver(sender(), cloud=False)


@cache
def deliver_cloud() -> "Deliver":
    """Give the use case of the delivery plane, for what is sent to AWS."""
    return _deliver(cloud_sender(), cloud=True)


def _deliver(by: "Sender", *, cloud: bool) -> "Deliver":
    from chalicelib.application.admission import Admission
    from chalicelib.application.deliver import Deliver
    from chalicelib.application.gatekeeper import Gatekeeper, KnownGates
    from chalicelib.application.holding import Holding
    from chalicelib.application.lane_bells import LaneBells
    from chalicelib.application.settlement import Settlement

    known = KnownGates()
    keeper = Gatekeeper(gates(), known)
    holding = Holding(work(), keeper, clock())
    lane_bells = LaneBells(bells(), keeper, clock())
    settlement = Settlement(work(), keeper, holding, lane_bells, endpoints(), clock(), dice(), rules())
    return Deliver(
        work(),
        Admission(gates(), known, rules()),
        settlement,
        payloads(),
        signing_keys(),
        by,
        clock(),
        dice(),
        settings().total_timeout_secs * 1000,
        settings().payload_max_bytes,
        origins(),
        cloud,
    )


@cache
def reconcile() -> "Reconcile":
    """Give the watchdog."""
    from chalicelib.adapters.dynamodb.work import DynamoWatching
    from chalicelib.application.reconcile import Reconcile

    return Reconcile(DynamoWatching(tables()), work(), gates(), bells(), fan_out(), clock())


@cache
def noticing() -> "DynamoNoticing":
    """Give the store of notices."""
    from chalicelib.adapters.dynamodb.noticing import DynamoNoticing

    return DynamoNoticing(tables())


@cache
def auditing() -> "DynamoAuditing":
    """Give the store the audit is read from."""
    from chalicelib.adapters.dynamodb.auditing import DynamoAuditing

    return DynamoAuditing(tables())


@cache
def export_audit() -> "ExportAudit":
    """Give the use case that writes the audit to where a SIEM reads it."""
    from chalicelib.adapters.dynamodb.auditing import DynamoExportingAudit
    from chalicelib.adapters.s3 import S3Exports
    from chalicelib.application.export_audit import ExportAudit

    exports = S3Exports(client("s3"), settings().audit_bucket)
    return ExportAudit(DynamoExportingAudit(tables()), exports, clock())


@cache
def purging() -> "DynamoPurging":
    """Give the store of purges."""
    from chalicelib.adapters.dynamodb.purging import DynamoPurging

    return DynamoPurging(tables())


@cache
def order_purges() -> "OrderPurges":
    """Give the use case behind the routes that purge."""
    from chalicelib.application.purge import OrderPurges

    return OrderPurges(purging(), endpoints(), clock(), dice())


@cache
def purge_all() -> "PurgeAll":
    """Give the use case that works purges off."""
    from chalicelib.application.purge import PurgeAll

    of = settings()
    quiet_ms = (of.function_timeout_secs + of.key_cache_secs) * 1000 + PURGE_MARGIN_MS
    return PurgeAll(purging(), endpoints(), payloads(), clock(), dice(), quiet_ms)


@cache
def notify() -> "Notify":
    """Give the use case that tells owners; raises SettingsError without a topic."""
    from chalicelib.adapters.sns import SnsAnnouncer
    from chalicelib.application.notify import Notify
    from chalicelib.domain.notice import NoticeRules

    of = settings()
    if not of.notices_topic_arn:
        raise configuration.SettingsError("RELAY_NOTICES_TOPIC_ARN is not set; notices need a topic")
    announcer = SnsAnnouncer(client("sns"), of.notices_topic_arn)
    rules = NoticeRules(of.notice_window_secs * 1000, of.notice_outage_secs * 1000)
    return Notify(noticing(), announcer, clock(), dice(), rules)


@cache
def retention() -> "Retention":
    """Give the use case that keeps what is needed and removes what is not."""
    from chalicelib.adapters.dynamodb.retaining import DynamoRetaining
    from chalicelib.application.retention import Retention

    return Retention(DynamoRetaining(tables()), payloads(), clock(), settings().sweep_expired_rows)


@cache
def rebuild() -> "Rebuild":
    """Give the use case that makes what is derived again from history; no function has it."""
    from chalicelib.adapters.dynamodb.rebuilding import DynamoRebuilding
    from chalicelib.application.rebuild import Rebuild

    return Rebuild(DynamoRebuilding(tables()), clock(), rules())


@cache
def manage_tenants() -> "ManageTenants":
    """Give the use case behind the routes of tenants."""
    from chalicelib.application.tenants import ManageTenants

    return ManageTenants(tenants(), sealer(), codes(), clock(), dice())


def seed(tenant: "Tenant", key: "ApiKey") -> None:
    """Write a tenant with a known second factor, unless it is there, and a key; for emulators alone."""
    from chalicelib.domain.secret import Secret
    from chalicelib.domain.step_up import DEVELOPMENT_SECRET

    if settings().real_aws:
        raise configuration.SettingsError("a development key is for emulators (AWS_ENDPOINT_URL)")
    manage_tenants().seed(tenant, key, Secret(DEVELOPMENT_SECRET))
    api_keys().put(key)


def seed_development() -> None:
    """Write the default tenant with its fixed key and second factor; only an emulator gets one."""
    from chalicelib.domain.api_key import development_key
    from chalicelib.domain.tenant import development_tenant

    seed(development_tenant(clock().now_ms()), development_key())
