"""A subscription document: every field acts, or is reported with its place."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from streams.playbook.problem import Severity
from streams.subscription.errors import BadSubscription
from streams.subscription.model import (
    BodyFormat,
    Control,
    DispatchUnit,
    MessageSource,
    PayloadFrom,
    WebhookIngress,
)
from streams.subscription.parse import check_subscription, is_subscription, parse_subscription


def text(spec: dict[str, Any] | None = None, **top: Any) -> str:
    whole = {
        "apiVersion": "noetl.io/v1",
        "kind": "Subscription",
        "metadata": {"name": "orders", "path": "shop/orders"},
        "spec": {
            "source": "kafka",
            "topic": "orders",
            "dispatch": {"playbook": "shop/order"},
            **(spec or {}),
        },
        **top,
    }
    return yaml.safe_dump(whole, sort_keys=False)


def problems(spec: dict[str, Any] | None = None, **top: Any) -> list[tuple[Severity, str, str]]:
    _, found = check_subscription(text(spec, **top))
    return [(one.severity, one.where, one.message) for one in found]


def test_the_least_document_reads_our_kafka_in_a_group_of_its_own() -> None:
    made = parse_subscription(text())
    assert made.kafka is not None
    assert (made.kafka.topic, made.kafka.group) == ("orders", "noetl.subscription.shop.orders")
    assert (made.kafka.brokers, made.kafka.format) == (None, BodyFormat.AUTO)
    assert made.source is MessageSource.KAFKA
    assert made.dispatch.payload_from is PayloadFrom.JSON
    assert (made.dedup_s, made.max_in_flight, made.max_per_second) == (None, None, None)


def test_every_field_that_acts_is_in_the_model() -> None:
    made, found = check_subscription(
        text(
            {
                "mode": "pull",
                "activation": "continuous",
                "group": "billing",
                "brokers": ["a:1", "b:2"],
                "format": "avro",
                "schema_registry": "http://127.0.0.1:8081",
                "runtime": {"batch": 50, "timeout_ms": 2000},
                "dispatch": {
                    "playbook": "shop/order",
                    "payload_from": "message.body",
                    "execution_pool": "big",
                    "per": "batch",
                    "batch_max": 20,
                },
                "limits": {"max_in_flight": 7, "max_dispatch_per_sec": 3},
                "headers": {
                    "normalize": True,
                    "directives": [
                        {"header": "X-Route", "controls": "dispatch.playbook", "allowed": ["a"]}
                    ],
                    "trace": {"propagate": "w3c", "baggage_allowlist": ["tenant"]},
                    "passthrough": "none",
                },
                "spool": {"mode": "off"},
            }
        )
    )
    assert found == ()
    assert made is not None
    assert made.kafka is not None
    assert (made.kafka.brokers, made.kafka.format) == ("a:1,b:2", BodyFormat.AVRO)
    assert (made.kafka.group, made.kafka.schema_registry) == ("billing", "http://127.0.0.1:8081")
    assert (made.fetch_max, made.fetch_wait_ms) == (50, 2000)
    assert (made.dispatch.unit, made.dispatch.batch_max) == (DispatchUnit.BATCH, 20)
    assert (made.dispatch.execution_pool, made.max_in_flight, made.max_per_second) == ("big", 7, 3)
    (directive,) = made.headers.directives
    assert (directive.header, directive.controls) == ("x-route", Control.PLAYBOOK)
    assert (made.headers.is_passed_through, made.headers.baggage) == (False, ("tenant",))


def test_a_problem_has_its_line_and_column() -> None:
    document = text({"limts": {"max_in_flight": 1}})
    _, (problem,) = check_subscription(document)
    line = document.splitlines()[problem.line - 1]
    assert line[problem.column - 1 :].startswith("limts")
    assert problem.hint == "did you mean 'limits'?"


@pytest.mark.parametrize(
    ("spec", "where", "message"),
    [
        ({"source": "nats"}, "spec.source", "there is no NATS here"),
        ({"source": "pubsub"}, "spec.source", "there is no Pub/Sub client here"),
        ({"topic": "noetl.events.execution"}, "spec.topic", "one of the system's own topics"),
        ({"topic": "a b"}, "spec.topic", "is not a valid topic name"),
        ({"topic": ""}, "spec", "'topic' is missing"),
        ({"mode": "push"}, "spec.mode", "must be pull"),
        ({"activation": "on_demand"}, "spec.activation", "must be continuous"),
        ({"stream": "S"}, "spec.stream", "belongs to `source: nats`"),
        ({"brokers": "a:1", "auth": "kafka_main"}, "spec.brokers", "both name a Kafka"),
        ({"brokers": []}, "spec.brokers", "names no broker"),
        ({"runtime": {"timeout_ms": 60_000}}, "spec.runtime.timeout_ms", "at most 30000"),
        (
            {"dispatch": {"playbook": "p", "per": "batch"}, "dedup": {"enabled": True}},
            "spec.dedup",
            "cannot be combined",
        ),
        (
            {"headers": {"directives": [{"header": "h", "controls": "dispatch.playbook"}]}},
            "spec.headers.directives[0]",
            "needs `allowed`",
        ),
        (
            {"headers": {"directives": [{"header": "h", "controls": "priority"}]}},
            "spec.headers.directives[0]",
            "needs `map`",
        ),
        ({"source": "webhook", "topic": "t"}, "spec.topic", "belongs to `source: kafka`"),
    ],
)
def test_what_cannot_be_done_is_an_error(spec: dict[str, Any], where: str, message: str) -> None:
    errors = [one for one in problems(spec) if one[0] is Severity.ERROR]
    assert any(at == where and message in said for _, at, said in errors), errors


@pytest.mark.parametrize(
    ("spec", "where", "message"),
    [
        ({"spool": {"mode": "buffer_and_ack"}}, "spec.spool", "has no effect"),
        ({"runtime": {"target": "dedicated-pool"}}, "spec.runtime.target", "role `trigger`"),
        ({"runtime": {"pool": "subscription"}}, "spec.runtime.pool", "role `trigger`"),
        (
            {"dispatch": {"playbook": "p", "batch_max": 5}},
            "spec.dispatch.batch_max",
            "has no effect without `batch_dispatch: true`",
        ),
        (
            {"dispatch": {"playbook": "p", "batch_dispatch": False}},
            "spec.dispatch.batch_dispatch",
            "has no effect",
        ),
        (
            {"dedup": {"enabled": False, "window_secs": 9}},
            "spec.dedup.window_secs",
            "has no effect without `enabled: true`",
        ),
        (
            {"headers": {"directives": [{"header": "k", "controls": "idempotency_key"}]}},
            "spec.headers.directives",
            "`dedup` is not enabled",
        ),
        (
            {"headers": {"trace": {"baggage_allowlist": ["a"]}}},
            "spec.headers.trace.baggage_allowlist",
            "has no effect without `propagate: w3c`",
        ),
    ],
)
def test_what_has_no_effect_is_a_warning(spec: dict[str, Any], where: str, message: str) -> None:
    made, found = check_subscription(text(spec))
    assert made is not None
    assert [(one.severity, one.where) for one in found] == [(Severity.WARNING, where)]
    assert message in found[0].message


def webhook(**ingress: Any) -> str:
    spec = {"source": "webhook", "dispatch": {"playbook": "shop/order"}, "ingress": ingress}
    return yaml.safe_dump({**yaml.safe_load(text()), "spec": spec})


def test_a_webhook_has_a_path_and_a_secret() -> None:
    verify = {"type": "hmac_sha256", "secret": "hook"}
    made = parse_subscription(webhook(gateway_path="/ingress/orders", verify=verify))
    assert made.ingress == WebhookIngress(
        path="/ingress/orders", verify="hmac_sha256", header="X-Signature", secret="hook"
    )
    assert (made.secret, made.dedup_s, made.kafka) == ("hook", 300, None)


def test_every_problem_of_a_webhook_is_reported() -> None:
    bad = {"gateway_path": "/api/executions", "verify": {"type": "pubsub_oidc", "secret": "s"}}
    with pytest.raises(BadSubscription) as error:
        parse_subscription(webhook(**bad))
    for problem in ("below /ingress/", "Google"):
        assert problem in str(error.value)


def test_a_document_without_a_path_or_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(BadSubscription, match="has no path"):
        parse_subscription(text(metadata={"name": "x"}))
    with pytest.raises(BadSubscription, match="not YAML"):
        parse_subscription("a: [")
    with pytest.raises(BadSubscription, match="is not a mapping"):
        parse_subscription("- 1")


def test_a_document_is_known_by_its_kind() -> None:
    assert is_subscription(text())
    assert not is_subscription("apiVersion: noetl.io/v2\nkind: Playbook\n")
    assert not is_subscription("a: [")
