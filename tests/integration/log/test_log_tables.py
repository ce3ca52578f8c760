"""The tables and columns that others rely on by name, and what one of them takes."""

from __future__ import annotations

import asyncpg
import pytest

from streams.settings import Settings
from tests.support.log.databases import dsn

pytestmark = pytest.mark.stack

SCOPE = {"tenant_id": "text", "organization_id": "text"}
LINEAGE = {"last_seq": "bigint", "projection_version": "integer", "checksum": "text"}
TABLES = {
    "event": {
        **SCOPE,
        "event_id": "bigint",
        "execution_id": "bigint",
        "parent_execution_id": "bigint",
        "catalog_id": "bigint",
        "event_type": "text",
        "node_name": "text",
        "node_type": "text",
        "status": "text",
        "error": "text",
        "current_index": "bigint",
        "current_item": "json",
        "meta": "jsonb",
        "context": "json",
        "result": "json",
        "idempotency_key": "text",
        "schema_name": "text",
        "schema_version": "integer",
        "payload_ref": "json",
        "checksum": "bytea",
    },
    "execution": {
        **SCOPE,
        **LINEAGE,
        "execution_id": "bigint",
        "catalog_id": "bigint",
        "parent_execution_id": "bigint",
        "status": "text",
        "last_event_type": "text",
        "last_node_name": "text",
        "last_event_id": "bigint",
        "start_time": "timestamp with time zone",
        "end_time": "timestamp with time zone",
        "error": "text",
        "state": "jsonb",
    },
    "stage": {
        **SCOPE,
        **LINEAGE,
        "stage_id": "bigint",
        "execution_id": "bigint",
        "parent_event_id": "bigint",
        "kind": "text",
        "step_name": "text",
        "dsl_ref": "text",
        "status": "text",
        "frame_policy": "jsonb",
        "started_at": "timestamp with time zone",
        "ended_at": "timestamp with time zone",
    },
    "frame": {
        **SCOPE,
        **LINEAGE,
        "frame_id": "bigint",
        "stage_id": "bigint",
        "cursor": "jsonb",
        "row_count": "bigint",
        "status": "text",
        "owner_worker": "text",
        "lease_until": "timestamp with time zone",
        "output_ref": "jsonb",
        "events_emitted": "integer",
        "attempts": "integer",
        "created_at": "timestamp with time zone",
        "completed_at": "timestamp with time zone",
    },
    "result_ref": {
        **SCOPE,
        "ref": "text",
        "execution_id": "bigint",
        "parent_ref_id": "bigint",
        "step_name": "text",
        "task_label": "text",
        "scope": "text",
        "store_tier": "text",
        "physical_uri": "text",
        "expires_at": "timestamp with time zone",
        "extracted": "jsonb",
        "preview": "jsonb",
    },
    "projection_checkpoint": {
        "projection": "text",
        "shard_id": "text",
        "topic": "text",
        "topic_id": "text",
        "partition": "integer",
        "next_offset": "bigint",
        "last_position": "bigint",
        "checksum": "text",
        "updated_at": "timestamp with time zone",
    },
    "execution_shard": {
        "execution_id": "bigint",
        "shard_id": "text",
        "partition": "integer",
        "assigned_at": "timestamp with time zone",
    },
    "checkpoint": {
        "execution_id": "bigint",
        "barrier": "bigint",
        "seq": "bigint",
        "state_ref": "jsonb",
        "checksum": "text",
        "created_at": "timestamp with time zone",
    },
    # What a snapshot was made from: place, code, upcasters, payloads, keys, and what it gave.
    "snapshot": {
        **SCOPE,
        "seq": "bigint",
        "projection_version": "integer",
        "upcaster_versions": "jsonb",
        "payload_root": "text",
        "encryption_context": "jsonb",
        "checksum": "text",
        "state": "text",
    },
}
TIERS = ["memory", "kv", "disk", "object", "s3", "gcs", "db", "duckdb", "eventlog", "minio", "pvc"]
INSERT = (
    "INSERT INTO noetl.result_ref (ref_id, ref, execution_id, tenant_id, organization_id, "
    "store_tier, scope) VALUES ($1, $2, 1, 'acme', 'care', $3, 'step')"
)


@pytest.mark.parametrize("table", TABLES)
async def test_a_table_has_the_columns_that_others_name(database: Settings, table: str) -> None:
    reader = await asyncpg.connect(dsn(database, "read"))
    rows = await reader.fetch(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'noetl' AND table_name = $1",
        table,
    )
    await reader.close()
    assert TABLES[table].items() <= {row[0]: row[1] for row in rows}.items()


async def test_open_frames_are_found_by_an_index(database: Settings) -> None:
    reader = await asyncpg.connect(dsn(database, "read"))
    sql = "SELECT indexdef FROM pg_indexes WHERE indexname = 'frame_open_idx'"
    found = str(await reader.fetchval(sql))
    await reader.close()
    assert "ON noetl.frame USING btree (stage_id, status, lease_until)" in found
    assert all(status in found for status in ("PENDING", "CLAIMED", "RUNNING"))


async def test_a_result_may_be_in_every_store_and_in_no_other(database: Settings) -> None:
    projector = await asyncpg.connect(dsn(database, "project"))
    try:
        for number, tier in enumerate(TIERS, start=1):
            await projector.execute(INSERT, number, f"noetl://{tier}", tier)
        with pytest.raises(asyncpg.CheckViolationError, match="result_ref_store_tier_check"):
            await projector.execute(INSERT, 99, "noetl://tape", "tape")
        found = await projector.fetchval("SELECT count(DISTINCT store_tier) FROM noetl.result_ref")
    finally:
        await projector.close()
    assert found == len(TIERS) == 11
