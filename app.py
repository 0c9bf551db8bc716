"""Every Lambda of Relay, registered: routes, queue consumers, schedules. No logic."""

from typing import Any

from chalice.app import CloudWatchEvent, Rate, Response, SQSEvent

from chalicelib import bootstrap, handlers
from chalicelib.handlers.api import ANY_TYPE, Api

Answer = dict[str, Any]

app = Api()


@app.route("/v1/events", methods=["POST"], content_types=ANY_TYPE)
def post_event() -> Response:
    """Accept one event."""
    return handlers.events.answer(app, handlers.events.post)


@app.route("/v1/events/batch", methods=["POST"], content_types=ANY_TYPE)
def post_events() -> Response:
    """Accept many events."""
    return handlers.events.answer(app, handlers.events.post_batch)


@app.route("/v1/events", methods=["GET"])
def list_events() -> Response:
    """List events."""
    return handlers.http.answer(app, handlers.events.page)


@app.route("/v1/events/{event_id}", methods=["GET"])
def get_event(event_id: str) -> Response:
    """Show an event."""
    return handlers.http.answer(app, handlers.events.get, event_id=event_id)


@app.route("/v1/events/{event_id}/payload", methods=["GET"])
def get_payload(event_id: str) -> Response:
    """Give an event's exact bytes."""
    return handlers.http.answer(app, handlers.events.payload, event_id=event_id)


@app.route("/v1/events/{event_id}/deliveries", methods=["GET"])
def list_event_deliveries(event_id: str) -> Response:
    """List an event's deliveries."""
    return handlers.http.answer(app, handlers.events.deliveries, event_id=event_id)


@app.route("/v1/endpoints", methods=["POST"], content_types=ANY_TYPE)
def create_endpoint() -> Response:
    """Register an endpoint."""
    return handlers.http.answer(app, handlers.endpoints.create)


@app.route("/v1/endpoints", methods=["GET"])
def list_endpoints() -> Response:
    """List endpoints."""
    return handlers.http.answer(app, handlers.endpoints.page)


@app.route("/v1/endpoints/{endpoint_id}", methods=["GET"])
def get_endpoint(endpoint_id: str) -> Response:
    """Show an endpoint."""
    return handlers.http.answer(app, handlers.endpoints.get, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}", methods=["PATCH"], content_types=ANY_TYPE)
def patch_endpoint(endpoint_id: str) -> Response:
    """Change an endpoint."""
    return handlers.http.answer(app, handlers.endpoints.patch, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}", methods=["DELETE"])
