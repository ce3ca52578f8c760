"""A topic reader as a process of its own: its records, its errors, its end."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from streams.local.process import die_with_parent
from tests.support.kafka.topic import KafkaTopic
from tests.support.waiting import until

REPOSITORY = Path(__file__).parents[3]


class ReaderProgram:
    """A reader that runs; what it handled and wrote is in its folder."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.process, self._folder = process, folder

    @property
    def handled(self) -> list[tuple[int, int, str]]:
        """The partition, offset and value of each handled record, of earlier processes too."""
        path = self._folder / "handled"
        # A process that is killed may have written a part of its last line.
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        found = (line.split(" ") for line in lines)
        return [(int(partition), int(offset), value) for partition, offset, value in found]

    @property
    def stderr(self) -> str:
        """What the processes of the folder wrote to stderr."""
        return (self._folder / "stderr").read_text()

    async def exit_code(self, *, within_s: float) -> int:
        """Wait for the end of the process."""
        async with asyncio.timeout(within_s):
            return await self.process.wait()


@asynccontextmanager
async def reader_program(
    topic: KafkaTopic, folder: Path, **options: Any
) -> AsyncIterator[ReaderProgram]:
    """Run a reader from its assignment to the end of the body, which it does not outlive."""
    options |= {"bootstrap": topic.bootstrap, "topic": topic.name, "folder": str(folder)}
    ready = folder / "ready"
    ready.unlink(missing_ok=True)
    with (folder / "stderr").open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.servers.topic_reader", json.dumps(options)),
            stderr=stderr,
            cwd=REPOSITORY,
            preexec_fn=die_with_parent(),
        )
    reader = ReaderProgram(process, folder)
    try:
        await until(lambda: ready.exists() or process.returncode is not None, within_s=60.0)
        assert process.returncode is None, reader.stderr
        yield reader
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
