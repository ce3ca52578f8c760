"""Consistency check of topics, schemas and connectors. Pure, for a test.

A connector's topics are computed from its configuration as Connect does it, so that a
predicate that matches nothing is found before production.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from streams.mirror.connectors import Connector
from streams.topology import Topology

_EVENT_ROUTER = "io.debezium.transforms.outbox.EventRouter"
_REGEX_ROUTER = "org.apache.kafka.connect.transforms.RegexRouter"
_DEAD_LETTERS, _CONTROL = "errors.deadletterqueue.topic.name", "iceberg.control.topic"
_ANY = "${routedByValue}"


def disagreements(
    topology: Topology, schemas: Collection[str], connectors: Iterable[Connector]
) -> list[str]:
    """Return all differences between the three."""
    found = [
        f"{topic.name}: its schema {topic.schema} is not in avro_schemas/"
        for topic in topology.topics
        if topic.schema and topic.schema not in schemas
    ]
    for connector in connectors:
        found += _writing(topology, connector)
        found += _reading(topology, connector)
    return found


def written_by(connector: Connector) -> tuple[str, ...]:
    """Return the topics a connector writes; an event's root type stays `${routedByValue}`."""
    config = connector.config
    prefix = config.get("topic.prefix")
    if prefix is None:
        return tuple(config[key] for key in (_DEAD_LETTERS, _CONTROL) if key in config)
    topics = [f"{prefix}.{table}" for table in _listed(config.get("table.include.list", ""))]
    topics.append(f"{prefix}.message")
    if int(config.get("heartbeat.interval.ms", "0")) > 0:
        heartbeat = config.get("topic.heartbeat.prefix", "__debezium-heartbeat")
        topics.append(f"{heartbeat}.{prefix}")
    return tuple(dict.fromkeys(_transformed(topic, connector) for topic in topics))


def read_by(connector: Connector, declared: Collection[str]) -> tuple[str, ...]:
    """Return the topics a sink reads."""
    config = connector.config
    pattern = config.get("topics.regex")
    matched = [name for name in declared if pattern and re.fullmatch(pattern, name)]
    return (*_listed(config.get("topics", "")), *_listed(config.get(_CONTROL, "")), *matched)


def _transformed(topic: str, connector: Connector) -> str:
    config = connector.config
    for name in _listed(config.get("transforms", "")):
        prefix = f"transforms.{name}."
        predicate = config.get(prefix + "predicate")
        pattern = config.get(f"predicates.{predicate}.pattern", ".*")
        if predicate and not re.fullmatch(pattern, topic):
            continue
        if config[prefix + "type"] == _EVENT_ROUTER:
            topic = config[prefix + "route.topic.replacement"]
        elif config[prefix + "type"] == _REGEX_ROUTER and re.fullmatch(
            config[prefix + "regex"], topic
        ):
            replacement = re.sub(r"\$(\d)", r"\\\1", config[prefix + "replacement"])
            topic = re.sub(config[prefix + "regex"], replacement, topic)
    return topic


def _writing(topology: Topology, connector: Connector) -> Iterator[str]:
    written: set[str] = set()
    for name in written_by(connector):
        declared = _declared(topology, name)
        if not declared:
            yield f"connector {connector.name} writes {name}, which no file in topics/ declares"
        written |= declared
    for topic in topology.topics:
        if topic.name in written and topic.writer != connector.name:
            yield f"{topic.name}: its writer is {topic.writer}, but {connector.name} writes it too"
        if topic.writer == connector.name and topic.name not in written:
            yield f"{topic.name}: its writer is {connector.name}, whose template never writes it"


def _reading(topology: Topology, connector: Connector) -> Iterator[str]:
    reads = set(read_by(connector, topology.by_name))
    for name in sorted(reads - set(topology.by_name)):
        yield f"connector {connector.name} reads {name}, which no file in topics/ declares"
    for topic in topology.topics:
        if (topic.name in reads) != (connector.name in topic.readers):
            does = "reads it" if topic.name in reads else "does not read it"
            yield f"{topic.name}: readers {list(topic.readers)}, but {connector.name} {does}"


def _declared(topology: Topology, name: str) -> set[str]:
    pattern = re.escape(name).replace(re.escape(_ANY), r"[^.]+")
    return {topic.name for topic in topology.topics if re.fullmatch(pattern, topic.name)}


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
