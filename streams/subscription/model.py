"""A subscription as its document declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from streams.events.model import Json

KIND = "subscription"
"""Its kind in the catalog."""


class MessageSource(StrEnum):
    """Where messages come from."""

    KAFKA = "kafka"
    WEBHOOK = "webhook"


class PayloadFrom(StrEnum):
    """The part of a message whose keys become the top of the workload."""

    JSON = "message.json"
    BODY = "message.body"
    ATTRIBUTES = "message.attributes"


class DispatchUnit(StrEnum):
    """What starts one execution."""

    MESSAGE = "message"
    BATCH = "batch"


class Control(StrEnum):
    """A property of a dispatch that a header can set."""

    PLAYBOOK = "dispatch.playbook"
    POOL = "dispatch.execution_pool"
    PRIORITY = "priority"
    KEY = "idempotency_key"
    CONTENT_TYPE = "content_type"
    SCHEMA_HINT = "schema_hint"


class BodyFormat(StrEnum):
    """How a body is decoded; `auto` reads Avro by its leading zero byte, else JSON."""

    AUTO = "auto"
    JSON = "json"
    AVRO = "avro"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopicSource:
    """A topic, its consumer group, and the cluster; no brokers: our own Kafka."""

    topic: str
    group: str
    brokers: str | None = None
    format: BodyFormat = BodyFormat.AUTO
    schema_registry: str | None = None
    """The address of a registry; None: the deployment's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookIngress:
    """A path of the API, and how its callers prove who they are."""

    path: str
    verify: str
    """`hmac_sha256` or `bearer`."""
    header: str
    secret: str
    """The name of the credential with the secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """A header that controls a property of the dispatch."""

    header: str
    controls: Control
    allowed: tuple[str, ...] = ()
    map: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRules:
    """How the headers of a message are read."""

    is_normalized: bool = True
    """Names are compared and handed on in lower case."""
    directives: tuple[Directive, ...] = ()
    is_passed_through: bool = True
    """Headers without a directive are in `message.headers`, too."""
    propagates_trace: bool = False
    baggage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchRule:
    """The playbook that a message starts, and with what."""

    playbook: str
    payload_from: PayloadFrom = PayloadFrom.JSON
    execution_pool: str | None = None
    unit: DispatchUnit = DispatchUnit.MESSAGE
    batch_max: int = 500
    """Most messages of one transaction, and of one execution where the unit is a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One version of a subscription."""

    name: str
    path: str
    dispatch: DispatchRule
    headers: HeaderRules = HeaderRules()
    kafka: KafkaTopicSource | None = None
    ingress: WebhookIngress | None = None
    credential: str | None = None
    dedup_s: int | None = None
    """Within this time a key starts one execution; None: keys are not compared."""
    max_in_flight: int | None = None
    max_per_second: int | None = None
    fetch_max: int = 500
    fetch_wait_ms: int = 250

    @property
    def secret(self) -> str | None:
        """The name of the credential that it uses: of its Kafka, or of its callers."""
        return self.credential if self.ingress is None else self.ingress.secret

    @property
    def source(self) -> MessageSource:
        """Where its messages come from."""
        return MessageSource.KAFKA if self.kafka is not None else MessageSource.WEBHOOK
