"""Sinks to graphs: the embedded engine, and a Neo4j server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ladybug
import pytest

from streams.worker.errors import TargetUnavailable
from tests.sinks import Sinks, kind


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
