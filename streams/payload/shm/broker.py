"""The node's broker: holds sealed memory until it expires, and serves it by name.

It serves only processes of its own user. Regions must be sealed, and their size is taken from
the kernel, not from the client. They count against the shared budget of the node's regions.
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
from streams.payload.shm.files import FileRegions
from streams.payload.shm.memfd import connected, is_sealed, peer_uid, received
from streams.payload.shm.region import NAME
from streams.payload.shm.space import Space
from streams.payload.tiers.counts import TierCounts, TierSnapshot
from streams.payload.tiers.disk_quota import on_pages

_log = logging.getLogger(__name__)
_TICK_S = 0.5
_FAR_S = 86_400.0
_SPARE_FILES = 64
_RENEW_S, _RESERVED_S = 2.0, 10.0
"""How often a broker renews its reservation, and when others stop counting it."""


@dataclass(slots=True)
class HeldRegion:
    """One region: its descriptor, size in memory, and expiry time."""

    number: int
    size: int
    until: float


class ShmBrokerRefused(Refused):
    """A broker cannot run here, or one is already running."""


class ShmBroker:
    """Serves one socket until it is stopped."""

    def __init__(self, space: Space, budget_bytes: int, clock: Clock, counts: TierCounts) -> None:
        """Listen on the broker socket of `space`.

        Raises:
            ShmBrokerRefused: this system has no sealed memory, a broker is running already, or
                the path cannot be used.
        """
        if not hasattr(os, "memfd_create"):
            raise ShmBrokerRefused("this system has no memfd; shared memory works without a broker")
        self._space, self._clock, self._counts = space, clock, counts
        self._budget = FileRegions(space, budget_bytes, clock, counts)
        self._held: dict[str, HeldRegion] = {}
        self._used, self._most = 0, _raise_file_limit() - _SPARE_FILES
        self._renew_at = float("-inf")
        self._selector = selectors.DefaultSelector()
        self._listener = self._listen()
        self._budget.sweep()
        self._renew()  # the regions of an earlier broker are gone

    def snapshot(self) -> TierSnapshot:
        """Return its counters and sizes as JSON."""
        in_use = {"1.5": self._budget.bytes_in_use}
        return {**self._counts.snapshot(), "regions": len(self._held), "bytes_in_use": in_use}

    def serve(self, stop: Event) -> None:
        """Serve until `stop` is set; then release everything."""
        try:
            while not stop.is_set():
                for key, _ in self._selector.select(_TICK_S):
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        assert isinstance(key.fileobj, socket.socket)
                        self._answer(key.fileobj)
                self._expire()
                if self._clock.monotonic() >= self._renew_at:
                    self._renew()
                    self._be_found()
        finally:
            self._close()

    def _listen(self) -> socket.socket:
        listener = _listening(self._space.socket)
        self._selector.register(listener, selectors.EVENT_READ)
        return listener

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
            packet, number = received(connection)
        except BlockingIOError:
            return
        except OSError:
            packet, number = b"", None
        if not packet:
            if number is not None:
                os.close(number)
            self._hang_up(connection)
            return
        answer, given = self._do(packet, number)
        try:
            socket.send_fds(connection, [answer], [] if given is None else [given])
        except OSError:
            self._hang_up(connection)

    def _do(self, packet: bytes, number: int | None) -> tuple[bytes, int | None]:
        """Handle a request; its descriptor is held or closed."""
        try:
            request: Any = orjson.loads(packet)
            if number is not None and "give" in request:
                answer = self._give(str(request["give"]), number, float(request["until"]))
                if answer == b"ok":
                    number = None
                return answer, None
            if "take" in request:
                region = self._held.get(str(request["take"]))
                return (b"gone", None) if region is None else (b"ok", region.number)
            if "drop" in request:
                self._forget(str(request["drop"]))
                return b"ok", None
        except (ValueError, TypeError, KeyError, OSError) as error:
            _log.debug("a malformed packet: %s", error)
        finally:
            if number is not None:
                os.close(number)
        return b"what", None

    def _give(self, name: str, number: int, until: float) -> bytes:
        """Hold a region and its descriptor, if it is valid and there is room.

        Of equal bytes, the first region is held, until the latest requested expiry.
        """
        now = self._clock.now().timestamp()
        if not NAME.fullmatch(name) or not name.startswith(self._space.sealed_prefix):
            return b"what"
        if not now < until <= now + _FAR_S or not is_sealed(number):
            return b"what"
        if (region := self._held.get(name)) is not None:
            region.until = max(region.until, until)
            os.close(number)
            self._counts.events["shared"] += 1
            return b"ok"
        size = on_pages(os.fstat(number).st_size)
        if not self._take_room(size):
            self._counts.events["exhausted"] += 1
            return b"full"
        self._held[name] = HeldRegion(number, size, until)
        self._counts.events["written"] += 1
        return b"ok"

    def _take_room(self, size: int) -> bool:
        self._expire()
        if len(self._held) >= self._most or not self._reserve(self._used + size):
            return False
        self._used += size
        return True

    def _reserve(self, size: int) -> bool:
        return self._budget.reserve(size, self._clock.now().timestamp() + _RESERVED_S)

    def _renew(self) -> None:
        """Renew the reservation of the held bytes; if it fails, drop all regions."""
        self._renew_at = self._clock.monotonic() + _RENEW_S
        with suppress(OSError):
            if not self._reserve(self._used):
                # Others have taken the room meanwhile: uncounted regions are dropped.
                for region in self._held.values():
                    os.close(region.number)
                self._held.clear()
                self._used = 0
                self._reserve(0)

    def _be_found(self) -> None:
        """Listen again if the socket was removed."""
        if not self._space.socket.exists():
            self._hang_up(self._listener)
            self._listener = self._listen()

    def _expire(self) -> None:
        now = self._clock.now().timestamp()
        over = [name for name, region in self._held.items() if region.until <= now]
        self._counts.events["expired"] += len(over)
        self._forget(*over)

    def _forget(self, *names: str) -> None:
        before = self._used
        for name in names:
            if (region := self._held.pop(name, None)) is not None:
                os.close(region.number)
                self._used -= region.size
        if self._used != before:
            self._renew()

    def _hang_up(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()

    def _close(self) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        self._space.socket.unlink(missing_ok=True)
        self._forget(*self._held)
        self._budget.drop("sealed")
        self._budget.close()


def _listening(path: Path) -> socket.socket:
    """Listen at `path`, replacing the socket of a killed broker."""
    with suppress(OSError), connected(path):
        raise ShmBrokerRefused(f"a broker listens at {path} already; a node needs one")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        why = f"a broker cannot listen at {path}: {error}"
        raise ShmBrokerRefused(
            f"{why}; set payload_store.cache.tier_15_path to another folder"
        ) from None
    finally:
        os.umask(before)
    listener.listen(64)
    listener.setblocking(False)
    return listener


def _raise_file_limit() -> int:
    """Raise the limit of open files to its maximum; return how many regions that allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft
