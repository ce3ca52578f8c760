"""topics/, avro_schemas/ and connectors/ agree, and each way to disagree is found."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from streams.mirror.agreement import disagreements
from streams.mirror.connectors import Connector, load
from streams.topology import Topic, Topology
from streams.topology import load as load_topology

REPOSITORY = Path(__file__).resolve().parents[3]
FACTS = {"ExecutionFact", "StageFact", "FrameFact", "BillingFact", "AuditFact"}
SCHEMAS = {"Event", "Trigger", *FACTS}
SINK = Connector("warehouse", {"topics": "noetl.mirror.message"})


@pytest.fixture(scope="module")
def topology() -> Topology:
    return load_topology(REPOSITORY / "topics")


@pytest.fixture(scope="module")
def mirror() -> Connector:
    (template,) = [one for one in load(REPOSITORY / "connectors") if one.name == "noetl-mirror"]
    return template


def changed(topology: Topology, name: str, **changes: object) -> Topology:
    def change(topic: Topic) -> Topic:
        return replace(topic, **changes) if topic.name == name else topic  # type: ignore[arg-type]

    return Topology(tuple(change(topic) for topic in topology.topics))


def configured(connector: Connector, **changes: str) -> Connector:
    given = {key.replace("_", "."): value for key, value in changes.items()}
    return Connector(connector.name, {**connector.config, **given})


def test_the_repository_agrees_with_itself(topology: Topology) -> None:
    schemas = {path.stem for path in (REPOSITORY / "avro_schemas").glob("*.avsc")}
    assert disagreements(topology, schemas, load(REPOSITORY / "connectors")) == []


def test_the_mirror_reads_the_columns_that_the_log_publishes(mirror: Connector) -> None:
    (migration,) = (REPOSITORY / "streams/log/migrations").glob("0001_*.up.sql")
    sql = migration.read_text(encoding="utf-8")
    published = re.search(
        r"CREATE PUBLICATION noetl_mirror\s+FOR TABLE noetl\.event \(([^)]+)\)", sql
    )
    assert published
    columns = {column.strip() for column in published[1].split(",")}
    included = re.fullmatch(r"noetl\\\.event\\\.\(([^)]+)\)", mirror.config["column.include.list"])
    assert included
    assert set(included[1].split("|")) == columns
    placed = mirror.config["transforms.event.table.fields.additional.placement"].split(",")
    headers = {one.partition(":")[0] for one in placed}
    own = {
        mirror.config[f"transforms.event.{key}"]
        for key in (
            "route.by.field",
            *(f"table.field.event.{one}" for one in ("id", "key", "payload", "timestamp")),
        )
    }
    assert headers | own == columns


def test_a_schema_without_a_file_is_found(topology: Topology, mirror: Connector) -> None:
    found = disagreements(topology, set(), [mirror])
    assert "noetl.events.execution: its schema Event is not in avro_schemas/" in found


def test_a_second_writer_is_found(topology: Topology, mirror: Connector) -> None:
    other = changed(topology, "noetl.events.tenant", writer="planner")
    assert disagreements(other, SCHEMAS, [mirror]) == [
        "noetl.events.tenant: its writer is planner, but noetl-mirror writes it too"
    ]


def test_a_topic_its_writer_never_writes_is_found(topology: Topology, mirror: Connector) -> None:
    other = changed(topology, "noetl.connect.status", writer="noetl-mirror")
    assert disagreements(other, SCHEMAS, [mirror]) == [
        "noetl.connect.status: its writer is noetl-mirror, whose template never writes it"
    ]


def test_an_undeclared_target_is_found(topology: Topology, mirror: Connector) -> None:
    fewer = Topology(tuple(one for one in topology.topics if one.name != "noetl.mirror.message"))
    assert disagreements(fewer, SCHEMAS, [mirror]) == [
        "connector noetl-mirror writes noetl.mirror.message, which no file in topics/ declares"
    ]


def test_a_predicate_that_matches_no_table_is_found(topology: Topology, mirror: Connector) -> None:
    key = "predicates.is-event.pattern"
    missed = Connector(mirror.name, {**mirror.config, key: "noetl_event"})
    found = disagreements(topology, SCHEMAS, [missed])
    assert found[0].startswith("connector noetl-mirror writes noetl.mirror.noetl.event, which no")


def test_a_heartbeat_that_is_not_routed_is_found(topology: Topology, mirror: Connector) -> None:
    found = disagreements(topology, SCHEMAS, [configured(mirror, transforms="event")])
    assert [one.split(",")[0] for one in found] == [
        "connector noetl-mirror writes __debezium-heartbeat.noetl.mirror"
    ]


def test_a_sink_must_be_named_among_the_readers(topology: Topology, mirror: Connector) -> None:
    found = disagreements(topology, SCHEMAS, [mirror, SINK])
    assert found == [
        "noetl.mirror.message: readers ['watermark'], but warehouse reads it",
    ]
    agreed = changed(topology, "noetl.mirror.message", readers=("watermark", "warehouse"))
    assert disagreements(agreed, SCHEMAS, [mirror, SINK]) == []


def test_a_reader_that_does_not_read_is_found(topology: Topology) -> None:
    other = changed(topology, "noetl.mirror.message", readers=("warehouse",))
    idle = Connector("warehouse", {"topics.regex": r"noetl\.events\.nothing.*"})
    assert disagreements(other, SCHEMAS, [idle]) == [
        "noetl.mirror.message: readers ['warehouse'], but warehouse does not read it"
    ]


def test_a_sink_of_an_undeclared_topic_is_found(topology: Topology) -> None:
    astray = Connector("warehouse", {"topics": "noetl.nothing"})
    assert disagreements(topology, SCHEMAS, [astray]) == [
        "connector warehouse reads noetl.nothing, which no file in topics/ declares"
    ]
