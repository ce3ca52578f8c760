"""Another process of a role beside those of a stack, as `streams run` starts it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from streams.data_folder import layout_of
from tests.support.servers.runtime import Runtime
from tests.support.waiting import until


@asynccontextmanager
async def second_role(runtime: Runtime, name: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run one more process of the role that `name` begins with, until the block ends."""
    log = layout_of(runtime.data).roles / f"{name}.log"
    role = name.partition("-")[0]
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "streams", "run", role, "--data", str(runtime.data)),
            env={**os.environ, "NOETL_SHARD_ID": name},
            stdout=output,
            stderr=output,
        )
    try:
        await until(lambda: b"ready" in log.read_bytes(), within_s=60)
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.terminate()
        await process.wait()
