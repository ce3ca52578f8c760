"""What the database itself holds: one role per duty, unique claims, checks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from streams.settings import Settings
from streams.settings.event_store import Duty
from tests.support.log.databases import dsn

pytestmark = pytest.mark.stack

WRITES_TO_THE_LOG = [
    "INSERT INTO noetl.event (root_id) VALUES (1)",
    "INSERT INTO noetl.event_past (root_id) VALUES (1)",
    "UPDATE noetl.event SET status = 'other'",
    "DELETE FROM noetl.event",
    "TRUNCATE noetl.event",
    "INSERT INTO noetl.root_head VALUES (1, 'execution', 'acme', 'care')",
    "UPDATE noetl.root_head SET seq = 0",
    "SELECT noetl.insert_events('{}')",
    "SELECT noetl.append_batch('{}')",
    "ALTER TABLE noetl.event DROP COLUMN chain",
]
APPEND = "SELECT * FROM noetl.append('{}'::noetl.new_event[])"
DUTIES: list[Duty] = ["append", "read", "mirror", "project", "collect"]


async def as_duty(database: Settings, duty: Duty, sql: str) -> list[Any]:
    connection = await asyncpg.connect(dsn(database, duty))
    try:
        return list(await connection.fetch(sql))
    finally:
        await connection.close()


@pytest.mark.parametrize("sql", WRITES_TO_THE_LOG)
@pytest.mark.parametrize("duty", DUTIES)
async def test_nobody_writes_the_log_but_through_its_function(
    database: Settings, duty: Duty, sql: str
) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await as_duty(database, duty, sql)


@pytest.mark.parametrize("duty", ["read", "mirror", "project", "collect"])
async def test_only_the_appender_may_append(database: Settings, duty: Duty) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append"):
        await as_duty(database, duty, APPEND)


@pytest.mark.parametrize("duty", DUTIES)
async def test_every_duty_may_read_the_log(database: Settings, duty: Duty) -> None:
    assert await as_duty(database, duty, "SELECT count(*) FROM noetl.event")


@pytest.mark.parametrize("duty", ["append", "read", "project", "collect"])
async def test_the_specification_s_names_can_be_read(database: Settings, duty: Duty) -> None:
    for view in ("event_log", "loop_event", "frame_as_shard"):
        assert await as_duty(database, duty, f"SELECT count(*) FROM noetl.{view}")


@pytest.mark.parametrize("table", ["execution", "stage", "frame", "command", "result_ref"])
async def test_projections_are_written_by_projectors_and_read_by_readers(
    database: Settings, table: str
) -> None:
    assert await as_duty(database, "project", f"DELETE FROM noetl.{table} RETURNING 1") == []
    assert await as_duty(database, "read", f"SELECT FROM noetl.{table}") == []
    for duty in ("read", "append", "mirror"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await as_duty(database, duty, f"DELETE FROM noetl.{table}")


@pytest.mark.parametrize("duty", DUTIES)
@pytest.mark.parametrize("columns", ["ciphertext", "nonce", "*"])
async def test_no_duty_may_read_what_is_sealed(
    database: Settings, duty: Duty, columns: str
) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await as_duty(database, duty, f"SELECT {columns} FROM noetl.credential")


@pytest.mark.parametrize("duty", ["read", "mirror", "project", "collect"])
async def test_only_the_appender_may_ask_for_a_claims_credential(
    database: Settings, duty: Duty
) -> None:
    ask = "SELECT * FROM noetl.credential_for_claim(1, 'execution/1/frame/1', 1, 'w', 'pg')"
    assert await as_duty(database, "append", ask) == []
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await as_duty(database, duty, ask)


# ---------------------------------------------------------------- indexes and checks


@pytest.fixture
async def owner(database: Settings) -> AsyncIterator[asyncpg.Connection]:
    """A connection that writes by hand, in a transaction that is rolled back."""
    connection = await asyncpg.connect(dsn(database))
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


async def insert(owner: asyncpg.Connection, seq: int, **changes: Any) -> None:
    """Insert a row by hand, as no program of ours does."""
    row: dict[str, Any] = {
        "root_id": 1,
        "seq": seq,
        "root_type": "execution",
        "event_id": seq,
        "tenant_id": "acme",
        "organization_id": "care",
        "stream_id": "execution/1",
        "stream_version": seq,
        "aggregate_type": "execution",
        "aggregate_id": "execution/1",
        "event_type": "command.issued",
        "schema_name": "noetl.command.issued",
        "schema_version": 1,
        "producer": "noetl://tenant/acme",
        "correlation_id": "1",
        "idempotency_key": str(seq),
        "meta": "{}",
        "checksum": bytes(32),
        "digest": bytes(32),
        "chain": bytes(32),
        "envelope": b"",
        **changes,
    }
    marks = ", ".join(f"${at}" for at in range(1, len(row) + 1))
    await owner.execute(
        f"INSERT INTO noetl.event (event_time, ingest_time, {', '.join(row)})"
        f" VALUES (now(), now(), {marks})",
        *row.values(),
    )


UNIQUE = [
    ("uidx_event_command_issued_command_id", "command.issued", "command_id"),
    ("uidx_event_loop_done_loop_id", "loop.done", "loop_id"),
    ("uidx_event_loop_fanin_completed_loop_id", "loop.fanin.completed", "loop_id"),
]


@pytest.mark.parametrize(("index", "event_type", "field"), UNIQUE)
async def test_the_unique_indexes_of_the_specification_are_there_and_hold(
    owner: asyncpg.Connection, index: str, event_type: str, field: str
) -> None:
    found = await owner.fetchval(
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'noetl' AND indexname = $1", index
    )
    assert found.startswith("CREATE UNIQUE INDEX")
    assert event_type in found
    await insert(owner, 1, event_type=event_type, meta=f'{{"{field}": "7"}}')
    await insert(owner, 2, event_type=event_type, meta=f'{{"{field}": "8"}}')
    await insert(owner, 3, event_type="step.enter", meta=f'{{"{field}": "7"}}')
    await insert(owner, 4, event_type=event_type)
    await insert(owner, 5, event_type=event_type)
    await insert(owner, 1, root_id=2, event_type=event_type, meta=f'{{"{field}": "7"}}')
    with pytest.raises(asyncpg.UniqueViolationError):
        await insert(owner, 6, event_type=event_type, meta=f'{{"{field}": "7"}}')


async def test_the_loop_index_of_the_specification_is_there_and_of_use(
    owner: asyncpg.Connection,
) -> None:
    await owner.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
    plan = await owner.fetch("""
        EXPLAIN SELECT count(*) FROM noetl.event_past
        WHERE execution_id = 1 AND meta ? 'loop_id' AND meta->>'loop_id' = '7'
          AND event_type = 'loop.item'
    """)
    text = "\n".join(row[0] for row in plan)
    index = await owner.fetchval("""
        SELECT i.inhrelid::regclass::text
        FROM pg_inherits i JOIN pg_index x ON x.indexrelid = i.inhrelid
        WHERE i.inhparent = 'noetl.idx_event_loop_id_type'::regclass
          AND x.indrelid = 'noetl.event_past'::regclass
    """)
    assert index.removeprefix("noetl.") in text


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({"root_type": "planet"}, "event_root_type"),
        ({"tenant_id": ""}, "event_scope"),
        ({"organization_id": ""}, "event_scope"),
        ({"envelope": bytes(131073)}, "event_size"),
        ({"checksum": b"short"}, "event_digests"),
        ({"digest": b"short"}, "event_digests"),
    ],
)
async def test_what_the_mirror_could_not_carry_is_kept_out(
    owner: asyncpg.Connection, changes: dict[str, Any], constraint: str
) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match=constraint):
        await insert(owner, 1, **changes)


@pytest.mark.parametrize("changes", [{"idempotency_key": "1"}, {"stream_version": 1}, {"seq": 1}])
async def test_a_place_a_version_and_a_key_are_taken_once(
    owner: asyncpg.Connection, changes: dict[str, Any]
) -> None:
    await insert(owner, 1)
    with pytest.raises(asyncpg.UniqueViolationError):
        await insert(owner, **{"seq": 2, **changes})


async def test_a_claim_is_taken_once_per_root(owner: asyncpg.Connection) -> None:
    await insert(owner, 1, claim="loop.done:7")
    await insert(owner, 1, root_id=2, claim="loop.done:7")
    with pytest.raises(asyncpg.UniqueViolationError):
        await insert(owner, 2, claim="loop.done:7")
