"""Topics are declared once, well, and as the picture shows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from streams.errors import Refused
from streams.facts import views as fact_views
from streams.kafka.names import event_topic
from streams.projector import views
from streams.roles import planner
from streams.topology import BadDeclaration, Topology, draw, load

REPOSITORY = Path(__file__).resolve().parents[3]
SINKS = {"noetl-analytics-events", "noetl-lake-events"}
"""Readers by their connectors; the agreement of topics and connectors is tested elsewhere."""

GOOD = """\
- name: noetl.things
  partitions: 6
  local:
    partitions: 2
  retention: 2h
  cleanup: delete
  key: thing id
  schema: Event
  writer: maker
  readers: [taker, baker]
  why: Things are made here.
"""


def declare(folder: Path, text: str, name: str = "things.yaml") -> Topology:
    (folder / name).write_text(text, encoding="utf-8")
    return load(folder)


@pytest.fixture(scope="module")
def declared() -> Topology:
    return load(REPOSITORY / "topics")


def test_a_declaration_is_read_as_a_value(tmp_path: Path) -> None:
    (topic,) = declare(tmp_path, GOOD).topics
    assert (topic.name, topic.partitions, topic.readers) == ("noetl.things", 6, ("taker", "baker"))
    assert topic.settings == {
        "cleanup.policy": "delete",
        "retention.ms": "7200000",
        "min.insync.replicas": "2",
    }


def test_a_single_broker_gets_its_own_partitions_and_one_replica(tmp_path: Path) -> None:
    (topic,) = declare(tmp_path, GOOD).at("local").topics
    assert (topic.partitions, topic.replication) == (2, 1)
    assert topic.settings["min.insync.replicas"] == "1"


def test_a_cluster_gets_what_is_declared(tmp_path: Path) -> None:
    topology = declare(tmp_path, GOOD)
    assert topology.at("cluster") == topology


def test_forever_is_kafkas_minus_one(tmp_path: Path) -> None:
    (topic,) = declare(tmp_path, GOOD.replace("2h", "forever")).topics
    assert topic.retention_ms == -1


def test_a_compacted_topic_has_no_retention_of_its_own(tmp_path: Path) -> None:
    text = GOOD.replace("2h", "forever").replace("cleanup: delete", "cleanup: compact")
    (topic,) = declare(tmp_path, text).topics
    assert "retention.ms" not in topic.settings


def test_a_topics_own_settings_are_added_to_the_usual_ones(tmp_path: Path) -> None:
    text = GOOD + "  config: {max.message.bytes: '2000000'}\n"
    (topic,) = declare(tmp_path, text).topics
    assert topic.settings["max.message.bytes"] == "2000000"


@pytest.mark.parametrize(
    ("was", "now", "line", "says"),
    [
        ("partitions: 6", "partitions: six", 2, "partitions: "),
        ("partitions: 6", "partitions: 0", 2, "partitions: "),
        ("    partitions: 2", "    partitions: 0", 3, "local.partitions: "),
        ("retention: 2h", "retention: 2 hours", 5, "retention: must be 'forever' or a number"),
        ("cleanup: delete", "cleanup: shred", 6, "cleanup: "),
        ("cleanup: delete", "cleanup: compact", 1, "topic: a compacted topic keeps the newest"),
        ("writer: maker", "writer: [maker, other]", 9, "writer: a topic has exactly one writer"),
        ("  why: Things", "  wyh: Things", 1, "why: missing"),
        ("schema: Event", "schema: Event\n  colour: red", 9, "colour: unknown key"),
        ("key: thing id", "key: thing id\n  key: other id", 8, "key: given twice"),
        ("name: noetl.things", "name: noetl things", 1, "name: "),
        ("key: thing id", "key: [thing", 8, "not YAML"),
    ],
)
def test_a_bad_value_names_file_line_and_key(
    tmp_path: Path, was: str, now: str, line: int, says: str
) -> None:
    with pytest.raises(BadDeclaration) as caught:
        declare(tmp_path, GOOD.replace(was, now))
    assert str(caught.value).startswith(f"{tmp_path / 'things.yaml'}:{line}: {says}")
    assert "\n" not in str(caught.value)


def test_a_topic_declared_in_two_files_is_refused_with_both_places(tmp_path: Path) -> None:
    declare(tmp_path, GOOD, "a.yaml")
    with pytest.raises(BadDeclaration, match=r"b\.yaml:1: .*already declared at .*a\.yaml:1"):
        declare(tmp_path, GOOD, "b.yaml")


@pytest.mark.parametrize("text", ["name: noetl.things\n", "- noetl.things\n"])
def test_a_file_that_is_not_a_list_of_mappings_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadDeclaration, match=r"things\.yaml:1: "):
        declare(tmp_path, text)


def test_a_folder_without_declarations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no topic is declared"):
        load(tmp_path)


def test_the_picture_has_an_arrow_from_the_writer_and_to_each_reader(tmp_path: Path) -> None:
    page = draw(declare(tmp_path, GOOD))
    arrows = re.findall(r"^  (\S+) --> (\S+)$", page, re.MULTILINE)
    assert arrows == [
        ("p_maker", "t_noetl_things"),
        ("t_noetl_things", "p_taker"),
        ("t_noetl_things", "p_baker"),
    ]


def test_the_picture_in_the_docs_is_the_declared_one(declared: Topology) -> None:
    page = (REPOSITORY / "docs" / "topology.md").read_text(encoding="utf-8")
    assert page == draw(declared), "stale: run `streams topics draw`"


def test_every_event_topic_is_keyed_and_carries_our_schema(declared: Topology) -> None:
    topics = [declared.by_name[event_topic(root)] for root in declared.roots]
    assert topics
    assert all(topic.key and topic.schema == "Event" for topic in topics)
    assert {topic.cleanup for topic in topics} == {"delete"}, "compaction would lose history"


def test_an_execution_has_more_than_one_partition_even_on_one_broker(declared: Topology) -> None:
    execution = declared.by_name[event_topic("execution")]
    assert execution.partitions > execution.at("local").partitions > 1


def test_every_root_of_the_event_catalogue_has_its_topic(declared: Topology) -> None:
    text = (REPOSITORY / "streams/events/catalogue.yaml").read_text(encoding="utf-8")
    assert set(declared.roots) == set(yaml.safe_load(text)["roots"])


def test_only_roles_that_read_an_event_topic_are_named_as_its_readers(declared: Topology) -> None:
    read = {
        "planner": {planner.TOPIC},
        "projector": {event_topic(root) for root in views.ROOTS},
        "facts": {event_topic(root) for root in fact_views.ROOTS},
    }
    for root in declared.roots:
        name = event_topic(root)
        actual = {role for role, topics in read.items() if name in topics}
        assert set(declared.by_name[name].readers) - SINKS == actual, name