def delete_endpoint(endpoint_id: str) -> Response:
    """Delete an endpoint."""
    return handlers.http.answer(app, handlers.endpoints.delete, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/disable", methods=["POST"], content_types=ANY_TYPE)
def disable_endpoint(endpoint_id: str) -> Response:
    """Disable an endpoint."""
    return handlers.http.answer(app, handlers.endpoints.disable, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/enable", methods=["POST"], content_types=ANY_TYPE)
def enable_endpoint(endpoint_id: str) -> Response:
    """Enable an endpoint."""
    return handlers.http.answer(app, handlers.endpoints.enable, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/rotate-secret", methods=["POST"], content_types=ANY_TYPE)
def rotate_secret(endpoint_id: str) -> Response:
    """Rotate an endpoint's signing key."""
    return handlers.http.answer(app, handlers.endpoints.rotate_secret, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/end-overlap", methods=["POST"], content_types=ANY_TYPE)
def end_overlap(endpoint_id: str) -> Response:
    """End an endpoint's previous signing key."""
    return handlers.http.answer(app, handlers.endpoints.end_overlap, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/tunnel-token", methods=["POST"], content_types=ANY_TYPE)
def make_tunnel_token(endpoint_id: str) -> Response:
    """Let a machine listen at a tunnel."""
    return handlers.http.answer(app, handlers.endpoints.tunnel_token, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/public-key", methods=["GET"])
def get_public_keys(endpoint_id: str) -> Response:
    """Show an endpoint's public keys."""
    return handlers.http.answer(app, handlers.endpoints.public_keys, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/test", methods=["POST"], content_types=ANY_TYPE)
def test_endpoint(endpoint_id: str) -> Response:
    """Send a sample event to an endpoint."""
    return handlers.http.answer(app, handlers.endpoints.test, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/backlog", methods=["GET"])
def get_endpoint_backlog(endpoint_id: str) -> Response:
    """Show how much waits for an endpoint."""
    return handlers.http.answer(app, handlers.endpoints.backlog, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/deliveries", methods=["GET"])
def list_endpoint_deliveries(endpoint_id: str) -> Response:
    """List an endpoint's deliveries."""
    return handlers.http.answer(app, handlers.endpoints.deliveries, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/attempts", methods=["GET"])
def list_endpoint_attempts(endpoint_id: str) -> Response:
    """List an endpoint's attempts."""
    return handlers.http.answer(app, handlers.endpoints.attempts, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/dead-letters", methods=["GET"])
def list_dead_letters(endpoint_id: str) -> Response:
    """List what was given up on."""
    return handlers.http.answer(app, handlers.endpoints.dead_letters, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/dead-letters", methods=["DELETE"])
def purge_dead_letters(endpoint_id: str) -> Response:
    """Remove what was given up on."""
    return handlers.http.answer(app, handlers.purges.dead_letters, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/stats", methods=["GET"])
def get_endpoint_stats(endpoint_id: str) -> Response:
    """List what an endpoint's hours came to."""
    return handlers.http.answer(app, handlers.endpoints.stats, endpoint_id=endpoint_id)


@app.route("/v1/endpoints/{endpoint_id}/health", methods=["GET"])
def get_endpoint_health(endpoint_id: str) -> Response:
    """Show how an endpoint does."""
    return handlers.http.answer(app, handlers.endpoints.health, endpoint_id=endpoint_id)


@app.route("/v1/deliveries/{delivery_id}", methods=["GET"])
def get_delivery(delivery_id: str) -> Response:
    """Show a delivery."""
    return handlers.http.answer(app, handlers.deliveries.get, delivery_id=delivery_id)


@app.route("/v1/deliveries/{delivery_id}/request", methods=["GET"])
def get_delivery_request(delivery_id: str) -> Response:
    """Show the request of an attempt."""
    return handlers.http.answer(app, handlers.deliveries.request, delivery_id=delivery_id)


@app.route("/v1/deliveries/{delivery_id}/replay", methods=["POST"], content_types=ANY_TYPE)
def replay_delivery(delivery_id: str) -> Response:
    """Send a delivery again."""
    return handlers.http.answer(app, handlers.deliveries.replay, delivery_id=delivery_id)


@app.route("/v1/tenants", methods=["POST"], content_types=ANY_TYPE)
def create_tenant() -> Response:
    """Open a tenant."""
    return handlers.http.answer(app, handlers.tenants.create)


@app.route("/v1/tenants", methods=["GET"])
def list_tenants() -> Response:
    """List tenants."""
    return handlers.http.answer(app, handlers.tenants.page)


@app.route("/v1/tenants/{tenant_id}", methods=["GET"])
def get_tenant(tenant_id: str) -> Response:
    """Show a tenant."""
    return handlers.http.answer(app, handlers.tenants.get, tenant_id=tenant_id)


@app.route("/v1/tenants/{tenant_id}", methods=["PATCH"], content_types=ANY_TYPE)
def patch_tenant(tenant_id: str) -> Response:
    """Change a tenant."""
    return handlers.http.answer(app, handlers.tenants.patch, tenant_id=tenant_id)


@app.route("/v1/tenants/{tenant_id}", methods=["DELETE"])
def purge_tenant(tenant_id: str) -> Response:
    """Remove a tenant with all that is its own."""
    return handlers.http.answer(app, handlers.purges.tenant, tenant_id=tenant_id)


@app.route("/v1/tenants/{tenant_id}/recover", methods=["POST"], content_types=ANY_TYPE)
def recover_tenant(tenant_id: str) -> Response:
    """Give a tenant new keys to itself."""
    return handlers.http.answer(app, handlers.tenants.recover, tenant_id=tenant_id)


@app.route("/v1/keys", methods=["POST"], content_types=ANY_TYPE)
def create_key() -> Response:
    """Make an API key."""
    return handlers.http.answer(app, handlers.keys.create)


@app.route("/v1/keys", methods=["GET"])
def list_keys() -> Response:
    """List API keys."""
    return handlers.http.answer(app, handlers.keys.page)


@app.route("/v1/keys/{key_id}", methods=["DELETE"])
def revoke_key(key_id: str) -> Response:
    """Revoke an API key."""
    return handlers.http.answer(app, handlers.keys.revoke, key_id=key_id)


@app.route("/v1/step-up", methods=["POST"], content_types=ANY_TYPE)
def step_up() -> Response:
    """Show the second factor."""
    return handlers.http.answer(app, handlers.step_up.prove)


@app.route("/v1/notices", methods=["GET"])
def list_notices() -> Response:
    """List what owners were told."""
    return handlers.http.answer(app, handlers.notices.page)


@app.route("/v1/audit", methods=["GET"])
def list_audit() -> Response:
    """List who changed what."""
    return handlers.http.answer(app, handlers.audit.page)


@app.route("/v1/endpoints/{endpoint_id}/replay", methods=["POST"], content_types=ANY_TYPE)
def replay_endpoint(endpoint_id: str) -> Response:
    """Send many deliveries of an endpoint again."""
    return handlers.http.answer(app, handlers.replays.begin, endpoint_id=endpoint_id)


@app.route("/v1/replays/{replay_id}", methods=["GET"])
def get_replay(replay_id: str) -> Response:
    """Show a bulk replay."""
    return handlers.http.answer(app, handlers.replays.get, replay_id=replay_id)


@app.route("/v1/replays/{replay_id}/pause", methods=["POST"], content_types=ANY_TYPE)
def pause_replay(replay_id: str) -> Response:
    """Pause a bulk replay."""
    return handlers.http.answer(app, handlers.replays.pause, replay_id=replay_id)


@app.route("/v1/replays/{replay_id}/resume", methods=["POST"], content_types=ANY_TYPE)
def resume_replay(replay_id: str) -> Response:
    """Resume a bulk replay."""
    return handlers.http.answer(app, handlers.replays.resume, replay_id=replay_id)


@app.route("/v1/replays/{replay_id}/cancel", methods=["POST"], content_types=ANY_TYPE)
def cancel_replay(replay_id: str) -> Response:
    """Cancel a bulk replay."""
    return handlers.http.answer(app, handlers.replays.cancel, replay_id=replay_id)


@app.route("/healthz", methods=["GET"])
def healthz() -> Response:
    """Say that the function runs."""
    return handlers.service.alive()


@app.route("/openapi.json", methods=["GET"])
def openapi() -> Response:
    """Give the contract of this API."""
    return handlers.http.guarded(app, lambda: handlers.service.contract(app.current_request))


@app.route("/readyz", methods=["GET"])
def readyz() -> Response:
    """Say whether Relay can work."""
    return handlers.http.guarded(app, handlers.service.ready)


@app.route("/metrics", methods=["GET"])
def metrics() -> Response:
    """Give what is counted and measured, for Prometheus."""
    return handlers.http.answer(app, handlers.service.metrics)


@app.route("/v1/egress-ranges", methods=["GET"])
def egress_ranges() -> Response:
    """Give the address ranges that requests come from."""
    return handlers.http.guarded(app, handlers.service.egress_ranges)


@app.on_sqs_message(queue="relay-shard-0.fifo", batch_size=10)
def deliver_shard_0(event: SQSEvent) -> Answer:
    """Deliver what rings on shard 0."""
    return handlers.deliver.handle(event.to_dict(), event.context)


@app.on_sqs_message(queue="relay-shard-1.fifo", batch_size=10)
def deliver_shard_1(event: SQSEvent) -> Answer:
    """Deliver what rings on shard 1."""
    return handlers.deliver.handle(event.to_dict(), event.context)


@app.on_sqs_message(queue="relay-shard-2.fifo", batch_size=10)
def deliver_shard_2(event: SQSEvent) -> Answer:
    """Deliver what rings on shard 2."""
    return handlers.deliver.handle(event.to_dict(), event.context)


@app.on_sqs_message(queue="relay-shard-3.fifo", batch_size=10)
def deliver_shard_3(event: SQSEvent) -> Answer:
    """Deliver what rings on shard 3."""
    return handlers.deliver.handle(event.to_dict(), event.context)


@app.on_sqs_message(queue="relay-slow.fifo", batch_size=10)
def deliver_slow(event: SQSEvent) -> Answer:
    """Deliver what rings on the queue of slow endpoints."""
    return handlers.deliver.handle(event.to_dict(), event.context)


@app.on_sqs_message(queue="relay-hot-0.fifo", batch_size=10)
def deliver_hot_0(event: SQSEvent) -> Answer:
    """Deliver what rings on the queue of endpoints with many deliveries."""
    return handlers.deliver.handle(event.to_dict(), event.context)


@app.on_sqs_message(queue="relay-cloud.fifo", batch_size=10)
def deliver_cloud(event: SQSEvent) -> Answer:
    """Deliver to queues and buses in AWS accounts of others."""
    return handlers.deliver.handle_cloud(event.to_dict(), event.context)


@app.on_sqs_message(queue="relay-replay.fifo", batch_size=10)
def deliver_replay(event: SQSEvent) -> Answer:
    """Deliver what rings on the queue of replays."""
    return handlers.deliver.handle(event.to_dict(), event.context)


@app.on_sqs_message(queue="relay-delayed", batch_size=10)
def delayed_bells(event: SQSEvent) -> Answer:
    """Ring the lanes whose delay is over."""
    return handlers.delayed_bells.handle(event.to_dict())


@app.on_sqs_message(queue="relay-fan-out", batch_size=1)
def fan_out(event: SQSEvent) -> Answer:
    """Do the fan-outs that ingest left for later."""
    return handlers.fan_out.handle(event.to_dict())


@app.schedule(Rate(1, unit=Rate.MINUTES))
def notify(_event: CloudWatchEvent) -> None:
    """Tell owners what will not arrive."""
    handlers.notify.handle()


@app.on_sqs_message(queue="relay-endings", batch_size=1)
def end_owed(event: SQSEvent) -> Answer:
    """End in pages what an owner's word, or time, has ended."""
    return handlers.end_owed.handle(event.to_dict(), event.context)


@app.schedule(Rate(1, unit=Rate.MINUTES))
def call_endings(_event: CloudWatchEvent) -> None:
    """Call for what is to be ended."""
    handlers.end_owed.call()


@app.schedule(Rate(1, unit=Rate.HOURS))
def retention(event: CloudWatchEvent) -> None:
    """Keep what is needed and remove what is not."""
    handlers.retention.handle(event.context)


@app.schedule(Rate(1, unit=Rate.MINUTES))
def purge(event: CloudWatchEvent) -> None:
    """Remove what is to be purged."""
    handlers.purge.handle(event.context)


@app.schedule(Rate(1, unit=Rate.HOURS))
def export_audit(event: CloudWatchEvent) -> None:
    """Write the audit to where a SIEM reads it."""
    handlers.export_audit.handle(event.context)


@app.on_sqs_message(queue="relay-replays", batch_size=1)
def replay_many(event: SQSEvent) -> Answer:
    """Go on with bulk replays."""
    return handlers.replay_many.handle(event.to_dict(), event.context)


@app.schedule(Rate(1, unit=Rate.MINUTES))
def call_replays(_event: CloudWatchEvent) -> None:
    """Call for bulk replays that nobody has called for."""
    handlers.replay_many.call()


@app.schedule(Rate(1, unit=Rate.MINUTES))
def measure(event: CloudWatchEvent) -> None:
    """Tell what the whole installation is like."""
    handlers.measure.handle(event.context)


@app.schedule(Rate(1, unit=Rate.MINUTES))
def reconcile(_event: CloudWatchEvent) -> None:
    """Ring what nobody looked at."""
    handlers.reconcile.handle()


handlers.starting.make_ready(bootstrap.function())
