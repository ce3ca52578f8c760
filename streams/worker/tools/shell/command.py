"""One shell command as a process group, its output read up to a limit."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

OUTPUT_BYTES = 1024 * 1024
_PIECE_BYTES = 1 << 16
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class ShellResult:
    """Exit code and output of one command."""

    exit_code: int
    stdout: str
    stderr: str


async def run_command(command: str, env: Mapping[str, str], folder: Path | None) -> ShellResult:
    """Run a command with `/bin/sh -c`; everything it started has ended afterwards.

    Raises:
        OSError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "streams.worker.tools.shell.child"),
        *(str(os.getpid()), command),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=dict(env),
        cwd=folder,
    )
    reading = asyncio.gather(_read(process.stdout), _read(process.stderr))
    try:
        stdout, stderr = await reading
        return ShellResult(await process.wait(), stdout, stderr)
    finally:
        if process.returncode is None:
            await _end(process)


async def _end(process: Process) -> None:
    """End a command and all it started; a process that left its group is not waited for."""
    with suppress(ProcessLookupError):
        process.terminate()
    with suppress(TimeoutError):
        async with asyncio.timeout(_END_S):
            await process.wait()


async def _read(source: asyncio.StreamReader | None) -> str:
    """Return what a pipe carries until it is closed, without what exceeds the limit."""
    assert source is not None
    content, length = bytearray(), 0
    while piece := await source.read(_PIECE_BYTES):
        length += len(piece)
        content += piece[: OUTPUT_BYTES - len(content)]
    # Characters that Postgres text cannot hold are replaced as well.
    text = content.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text if length <= OUTPUT_BYTES else f"{text}\n… {length - OUTPUT_BYTES} more bytes"
