"""Regions as sealed anonymous memory, held by the node's broker.

Sealed memory cannot be changed or truncated, and is freed when the broker ends. A message is
one packet of JSON, with at most one file descriptor.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import orjson

from streams.clock import Clock
from streams.payload.shm.header import SIZE, Header
from streams.payload.shm.region import NAME, NotHere, mapped, write
from streams.payload.shm.space import Space

if TYPE_CHECKING:
    import pyarrow as pa

PACKET_BYTES = 1024
_ASK_AGAIN_S, _LET_REST_S = 1.0, 10.0
"""When to retry a broker that was missing, and one that timed out."""
_TIMEOUT_S = 0.1
# Linux constants that Python defines only if it was built with them.
_SEALS = 0x0001 | 0x0002 | 0x0004 | 0x0008  # seal, shrink, grow, write
_ADD_SEALS, _GET_SEALS = 1033, 1034
_PEER = struct.Struct("3i")


def is_sealed(number: int) -> bool:
    """Return whether a descriptor can be neither changed nor truncated."""
    try:
        return fcntl.fcntl(number, _GET_SEALS) & _SEALS == _SEALS
    except OSError:
        return False


def sealed_memory(header: Header, data: bytes) -> int:
    """Return a descriptor of sealed memory with one payload.

    Raises:
        OSError: there is not enough memory.
    """
    number = os.memfd_create("noetl", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.fchmod(number, 0o600)
        os.ftruncate(number, SIZE + len(data))
        write(number, header, data)
        fcntl.fcntl(number, _ADD_SEALS, _SEALS)
    except BaseException:
        os.close(number)
        raise
    return number


class SealedRegions:
    """Client of the broker. Without a broker it has no regions."""

    def __init__(self, space: Space, clock: Clock) -> None:
        self._space, self._clock = space, clock
        self._socket: socket.socket | None = None
        self._ask_at = float("-inf")
        self._one_at_a_time = Lock()

    @property
    def is_there(self) -> bool:
        """Return whether a broker answers; one that does not is not retried for a while."""
        if self._socket is not None:
            return True
        now = self._clock.monotonic()
        if now < self._ask_at or not hasattr(os, "memfd_create"):
            return False
        self._ask_at = now + _ASK_AGAIN_S
        if self._space.socket.is_socket():
            with suppress(OSError):
                self._socket = connected(self._space.socket)
        return self._socket is not None

    def share(self, stem: str, header: Header, data: bytes, until: float) -> str | None:
        """Send the broker a region; None: it has no room.

        Raises:
            OSError: the broker has ended, or there is no memory.
        """
        name = self.name_of(stem)
        number = sealed_memory(header, data)
        try:
            answer, _ = self._ask({"give": name, "until": until}, number)
        finally:
            os.close(number)
        if answer not in ("ok", "full"):
            raise ConnectionError(f"the broker answers {answer}")
        return name if answer == "ok" else None

    def name_of(self, stem: str) -> str:
        """Return the public name of a region."""
        return f"{self._space.sealed_prefix}{stem}"

    def attach(self, name: str, wanted: Header) -> pa.Buffer:
        """Return the payload of a region without copying it.

        Raises:
            NotHere: there is no broker, or it does not have the payload.
        """
        if not NAME.fullmatch(name):
            raise NotHere("name")
        if not name.startswith(self._space.sealed_prefix):
            raise NotHere("foreign")
        if not self.is_there:
            raise NotHere("no broker")
        try:
            answer, number = self._ask({"take": name})
        except OSError:
            raise NotHere("no broker") from None
        if number is None:
            raise NotHere("gone" if answer == "gone" else "unreadable")
        try:
            if not is_sealed(number):
                raise NotHere("foreign")
            return mapped(number, wanted)
        except OSError as error:
            raise NotHere("unreadable") from error
        finally:
            os.close(number)

    def drop(self, stem: str) -> None:
        """Ask the broker to drop a region."""
        if self.is_there:
            with suppress(OSError):
                self._ask({"drop": self.name_of(stem)})

    def close(self) -> None:
        """Disconnect; the broker holds the regions until they expire."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(
        self, request: Mapping[str, object], number: int | None = None
    ) -> tuple[str, int | None]:
        """Send one request and return the answer, with its descriptor, if any."""
        with self._one_at_a_time:
            connection = self._socket
            if connection is None:
                raise ConnectionError("no broker")
            try:
                packet = orjson.dumps(request)
                socket.send_fds(connection, [packet], [] if number is None else [number])
                answer, given = received(connection)
            except OSError as error:
                rest_s = _LET_REST_S if isinstance(error, TimeoutError) else _ASK_AGAIN_S
                self._ask_at = self._clock.monotonic() + rest_s
                self.close()
                raise
            if not answer:
                self.close()
                raise ConnectionError("the broker has ended")
        return answer.decode("ascii", "replace"), given


def received(connection: socket.socket) -> tuple[bytes, int | None]:
    """Return one packet with its first descriptor; further ones are closed."""
    packet, numbers, _, _ = socket.recv_fds(connection, PACKET_BYTES, 1)
    for number in numbers[1:]:
        os.close(number)
    return packet, numbers[0] if numbers else None


def peer_uid(connection: socket.socket) -> int:
    """Return the user id of the peer process."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(found)[1])


def connected(path: Path) -> socket.socket:
    """Return a connection to the broker at `path`.

    Raises:
        OSError: no broker answers, or it belongs to another user.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    try:
        connection.settimeout(_TIMEOUT_S)
        connection.connect(str(path))
        if peer_uid(connection) != os.geteuid():
            raise PermissionError(f"another user listens at {path}")
    except OSError:
        connection.close()
        raise
    return connection
