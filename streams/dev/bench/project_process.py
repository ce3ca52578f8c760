"""A measured process of the bench of projections: the projector on our transport.

`python -m streams.dev.bench.project_process '{"mode": "project", …}'`; the folder has the DSN.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import MappingProxyType

import asyncpg

from streams.app.log import open_pool
from streams.data_folder import write_private
from streams.dev.bench.table_options import TableProcessOptions, options_given, report
from streams.dev.bench.table_process import TableProcess
from streams.events.codec import Codec, event_schema
from streams.kafka.feed.record_suspects import Batch
from streams.log.postgres import PostgresEventStore
from streams.projector.loop import Projector
from streams.projector.postgres import PostgresProjections
from streams.resources import folder
from streams.roles.allocator import collect_rarely
from streams.schema.registry import FileRegistry

MAX_RECORDS, GATHER_S = 2000, 0.1  # as the role's
_CONNECTION = "dsn"
LIMIT_S = 20.0


def write_dsn(options: TableProcessOptions, dsn: str, schema_id: int) -> None:
    """Write what a measured process connects to; it has a password."""
    home = Path(options.folder)
    home.mkdir(parents=True, exist_ok=True)
    write_private(home / _CONNECTION, f"{schema_id} {dsn}".encode())


def read_dsn(options: TableProcessOptions) -> tuple[Codec, str]:
    """Return the codec and the DSN that `write_dsn` wrote."""
    schema_id, _, dsn = (Path(options.folder) / _CONNECTION).read_text("utf-8").partition(" ")
    return Codec(int(schema_id), event_schema(), FileRegistry(folder("avro_schemas"))), dsn


class Project(TableProcess):
    """The projector, with the tables in Postgres; reports the records of each batch."""

    tables: Mapping[str, str] = MappingProxyType({})

    def __init__(self, options: TableProcessOptions, pool: asyncpg.Pool, codec: Codec) -> None:
        super().__init__(options, max_records=MAX_RECORDS, gather_s=GATHER_S)
        self._projector = Projector(
            self.feed,
            PostgresEventStore(None, pool, codec),
            PostgresProjections(pool),
            codec,
            shard_id=options.instance,
            topic_ids={options.topic: "bench"},
        )

    async def handle(self, batch: Batch) -> None:
        """Project and acknowledge."""
        await self._projector.handle(batch)
        report({"handled": sum(map(len, batch.values()))})


async def main(options: TableProcessOptions) -> None:
    """Project until the process is asked to end."""
    codec, dsn = read_dsn(options)
    async with AsyncExitStack() as opened:
        pool = await opened.enter_async_context(open_pool(dsn, limit_s=LIMIT_S))
        await Project(options, pool, codec).run()


if __name__ == "__main__":
    collect_rarely()
    asyncio.run(main(options_given()))
