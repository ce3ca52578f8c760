"""Servers that a test starts for itself and ends when it is done."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from streams.local.process import die_with_parent

TIMEOUT_S = 300.0


@asynccontextmanager
async def serving(
    command: Sequence[str | Path], says: str, *, environment: Mapping[str, str] | None = None
) -> AsyncIterator[re.Match[str]]:
    """Run a server; yield what matches `says` in its output, by which it tells that it is ready.

    Its port is one that the system chose, so it must say which.
    """
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
        preexec_fn=die_with_parent(),
    )
    drain: asyncio.Task[bytes] | None = None
    assert process.stdout is not None
    try:
        said = ""
        async with asyncio.timeout(TIMEOUT_S):
            while (found := re.search(says, said)) is None:
                line = await process.stdout.readline()
                assert line, f"{command[0]} ended: {said}"
                said += line.decode(errors="replace")
        drain = asyncio.create_task(process.stdout.read())
        yield found
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if drain is not None:
            await drain
