"""A process that owns tables and obeys lines on its standard input; for tests that kill it.

`write VALUE` writes the key `a` of partition 0, `open VALUE` sends it and never ends the
transaction, `read` returns it, `owns` whether the partition is its own. Each response is one line
of JSON.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from streams.kafka.tables.port import PartitionLost
from streams.kafka.transport.tables import TableManager
from tests.support.kafka.tables import running

KEY, TABLE = b"a", "things"


@dataclass(frozen=True, slots=True)
class TableMember:
    """The process, as a test uses it."""

    process: asyncio.subprocess.Process

    async def ask(self, command: str, value: str = "") -> Any:
        """Send a command and return the response."""
        await self.send(command, value)
        return await self.response()

    async def send(self, command: str, value: str = "") -> None:
        """Send a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command} {value}\n".encode())
        await self.process.stdin.drain()

    async def response(self) -> Any:
        """Return the next response; None if the process has ended."""
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            line = await self.process.stdout.readline()
        return orjson.loads(line) if line else None

    def signal(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)


@asynccontextmanager
async def table_member(
    bootstrap: str, topic: str, folder: Path, *, instance: str = "one"
) -> AsyncIterator[TableMember]:
    """Start a process and return when its tables can be written."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, bootstrap, topic, str(folder), instance),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    member = TableMember(process)
    try:
        assert await member.response() == "ready"
        yield member
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


async def _obey(tables: TableManager, line: str) -> object:
    command, _, text = line.partition(" ")
    value = text.encode()
    if command == "read":
        (found,) = tables.read(0, TABLE, [KEY])
        return None if found is None else found.decode()
    if command == "owns":
        return 0 in tables.owned
    if command == "open":
        await tables._writers[0].begin_transaction()
        await tables._send(tables._writers[0], TABLE, 0, {KEY: value})
        return "sent"
    try:
        await tables.write(0, {TABLE: {KEY: value}})
    except PartitionLost as error:
        return f"lost: {error}"
    return "written"


async def _main(bootstrap: str, topic: str, folder: str, instance: str) -> None:
    loop, lines = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with running(bootstrap, topic, Path(folder), instance=instance) as tables:
        _respond("ready")
        while line := (await lines.readline()).decode().strip():
            _respond(await _obey(tables, line))
    os.kill(os.getpid(), signal.SIGKILL)


def _respond(value: object) -> None:
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
