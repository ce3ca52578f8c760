"""The fields of a subscription document, for its check and its JSON Schema."""

from __future__ import annotations

import json

from streams.events.model import Json
from streams.playbook.shape import (
    Anything,
    Choice,
    Either,
    Fields,
    Flag,
    Items,
    Number,
    Shape,
    Text,
    schema,
)
from streams.subscription.model import BodyFormat, Control, DispatchUnit, PayloadFrom

VERSIONS = ("noetl.io/v1", "noetl.io/v2")
SOURCES = ("kafka", "webhook", "nats", "pubsub")
VERIFY = ("hmac_sha256", "bearer", "pubsub_oidc")
SPOOL_MODES = ("off", "buffer_and_ack", "hybrid")

_directive = Fields(
    "directive",
    {
        "header": Text("The header's name."),
        "controls": Choice(tuple(Control), "What its value sets."),
        "allowed": Items(Text(), "The values it may have."),
        "map": Fields("map", {}, "The header's values and what each stands for.", rest=Anything()),
    },
    required=("header", "controls"),
)
_headers = Fields(
    "headers",
    {
        "normalize": Flag("Whether header names are read in lower case."),
        "directives": Items(_directive),
        "trace": Fields(
            "trace",
            {
                "propagate": Choice(("w3c", "none"), "Whether traceparent goes into the events."),
                "baggage_allowlist": Items(Text(), "Keys of baggage handed to the playbook."),
            },
        ),
        "passthrough": Choice(("data", "none"), "Whether other headers reach the playbook."),
    },
)
_dispatch = Fields(
    "dispatch",
    {
        "playbook": Text("The path of the playbook to start."),
        "payload_from": Choice(tuple(PayloadFrom), "What becomes the top of the workload."),
        "execution_pool": Text("The pool of steps that name none."),
        "batch_dispatch": Flag("Whether messages are entered together; always so here."),
        "batch_max": Number("Most messages entered together.", 1),
        "per": Choice(tuple(DispatchUnit), "Whether each message or each batch is an execution."),
    },
    required=("playbook",),
)
_spool = Fields(
    "spool",
    {
        "mode": Choice(SPOOL_MODES),
        "backend": Choice(("nats_object", "s3", "gcs", "local_disk")),
        "bucket": Text(),
        "credential": Text(),
        "ordering": Choice(("global", "per_key", "none")),
        "ordering_key": Text(),
        "circuit": Fields("circuit", {}, rest=Anything()),
        "retention": Fields("retention", {}, rest=Anything()),
        "drain": Fields("drain", {}, rest=Anything()),
    },
    "Not needed: a message stays in its topic until its execution is in the log.",
)
_spec: dict[str, Shape] = {
    "source": Choice(SOURCES, "Where messages come from."),
    "mode": Choice(("pull", "push")),
    "activation": Choice(("continuous", "on_demand")),
    "auth": Text("A credential with the field `brokers`."),
    "topic": Text("The Kafka topic."),
    "group": Text("Its consumer group."),
    "brokers": Either((Text(), Items(Text())), "Its Kafka; default: the deployment's own."),
    "format": Choice(tuple(BodyFormat), "How bodies are decoded."),
    "schema_registry": Text("The registry of Avro schemas; default: the deployment's own."),
    "stream": Text("Of NATS."),
    "consumer": Text("Of NATS."),
    "subscription": Text("Of Pub/Sub."),
    "endpoint": Text("Of Pub/Sub."),
    "ingress": Fields(
        "ingress",
        {
            "gateway_path": Text("The path of the API that takes the messages."),
            "verify": Fields(
                "verify",
                {
                    "type": Choice(VERIFY),
                    "header": Text("The header with the signature or token."),
                    "secret": Text("The credential with the secret."),
                },
                required=("type", "secret"),
            ),
        },
        required=("gateway_path", "verify"),
    ),
    "runtime": Fields(
        "runtime",
        {
            "target": Text(),
            "pool": Text(),
            "batch": Number("Most messages of one fetch.", 1),
            "timeout_ms": Number("Longest wait of one fetch.", 1),
        },
    ),
    "dispatch": _dispatch,
    "dedup": Fields(
        "dedup",
        {
            "enabled": Flag("Whether messages with the same key start one execution."),
            "window_secs": Number("For how long.", 1),
        },
    ),
    "limits": Fields(
        "limits",
        {
            "max_in_flight": Number("Most executions that have not ended.", 1),
            "max_dispatch_per_sec": Number("Most executions started in a second.", 1),
        },
    ),
    "headers": _headers,
    "spool": _spool,
}
SUBSCRIPTION = Fields(
    "subscription",
    {
        "apiVersion": Choice(VERSIONS),
        "kind": Choice(("Subscription",)),
        "metadata": Fields(
            "metadata",
            {
                "name": Text(),
                "path": Text("Where it is in the catalog."),
                "description": Text(),
                "labels": Fields("labels", {}, rest=Anything()),
            },
            rest=Anything(),
        ),
        "spec": Fields("spec", _spec, required=("source", "dispatch")),
    },
    required=("apiVersion", "kind", "metadata", "spec"),
)


def json_schema() -> str:
    """Return the JSON Schema of subscriptions, for editors."""
    definitions: dict[str, Json] = {}
    top = schema(SUBSCRIPTION, definitions)
    page = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "NoETL subscription",
        **top,
        "$defs": dict(sorted(definitions.items())),
    }
    return json.dumps(page, indent=2) + "\n"
