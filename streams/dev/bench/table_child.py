"""A measured process, as the bench of tables sees it: its start, its reports, its end."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import orjson

from streams.dev.bench.table_options import ProcessLine, TableProcessOptions
from streams.errors import Unavailable
from streams.local.process import die_with_parent, last_lines

OURS, STOCK = "streams.dev.bench.table_process", "streams.dev.bench.stock_faust"
LONGEST_LINE = 2**22
LIMIT_S = 300.0
STOP_S = 30.0


class ChildFailed(Unavailable):
    """A measured process ended, or does not do what is waited for."""


class Child:
    """A running process; its attributes are what it has reported so far."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, began: float) -> None:
        self._process, self._log, self._began = process, log, began
        self.ready_s: float | None = None
        """Time from the start of the process until it was ready."""
        self.ready_cpu_s = 0.0
        """Processor time of the process until then."""
        self.owned: frozenset[int] = frozenset()
        self.standbys_ready = False
        self.wrote: set[int] = set()
        self.handled = 0
        self.figures: dict[str, float] = {}
        self.rows: dict[str, list[int]] | None = None
        self._changed = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def until(
        self, fits: Callable[[Child], bool], what: str, *, limit_s: float = LIMIT_S
    ) -> None:
        """Wait until what the process reported fits.

        Raises:
            ChildFailed: it ended, or took too long.
        """
        try:
            async with asyncio.timeout(limit_s):
                while not fits(self):
                    if self._reading.done():
                        raise self._failed(f"ended before it was {what}")
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            raise self._failed(f"was not {what} after {limit_s:.0f} s") from None

    async def result(self, *, limit_s: float = LIMIT_S) -> dict[str, float]:
        """Wait for the figures of the process."""
        await self.until(lambda one: bool(one.figures), "done", limit_s=limit_s)
        return self.figures

    async def kill(self) -> None:
        """Kill the process (SIGKILL), and wait for its end."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._reading

    async def end(self) -> None:
        """Ask the process to end (SIGTERM); kill it if it does not."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._process.wait()
        await self.kill()

    def _failed(self, why: str) -> ChildFailed:
        return ChildFailed(f"process {self._log.stem} {why}:\n{last_lines(self._log)}")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for text in self._process.stdout:
            self._take(orjson.loads(text))
            self._changed.set()
        self._changed.set()

    def _take(self, line: ProcessLine) -> None:
        if "ready_cpu_s" in line:
            self.ready_cpu_s = line["ready_cpu_s"]
            self.ready_s = time.monotonic() - self._began
        if "owned" in line:
            self.owned = frozenset(line["owned"])
        self.standbys_ready = line.get("standbys_ready", self.standbys_ready)
        self.wrote |= set(line.get("wrote", ()))
        self.handled += line.get("handled", 0)
        self.figures = line.get("figures", self.figures)
        self.rows = line.get("rows", self.rows)


@asynccontextmanager
async def child(options: TableProcessOptions, module: str = OURS) -> AsyncIterator[Child]:
    """Run a measured process until the body ends; its log is beside its folder."""
    log = Path(options.folder).with_suffix(".log")
    with log.open("ab") as stderr:
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, options.argument()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            limit=LONGEST_LINE,
            preexec_fn=die_with_parent(),
        )
    started = Child(process, log, began)
    try:
        yield started
        await started.end()
    finally:
        await started.kill()
