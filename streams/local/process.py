"""Processes that do not outlive their supervisor."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL

from streams.local.service import Service

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
# Inherited environment variables: none that could change a server's behaviour (PG*, KAFKA_*,
# CLASSPATH …).
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")


def environment_of(service: Service) -> dict[str, str]:
    """Return the complete environment of a service's process."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, **service.environment}


def rotate(log: Path) -> None:
    """Start a new log; the previous one becomes `<name>.1`."""
    with suppress(FileNotFoundError):
        log.replace(log.with_name(f"{log.name}.1"))


async def spawn(service: Service) -> asyncio.subprocess.Process:
    """Start the service's process in its own session, its output appended to its log.

    The session shields it from the terminal's Ctrl-C: the supervisor decides the order in
    which services stop.
    """
    with service.log.open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *service.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
            env=environment_of(service),
            cwd=service.folder,
            start_new_session=True,
            user=service.user_id,
            group=service.user_id,
            extra_groups=None if service.user_id is None else [],
            pass_fds=service.inherited_fds,
            preexec_fn=die_with_parent(service.orphan_signal),
        )


def die_with_parent(
    signal: int = SIGKILL, *, become: Callable[[], None] | None = None
) -> Callable[[], None] | None:
    """Return a `preexec_fn` that makes Linux send the child `signal` when this process dies.

    It runs `become` first: a change of user clears the request. If the parent has already died
    by then, the child exits.
    """
    if _LIBC is None:
        return become
    parent, prctl = os.getpid(), _LIBC.prctl

    def request() -> None:
        if become is not None:
            become()
        prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return request


def last_lines(log: Path, count: int = 15) -> str:
    """Return the end of a log, for an error message."""
    with suppress(OSError):
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_384))
            lines = file.read().decode(errors="replace").splitlines()
        return "\n".join(f"  | {line}" for line in lines[-count:])
    return ""
