"""What every schema registry promises, whoever keeps the ids."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import aiohttp
import asyncpg
import pytest

from streams.errors import Refused, Unavailable
from streams.schema.registry import (
    FileRegistry,
    MemoryRegistry,
    SchemaRegistry,
    UnknownSchemaId,
)
from streams.schema.registry_external import ExternalRegistry, RegistryClient
from streams.schema.registry_postgres import DatabaseRegistry
from streams.schema.release import release
from streams.schema.released import fingerprint
from streams.settings import Settings
from tests.support.log.databases import dsn

# Opens a registry in which the given schemas may be asked for.
Open = Callable[..., Awaitable[SchemaRegistry]]


@pytest.fixture
def registry_dsn(database: Settings) -> str:
    return dsn(database)


@pytest.fixture(
    params=[
        "memory",
        "file",
        pytest.param("db", marks=pytest.mark.stack),
        pytest.param("external", marks=pytest.mark.stack),
    ]
)
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Which adapter, and where its server is; only the servers that are needed are started."""
    needed = {"db": "registry_dsn", "external": "registry_url"}.get(request.param)
    return request.param, request.getfixturevalue(needed) if needed else ""


@pytest.fixture
async def open_registry(place: tuple[str, str], tmp_path: Path) -> AsyncIterator[Open]:
    kind, address = place
    memory = MemoryRegistry()
    async with AsyncExitStack() as resources:

        async def opened(*schemas: str) -> SchemaRegistry:
            if kind == "memory":
                return memory
            if kind == "file":
                return FileRegistry(_released(tmp_path, schemas))
            if kind == "db":
                pool = asyncpg.create_pool(address, min_size=1, max_size=8)
                return DatabaseRegistry(await resources.enter_async_context(pool))
            session = await resources.enter_async_context(aiohttp.ClientSession())
            return ExternalRegistry(RegistryClient(address, session))

        yield opened


def _released(folder: Path, schemas: tuple[str, ...]) -> Path:
    for schema in schemas:
        name = json.loads(schema)["name"]
        if not (folder / f"{name}.avsc").exists():
            (folder / f"{name}.avsc").write_text(schema)
            release(folder, name)
    return folder


def new_schema() -> str:
    """A schema nobody has registered before: servers outlive a test."""
    return json.dumps(
        {
            "type": "record",
            "name": f"R{uuid4().hex}",
            "namespace": "noetl",
            "doc": "Zeichen außerhalb von ASCII",
            "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": "int", "default": 0}],
        }
    )


def new_subject() -> str:
    return f"noetl.events.{uuid4().hex}-value"


async def test_asking_twice_gives_the_same_id(open_registry: Open) -> None:
    schema, subject = new_schema(), new_subject()
    registry = await open_registry(schema)
    assert await registry.id_for(subject, schema) == await registry.id_for(subject, schema)


async def test_another_process_gets_the_same_id(open_registry: Open) -> None:
    schema, subject = new_schema(), new_subject()
    first = await (await open_registry(schema)).id_for(subject, schema)
    assert await (await open_registry(schema)).id_for(subject, schema) == first


async def test_the_schema_behind_an_id_is_the_one_that_got_it(open_registry: Open) -> None:
    schema = new_schema()
    registry = await open_registry(schema)
    schema_id = await registry.id_for(new_subject(), schema)
    assert fingerprint(await registry.schema(schema_id)) == fingerprint(schema)


async def test_an_id_fits_the_wire_format(open_registry: Open) -> None:
    schema = new_schema()
    registry = await open_registry(schema)
    assert 0 < await registry.id_for(new_subject(), schema) < 2**31


async def test_one_schema_has_one_id_under_all_its_subjects(open_registry: Open) -> None:
    schema = new_schema()
    registry = await open_registry(schema)
    ids = {await registry.id_for(new_subject(), schema) for _ in range(3)}
    assert len(ids) == 1


async def test_two_schemas_have_two_ids(open_registry: Open) -> None:
    one, two = new_schema(), new_schema()
    registry = await open_registry(one, two)
    assert await registry.id_for(new_subject(), one) != await registry.id_for(new_subject(), two)


async def test_whitespace_and_the_order_of_keys_make_no_new_id(open_registry: Open) -> None:
    schema, subject = new_schema(), new_subject()
    registry = await open_registry(schema)
    respelt = json.dumps(json.loads(schema), indent=3, sort_keys=True, ensure_ascii=False)
    assert respelt != schema
    assert await registry.id_for(subject, respelt) == await registry.id_for(subject, schema)


async def test_processes_that_start_together_agree_on_one_id(open_registry: Open) -> None:
    schema, subject = new_schema(), new_subject()
    registry = await open_registry(schema)
    ids = await asyncio.gather(*(registry.id_for(subject, schema) for _ in range(8)))
    assert len(set(ids)) == 1


async def test_an_id_nobody_gave_is_unknown(open_registry: Open) -> None:
    registry = await open_registry(new_schema())
    with pytest.raises(UnknownSchemaId, match=str(2**31 - 1)):
        await registry.schema(2**31 - 1)


async def test_the_list_shows_what_was_registered(open_registry: Open) -> None:
    schema = new_schema()
    registry = await open_registry(schema)
    schema_id = await registry.id_for(new_subject(), schema)
    listed = {one.schema_id: one for one in await registry.list()}
    assert fingerprint(listed[schema_id].schema) == fingerprint(schema)
    assert listed[schema_id].version == 1


async def test_a_registry_that_does_not_answer_is_unavailable(unused_tcp_port: int) -> None:
    async with aiohttp.ClientSession() as session:
        client = RegistryClient(f"http://user:s3cret@127.0.0.1:{unused_tcp_port}", session)
        with pytest.raises(Unavailable, match="check that it runs") as raised:
            await ExternalRegistry(client).schema(1)
    assert "s3cret" not in str(raised.value)


@pytest.mark.stack
async def test_a_schema_the_registry_cannot_read_is_refused(registry_url: str) -> None:
    async with aiohttp.ClientSession() as session:
        registry = ExternalRegistry(RegistryClient(registry_url, session))
        with pytest.raises(Refused, match="HTTP 4"):
            await registry.id_for(new_subject(), '{"type": "strnig"}')


@pytest.mark.stack
async def test_a_database_that_closed_the_connection_is_unavailable(registry_dsn: str) -> None:
    connection = await asyncpg.connect(registry_dsn)
    await connection.close()
    with pytest.raises(Unavailable, match="Postgres does not answer"):
        await DatabaseRegistry(connection).schema(1)


@pytest.mark.stack
async def test_the_role_that_appends_registers_and_the_one_that_reads_cannot(
    database: Settings,
) -> None:
    address, schema = database.event_store.canonical_connection, new_schema()
    async with (
        asyncpg.create_pool(address.dsn("append"), min_size=1) as appending,
        asyncpg.create_pool(address.dsn("read"), min_size=1) as reading,
    ):
        schema_id = await DatabaseRegistry(appending).id_for(new_subject(), schema)
        reader = DatabaseRegistry(reading)
        assert fingerprint(await reader.schema(schema_id)) == fingerprint(schema)
        with pytest.raises(Refused, match="use the role for its duty"):
            await reader.id_for(new_subject(), new_schema())
