"""Starting one process so that it cannot outlive its supervisor."""

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
# What a server inherits from whoever started the stack: enough to find programs, a home and
# a locale, and nothing that could change how it behaves (PG*, KAFKA_*, CLASSPATH …).
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")


def environment_of(service: Service) -> dict[str, str]:
    """Return the whole environment a service's process gets."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, **service.environment}


def rotate(log: Path) -> None:
    """Begin a new log; the one before is kept beside it as `<name>.1`."""
    with suppress(FileNotFoundError):
        log.replace(log.with_name(f"{log.name}.1"))


async def spawn(service: Service) -> asyncio.subprocess.Process:
    """Start the service's process in a session of its own, its output appended to its log.

    A session of its own keeps the terminal's Ctrl-C away from it: the supervisor decides
    the order in which services end.
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
    """Ask Linux to send a child `signal` when this process dies, however it dies.

    What is returned runs in the child, after it has changed its user by itself or through
    `become`: a change of user clears the request. The parent may already be gone by then;
    the child sees it and leaves.
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
