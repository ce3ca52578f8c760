"""Process that runs one shell command, and ends its process group with it and with the worker.

It imports only the standard library, so that it starts fast.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from threading import Thread

_LOOK_S = 0.5


class _Group:
    """The processes of a command, which may have to end before they are known."""

    def __init__(self) -> None:
        self._leader: int | None = None
        self._is_ended = False

    def started(self, leader: int) -> None:
        self._leader = leader
        if self._is_ended:
            self.end()

    def end(self) -> None:
        self._is_ended = True
        if self._leader is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, signal.SIGKILL)


def main(worker: int, command: str) -> int:
    """Run the command; return its exit code, 128 and the number of a signal that ended it."""
    group = _Group()
    signal.signal(signal.SIGTERM, lambda *_: group.end())
    Thread(target=_end_with, args=(worker, group), daemon=True).start()
    process = subprocess.Popen(("/bin/sh", "-c", command), start_new_session=True)
    group.started(process.pid)
    code = process.wait()
    group.end()  # what it left in the background
    return code if code >= 0 else 128 - code


def _end_with(worker: int, group: _Group) -> None:
    """End the group when the worker is gone: another attempt may be running."""
    while os.getppid() == worker:
        time.sleep(_LOOK_S)
    group.end()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
