"""The supervisor process of a stack, in the foreground or detached."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import orjson

from streams.data_folder import layout_of
from streams.errors import StreamsError
from streams.local.errors import ServiceFailed
from streams.local.process import last_lines, rotate
from streams.local.service import ServiceReport, ServiceState
from streams.local.stack import Stack
from streams.local.state import StackState

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def run_until_signal(stack: Stack, when_ready: Callable[[StackState], None]) -> None:
    """Start the stack, wait for a signal, and stop it in order.

    A signal during the start aborts it; deleting the data folder stops the stack, since `down`
    could no longer find it.
    """
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, ended.set)
    starting = asyncio.create_task(stack.start())
    ending = asyncio.create_task(ended.wait())
    deleted = asyncio.create_task(stack.folder_deleted())
    watching: list[asyncio.Task[None]] = []
    try:
        await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            when_ready(await starting)
            watching.append(asyncio.create_task(stack.guard_mirror()))
            watching.append(asyncio.create_task(stack.make_partitions()))
            await asyncio.wait((ending, deleted), return_when=asyncio.FIRST_COMPLETED)
        else:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
    finally:
        ending.cancel()
        deleted.cancel()
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        await stack.stop()


def detach(
    data: Path,
    *,
    profile: str,
    ports: Mapping[str, int],
    roles: Mapping[str, int],
    say: Callable[[str], None],
    report: Callable[[ServiceReport], None],
) -> None:
    """Start a supervisor in its own session and return when its stack is ready.

    Raises:
        StreamsError: the stack did not start; the message is the supervisor's.
    """
    layout = layout_of(data)
    layout.create()
    reading, writing = os.pipe()
    log = layout.log("supervisor")
    rotate(log)
    order = orjson.dumps(
        {
            "data": str(layout.data),
            "profile": profile,
            "ports": dict(ports),
            "roles": dict(roles),
        }
    )
    with log.open("ab") as output:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "streams.local.supervise", str(writing), order.decode()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=[writing],
        )
    os.close(writing)
    try:
        _follow(reading, supervisor, log, say, report)
    except KeyboardInterrupt:
        supervisor.terminate()
        supervisor.wait()
        raise


def _follow(
    reading: int,
    supervisor: subprocess.Popen[bytes],
    log: Path,
    say: Callable[[str], None],
    report: Callable[[ServiceReport], None],
) -> None:
    """Forward the messages of the supervisor until its stack is ready."""
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            message = orjson.loads(line)
            if message["kind"] == "say":
                say(message["text"])
            elif message["kind"] == "service":
                report(
                    ServiceReport(
                        **{**message["report"], "state": ServiceState(message["report"]["state"])}
                    )
                )
            elif message["kind"] == "error":
                supervisor.wait()
                raise _error_of(message)
            else:
                # The supervisor outlives this process; avoid a ResourceWarning.
                supervisor.returncode = 0
                return
    supervisor.wait()
    raise ServiceFailed("the supervisor", "ended before the stack was ready", log, last_lines(log))


def _error_of(message: Mapping[str, Any]) -> StreamsError:
    """Rebuild an error of the supervisor from its message and exit code."""
    error = StreamsError(message["text"])
    error.exit_code = message["exit_code"]
    return error


class _ProgressPipe:
    """Reports progress to the starting process, until it closes the pipe."""

    def __init__(self, fd: int) -> None:
        self._file: IO[bytes] | None = os.fdopen(fd, "wb", buffering=0)

    def send(self, kind: str, **values: object) -> None:
        text = orjson.dumps({"kind": kind, **values})
        if self._file is not None:
            try:
                self._file.write(text + b"\n")
            except BrokenPipeError:
                self.close()
        sys.stdout.buffer.write(text + b"\n")
        sys.stdout.buffer.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def main(fd: int, order: Mapping[str, Any]) -> int:
    """Run the detached supervisor."""
    line = _ProgressPipe(fd)
    stack = Stack(
        Path(order["data"]),
        profile=order["profile"],
        ports=order["ports"],
        roles=order["roles"],
        say=lambda text: line.send("say", text=text),
        report=lambda report: line.send("service", report=asdict(report)),
    )

    def when_ready(_: StackState) -> None:
        line.send("ready")
        line.close()

    try:
        asyncio.run(run_until_signal(stack, when_ready))
    except StreamsError as error:
        line.send("error", text=str(error), exit_code=error.exit_code)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), orjson.loads(sys.argv[2])))
