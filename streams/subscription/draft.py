"""Rules of a subscription document beyond its shape, and its compilation."""

from __future__ import annotations

import re

from streams.events.model import Json
from streams.kafka.names import NAMESPACE
from streams.playbook.problem import Severity
from streams.playbook.yaml_document import Authored, Document, as_mapping
from streams.subscription.header_rules import header_rules
from streams.subscription.model import (
    BodyFormat,
    Control,
    DispatchRule,
    DispatchUnit,
    KafkaTopicSource,
    PayloadFrom,
    Subscription,
    WebhookIngress,
)

DEDUP_WINDOW_S = 300
FETCH_MAX = 500
FETCH_WAIT_MS = 250
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_GATEWAY_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_REFUSED_SOURCES = {
    "nats": "there is no NATS here; write the messages to a Kafka topic and use `source: kafka`",
    "pubsub": "there is no Pub/Sub client here; use a Pub/Sub to Kafka connector, "
    "or push to a webhook, and `source: kafka` or `webhook`",
}
_KEYS_OF: dict[str, tuple[str, ...]] = {
    "kafka": ("topic", "group", "brokers", "format", "schema_registry", "auth"),
    "webhook": ("ingress",),
    "nats": ("stream", "consumer"),
    "pubsub": ("subscription", "endpoint"),
}


def subscription_of(document: Document, top: Authored) -> Subscription | None:
    """Return the subscription of a document whose shape was checked."""
    metadata, spec = as_mapping(top["metadata"]), as_mapping(top["spec"])
    path = str(metadata.get("path") or "")
    if not path:
        document.report(("metadata",), "the subscription has no path", "add metadata: {path: …}")
    source = str(spec["source"])
    if source in _REFUSED_SOURCES:
        document.report(("spec", "source"), _REFUSED_SOURCES[source])
        return None
    _check_source_keys(document, spec, source)
    _check_without_effect(document, spec)
    name = str(metadata.get("name") or path)
    headers = header_rules(document, as_mapping(spec.get("headers")))
    limits, runtime = as_mapping(spec.get("limits")), as_mapping(spec.get("runtime"))
    dedup_s = _dedup_s(spec, source)
    if dedup_s is None and any(one.controls is Control.KEY for one in headers.directives):
        what = "an idempotency_key only reaches the workload: `dedup` is not enabled"
        hint = "add dedup: {enabled: true}"
        document.report(("spec", "headers", "directives"), what, hint, Severity.WARNING)
    if dedup_s is not None and as_mapping(spec["dispatch"]).get("per") == DispatchUnit.BATCH:
        document.report(("spec", "dedup"), "cannot be combined with `dispatch.per: batch`")
    return Subscription(
        name=name,
        path=path,
        dispatch=_dispatch(document, as_mapping(spec["dispatch"]), source),
        headers=headers,
        kafka=_kafka(document, spec, path) if source == "kafka" else None,
        ingress=_ingress(document, spec) if source == "webhook" else None,
        credential=_text(spec.get("auth")),
        dedup_s=dedup_s,
        max_in_flight=_number(limits.get("max_in_flight")),
        max_per_second=_number(limits.get("max_dispatch_per_sec")),
        fetch_max=_number(runtime.get("batch")) or FETCH_MAX,
        fetch_wait_ms=_number(runtime.get("timeout_ms")) or FETCH_WAIT_MS,
    )


def _check_source_keys(document: Document, spec: Authored, source: str) -> None:
    for other, keys in _KEYS_OF.items():
        for key in keys:
            if other != source and key in spec:
                what = f"belongs to `source: {other}`, and this is {source}"
                document.report(("spec", key), what, at_key=True)
    mode = "pull" if source == "kafka" else "push"
    if spec.get("mode", mode) != mode:
        document.report(("spec", "mode"), f"must be {mode} with `source: {source}`")
    if spec.get("activation", "continuous") != "continuous":
        what = "must be continuous: a subscription runs until it is paused"
        document.report(("spec", "activation"), what)


def _check_without_effect(document: Document, spec: Authored) -> None:
    """Warn of fields that another runtime needs and this one does not."""
    spool = as_mapping(spec.get("spool"))
    if spool and spool.get("mode", "off") != "off":
        what = (
            "has no effect: a request is answered when its execution is in the log"
            if spec["source"] == "webhook"
            else "has no effect: a message stays in its topic until its execution is in the log"
        )
        document.report(("spec", "spool"), what, None, Severity.WARNING, at_key=True)
    dedup = as_mapping(spec.get("dedup"))
    if "window_secs" in dedup and _dedup_s(spec, str(spec["source"])) is None:
        what = "has no effect without `enabled: true`"
        document.report(("spec", "dedup", "window_secs"), what, None, Severity.WARNING, at_key=True)
    runtime = as_mapping(spec.get("runtime"))
    for key in ("target", "pool"):
        if key in runtime:
            role = "api" if spec["source"] == "webhook" else "trigger"
            what = f"has no effect: the role `{role}` serves every subscription"
            document.report(("spec", "runtime", key), what, None, Severity.WARNING, at_key=True)
    if spec["source"] == "webhook":
        for key in ("batch", "timeout_ms"):
            if key in runtime:
                what = "has no effect: a webhook is not fetched"
                document.report(("spec", "runtime", key), what, None, Severity.WARNING, at_key=True)
    elif "timeout_ms" in runtime and (_number(runtime["timeout_ms"]) or 0) > 30_000:
        document.report(("spec", "runtime", "timeout_ms"), "must be at most 30000")


