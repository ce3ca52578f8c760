"""Sinks to graphs: the embedded engine, and a Neo4j server."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import ladybug
import pytest
from neo4j import GraphDatabase

from streams.worker.errors import TargetUnavailable
from tests.support.servers.neo4j import neo4j_server
from tests.support.worker.sinks import Sinks, call, kind

HELD = "import ladybug, sys; g = ladybug.Database(sys.argv[1]); print(flush=True); sys.stdin.read()"
STATEMENT = """
MERGE (e:Execution {id: $execution})
MERGE (s:Step {name: $step})
MERGE (e)-[:HAS_STEP]->(s)
SET s.message = $message, s.tags = $tags
"""


async def test_a_graph_is_merged(sinks: Sinks, tmp_path: Path) -> None:
    def ask(*statements: str) -> Any:
        database = ladybug.Database(str(tmp_path / "g"))
        session = ladybug.Connection(database)
        try:
            for statement in statements:
                answer: Any = session.execute(statement)
            return answer.get_all() if answer.has_next() else []
        finally:
            session.close()
            database.close()

    ask("CREATE NODE TABLE Execution(id STRING, PRIMARY KEY(id))")
    block = {
        "storage": "graph",
        "spec": {"dialect": "cypher", "driver": "ladybug", "path": "g"},
        "statement": "MERGE (e:Execution {id: $execution_id})",
        "params": {"execution_id": "{{ execution_id }}"},
    }
    assert (await sinks.twice(block))["store"] == "graph"
    assert ask("MATCH (e:Execution) RETURN e.id") == [["7"]]
    wrong = {**block, "statement": "MERGE (e:Nothing {id: $execution_id})"}
    assert kind(await sinks.once(wrong)) == "graph.binder"


async def test_a_credential_names_the_driver_unless_the_block_does(tmp_path: Path) -> None:
    known = {"driver": "ladybug", "path": str(tmp_path / "g"), "url": "bolt://127.0.0.1:9"}
    sinks = Sinks(tmp_path, {"g": known | {"user": "a", "password": "b"}})
    block: dict[str, Any] = {"storage": "graph", "auth": "g", "statement": "RETURN 1"}
    assert (await sinks.once(block | {"spec": {"dialect": "cypher"}})).error is None
    with pytest.raises(TargetUnavailable):
        await sinks.once(block | {"spec": {"driver": "neo4j"}})
    await sinks.tool.close()


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (RETURN 1 AS a) TO '{}'",
        "/* a */ RETURN '\\''; // b\n profile COPY (RETURN 1 AS a) TO '{}'",
        "EXPORT DATABASE '{}'",
        "MATCH (n) LOAD FROM '{}' RETURN 1",
        "INSTALL json",
        "FORCE INSTALL json",
        "RETURN 1; explain force /* a */ install json",
        "UPDATE json",
        "UNINSTALL json",
        "\u180eCOPY (RETURN 1 AS a) TO '{}'",
        "\ufeffCOPY (RETURN 1 AS a) TO '{}'",
        "MATCH (n) LOAD\u180eFROM '{}' RETURN 1",
        "/* a **/ RETURN 1 /* b */ COPY (RETURN 1 AS a) TO '{}'",
    ],
)
async def test_a_statement_reaches_no_other_file(
    sinks: Sinks, tmp_path: Path, statement: str
) -> None:
    other = tmp_path / "other.csv"
    block = {"storage": "graph", "spec": {"driver": "ladybug", "path": "g"}}
    assert kind(await sinks.once({**block, "statement": statement.format(other)})) == "graph.config"
    assert not other.exists()


async def test_what_only_looks_like_files_or_locks_is_none(sinks: Sinks, tmp_path: Path) -> None:
    block: dict[str, Any] = {"storage": "graph", "spec": {"driver": "ladybug", "path": "g"}}
    fine = "UNWIND [{load: 'x; COPY y'}] AS load RETURN load.load AS copy"
    await sinks.twice({**block, "statement": fine})
    wrong = {**block, "statement": "MERGE (b:Block {id: $id})", "params": {"id": 1}}
    assert kind(await sinks.once(wrong)) == "graph.binder"
    (tmp_path / "file").write_text("")
    inside = {"driver": "ladybug", "path": "file/g"}
    assert kind(await sinks.once({**block, "spec": inside, "statement": fine})) == "graph.os"


async def test_a_graph_that_another_process_has_open_is_unavailable(
    sinks: Sinks, tmp_path: Path
) -> None:
    block = {"storage": "graph", "spec": {"driver": "ladybug", "path": "g"}}
    held = [sys.executable, "-c", HELD, str(tmp_path / "g")]
    holder = await asyncio.create_subprocess_exec(*held, stdin=PIPE, stdout=PIPE)
    assert holder.stdout is not None
    await holder.stdout.readline()
    with pytest.raises(TargetUnavailable):
        await sinks.once({**block, "statement": "RETURN 1"})
    await holder.communicate(b"")


async def test_neo4j_that_is_down_is_unavailable(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path, {"g": {"url": "bolt://127.0.0.1:9", "user": "a", "password": "b"}})
    block = {
        "storage": "graph",
        "auth": "g",
        "statement": "MERGE (n:N {a: $a})",
        "params": {"a": 1},
    }
    with pytest.raises(TargetUnavailable):
        await sinks.once(block)
    await sinks.tool.close()


@pytest.fixture(scope="module")
async def neo4j(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, str]]:
    """The credential of a server of this module's own."""
    async with neo4j_server(tmp_path_factory.mktemp("neo4j")) as login:
        yield login


@pytest.mark.stack
@pytest.mark.timeout(600)
async def test_neo4j_merges_the_same_and_says_what_it_refuses(
    tmp_path: Path, neo4j: dict[str, str]
) -> None:
    def ask(statement: str) -> list[list[Any]]:
        with GraphDatabase.driver(neo4j["url"], auth=(neo4j["user"], neo4j["password"])) as driver:
            return [list(record) for record in driver.execute_query(statement).records]

    strange = {"user": "neo4j", "password": "another", "url": neo4j["url"]}
    sinks = Sinks(tmp_path, {"g": neo4j, "strange": strange})
    block = {"storage": "graph", "auth": "g", "spec": {"dialect": "cypher"}}
    values = {"execution": "{{ execution_id }}", "step": "load", "message": "it's"}
    values["tags"] = "{{ result }}"
    ask("CREATE CONSTRAINT FOR (e:Execution) REQUIRE e.id IS UNIQUE")
    create = {**block, "statement": "CREATE (:Execution {id: $id})", "params": {"id": "7"}}
    try:
        at = call()
        merge = {**block, "statement": STATEMENT, "params": values}
        outcome = [await sinks.once(merge, at, result=["a", "b"]) for _ in range(2)]
        doubled = await sinks.once(create)
        nonsense = await sinks.once({**block, "statement": "MERG (n)"})
        nested = await sinks.once(merge, result={"a": {"b": 1}})
        nobody = await sinks.once({**create, "auth": "strange"})
    finally:
        await sinks.tool.close()
    # 2 nodes, 1 relationship and 4 properties; then only the 2 that are set again.
    assert [one.data["range"] for one in outcome] == ["changes:7", "changes:2"]
    found = "MATCH (e:Execution)-[:HAS_STEP]->(s) RETURN e.id, s.name, s.message, s.tags"
    assert ask(found) == [["7", "load", "it's", ["a", "b"]]]
    assert kind(doubled) == "graph.constraintvalidationfailed"
    assert kind(nonsense) == "graph.syntaxerror"
    assert kind(nested) == "graph.typeerror"
    assert kind(nobody) == "graph.unauthorized"
