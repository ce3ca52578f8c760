"""Pool of long-lived Python processes, each running one call at a time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

import orjson

from streams.events.model import Json
from streams.worker.tools import exact_json
from streams.worker.tools.python.child import PythonRequest, framed

_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "HOME", "TMPDIR")


class ChildDied(Exception):
    """The process ended during a call."""


class PythonPool:
    """Starts processes when they are needed, at most `size`, and replaces those that end."""

    def __init__(self, size: int, *, memory_bytes: int, cpu_s: int) -> None:
        self._free = asyncio.Semaphore(size)
        self._idle: list[Process] = []
        self._limits = (str(memory_bytes), str(cpu_s))

    async def call(self, asked: PythonRequest, timeout_s: float | None) -> dict[str, Json]:
        """Run code in one of the processes and return its answer.

        Raises:
            TimeoutError: it took too long; the process was killed.
            ChildDied: the process ended by itself, for example for lack of memory.
        """
        request = framed(orjson.dumps(asked))
        async with self._free:
            child = self._idle.pop() if self._idle else await self._start()
            try:
                async with asyncio.timeout(timeout_s):
                    answer = await _ask(child, request)
            except BaseException:
                # An interrupted process would answer the next call with this one's result.
                await _end(child)
                raise
            self._idle.append(child)
            return answer

    async def close(self) -> None:
        """End all idle processes."""
        while self._idle:
            await _end(self._idle.pop())

    async def _start(self) -> Process:
        """Start a process without the worker's environment, which may hold secrets."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "streams.worker.tools.python.child", *self._limits),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
        )


def answer_of(body: bytes) -> dict[str, Json]:
    """Return the answer of a process: {"result" or "error", "log"}."""
    answer = exact_json.loads(body)
    assert isinstance(answer, dict)
    return answer


async def _ask(child: Process, request: bytes) -> dict[str, Json]:
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(request)
        await child.stdin.drain()
        length = int.from_bytes(await child.stdout.readexactly(4), "big")
        answer = answer_of(await child.stdout.readexactly(length))
    except (asyncio.IncompleteReadError, OSError) as error:
        raise ChildDied(f"exit code {await child.wait()}") from error
    return answer


async def _end(child: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    if child.stdin is not None:
        child.stdin.close()
    await child.wait()