def _dispatch(document: Document, given: Authored, source: str) -> DispatchRule:
    unit = DispatchUnit(str(given.get("per", DispatchUnit.MESSAGE)))
    batch_max = _number(given.get("batch_max"))
    at = ("spec", "dispatch")
    if source == "webhook":
        for key in ("per", "batch_dispatch", "batch_max"):
            if key in given and given[key] not in (False, DispatchUnit.MESSAGE):
                document.report((*at, key), "a webhook delivers one message at a time", at_key=True)
    elif given.get("batch_dispatch") is False:
        what = "has no effect: messages that are fetched together are entered together"
        document.report((*at, "batch_dispatch"), what, None, Severity.WARNING, at_key=True)
    if batch_max is not None and batch_max > FETCH_MAX:
        document.report((*at, "batch_max"), f"must be at most {FETCH_MAX}")
    if batch_max is not None and unit is DispatchUnit.MESSAGE and not given.get("batch_dispatch"):
        what = "has no effect without `batch_dispatch: true` or `per: batch`"
        document.report((*at, "batch_max"), what, None, Severity.WARNING, at_key=True)
        batch_max = None
    return DispatchRule(
        playbook=str(given["playbook"]),
        payload_from=PayloadFrom(str(given.get("payload_from", PayloadFrom.JSON))),
        execution_pool=_text(given.get("execution_pool")),
        unit=unit,
        batch_max=batch_max or (100 if unit is DispatchUnit.BATCH else FETCH_MAX),
    )


def _kafka(document: Document, spec: Authored, path: str) -> KafkaTopicSource:
    topic = _text(spec.get("topic")) or ""
    if not topic:
        document.report(("spec",), "'topic' is missing", "name the topic to read")
    elif not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        document.report(("spec", "topic"), f"{topic!r} is not a valid topic name")
    elif topic.startswith(NAMESPACE):
        what = f"{topic} is one of the system's own topics: its records would start executions "
        document.report(("spec", "topic"), what + "that write more of them")
    brokers = spec.get("brokers")
    if isinstance(brokers, list):
        brokers = ",".join(str(one) for one in brokers)
    if "brokers" in spec and not brokers:
        document.report(("spec", "brokers"), "names no broker", "such as 127.0.0.1:9092")
    if brokers and "auth" in spec:
        what = "`brokers` and `auth` both name a Kafka; keep one"
        document.report(("spec", "brokers"), what, at_key=True)
    registry = _text(spec.get("schema_registry"))
    if registry is not None and not registry.startswith(("http://", "https://")):
        what = f"{registry!r} is not an address"
        document.report(("spec", "schema_registry"), what, "such as http://127.0.0.1:8081")
    return KafkaTopicSource(
        topic=topic,
        group=_text(spec.get("group")) or f"noetl.subscription.{path.replace('/', '.')}",
        brokers=_text(brokers),
        format=BodyFormat(str(spec.get("format", BodyFormat.AUTO))),
        schema_registry=registry,
    )


def _ingress(document: Document, spec: Authored) -> WebhookIngress | None:
    if "ingress" not in spec:
        document.report(("spec",), "'ingress' is missing", "name gateway_path and verify")
        return None
    given = as_mapping(spec["ingress"])
    verify, path = as_mapping(given["verify"]), str(given["gateway_path"])
    if not _GATEWAY_PATH.fullmatch(path) or not path.startswith("/ingress/"):
        what = f"{path!r} is not a path below /ingress/"
        document.report(("spec", "ingress", "gateway_path"), what, "such as /ingress/orders")
    kind = str(verify["type"])
    if kind == "pubsub_oidc":
        what = "there is no check of Google's tokens here; use hmac_sha256 or bearer"
        document.report(("spec", "ingress", "verify", "type"), what)
    default = "X-Signature" if kind == "hmac_sha256" else "Authorization"
    return WebhookIngress(
        path=path,
        verify=kind,
        header=str(verify.get("header") or default),
        secret=str(verify["secret"]),
    )


def _dedup_s(spec: Authored, source: str) -> int | None:
    given = as_mapping(spec.get("dedup"))
    # HTTP senders repeat a request whose answer was lost; a topic's records have their places.
    if not given.get("enabled", source == "webhook"):
        return None
    return _number(given.get("window_secs")) or DEDUP_WINDOW_S


def _number(value: Json) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
