"""The node's broker: keeps sealed memory for its time, and hands it to whoever asks by name.

It serves processes of its own user only. What it is given must be sealed, and its size is what
the kernel says, not what anybody tells.
"""

from __future__ import annotations

import logging
import os
import resource
import selectors
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import orjson

from streams.clock import Clock
from streams.errors import Refused
from streams.payload.ledger import on_pages
from streams.payload.shm.memfd import PACKET_BYTES, PREFIX, connected, is_sealed, peer_uid

_log = logging.getLogger(__name__)
_TICK_S = 0.5
_FAR_S = 86_400.0
_SPARE_FILES = 64


@dataclass(slots=True)
class Kept:
    """One region: its descriptor, its size in memory, and until when it is kept."""

    number: int
    size: int
    until: float


class NoBroker(Refused):
    """There can be no broker here, or no second one."""


class Broker:
    """Serves one socket until it is told to stop."""

    def __init__(self, path: Path, budget_bytes: int, clock: Clock) -> None:
        """Listen at `path`.

        Raises:
            NoBroker: this system has no sealed memory, or a broker is there already.
        """
        if not hasattr(os, "memfd_create"):
            raise NoBroker("this system has no memfd; shared memory works without a broker")
        self._path, self._budget, self._clock = path, budget_bytes, clock
        self._kept: dict[str, Kept] = {}
        self._used, self._most = 0, _raise_file_limit() - _SPARE_FILES
        self._selector = selectors.DefaultSelector()
        self._listener = _listening(path)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def serve(self, stop: Event) -> None:
        """Answer until `stop` is set; then let go of everything."""
        try:
            while not stop.is_set():
                for key, _ in self._selector.select(_TICK_S):
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        assert isinstance(key.fileobj, socket.socket)
                        self._answer(key.fileobj)
                self._expire()
        finally:
            self._close()

    def _accept(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            if peer_uid(connection) != os.geteuid():
                connection.close()
                return
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ)

    def _answer(self, connection: socket.socket) -> None:
        try:
            packet, numbers, _, _ = socket.recv_fds(connection, PACKET_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            packet, numbers = b"", []
        number = numbers[0] if numbers else None
        if not packet:
            self._hang_up(connection)
            return
        answer, given = self._do(packet, number)
        try:
            socket.send_fds(connection, [answer], [] if given is None else [given])
        except OSError:
            self._hang_up(connection)

    def _do(self, packet: bytes, number: int | None) -> tuple[bytes, int | None]:
        """Do what is asked; a descriptor that came along is kept or closed."""
        try:
            words: Any = orjson.loads(packet)
            if number is not None and "give" in words:
                if self._give(str(words["give"]), number, float(words["until"])):
                    number = None
                    return b"ok", None
                return b"full", None
            if "take" in words:
                kept = self._kept.get(str(words["take"]))
                return (b"gone", None) if kept is None else (b"ok", kept.number)
            if "drop" in words:
                self._forget(str(words["drop"]))
                return b"ok", None
            if "used" in words:
                return str(self._used).encode(), None
        except (ValueError, TypeError, KeyError, OSError) as error:
            _log.debug("a packet that says nothing: %s", error)
        finally:
            if number is not None:
                os.close(number)
        return b"what", None

    def _give(self, name: str, number: int, until: float) -> bool:
        """Keep a region and its descriptor; False: there is no room, or it is not fit to keep.

        Of the same bytes, those that came first are kept, for as long as the last ones ask.
        """
        now = self._clock.now().timestamp()
        if not name.startswith(PREFIX) or not now < until <= now + _FAR_S or not is_sealed(number):
            return False
        size = on_pages(os.fstat(number).st_size)
        if (kept := self._kept.get(name)) is not None:
            kept.until = max(kept.until, until)
            os.close(number)
            return True
        if not self._has_room(size):
            self._expire()
        if not self._has_room(size):
            return False
        self._kept[name] = Kept(number, size, until)
        self._used += size
        return True

    def _has_room(self, size: int) -> bool:
        return self._used + size <= self._budget and len(self._kept) < self._most

    def _expire(self) -> None:
        now = self._clock.now().timestamp()
        for name in [name for name, kept in self._kept.items() if kept.until <= now]:
            self._forget(name)

    def _forget(self, name: str) -> None:
        if (kept := self._kept.pop(name, None)) is not None:
            os.close(kept.number)
            self._used -= kept.size

    def _hang_up(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()

    def _close(self) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        self._path.unlink(missing_ok=True)
        for name in list(self._kept):
            self._forget(name)


def _listening(path: Path) -> socket.socket:
    """Listen at `path`, which a broker that was killed may have left behind."""
    with suppress(OSError), connected(path):
        raise NoBroker(f"a broker listens at {path} already; a node needs one")
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(64)
    listener.setblocking(False)
    return listener


def _raise_file_limit() -> int:
    """Allow this process as many regions as it may have open files; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft
