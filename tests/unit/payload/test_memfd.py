"""Sealed memory, kept by a broker and handed to whoever asks by name."""

from __future__ import annotations

import mmap
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from streams.clock import SettableClock
from streams.envelope.model import PayloadRef
from streams.payload.content import describe
from streams.payload.port import ARROW
from streams.payload.rows import decode_rows
from streams.payload.shm import memfd
from streams.payload.shm.broker import Broker, NoBroker
from streams.payload.shm.header import Header
from streams.payload.shm.memfd import PREFIX, broker_path, is_sealed, sealed_memory
from streams.payload.shm.node import SharedMemory
from streams.payload.shm.region import NotHere
from tests.tiers import ACME, LIFE_S, encoded, shared_memory, some_rows

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no memfd here")
BUDGET = 64 * 4096


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A socket's path must be short.
    return tmp_path_factory.mktemp("b")


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@contextmanager
def broker(folder: Path, clock: SettableClock) -> Iterator[Callable[[], None]]:
    """Run a broker; yield what ends it before its time."""
    stop = threading.Event()
    thread = threading.Thread(
        target=Broker(broker_path(folder), BUDGET, clock).serve, args=(stop,), daemon=True
    )
    thread.start()

    def end() -> None:
        stop.set()
        thread.join(30)

    try:
        yield end
    finally:
        end()
        assert not thread.is_alive()


def shared(memory: SharedMemory, data: bytes | None = None) -> PayloadRef | None:
    data = encoded().data if data is None else data
    ref = describe(ACME, data, media_type=ARROW, schema_digest=encoded().schema_digest)
    hint = memory.offer(ref, data)
    return None if hint is None else replace(ref, ipc=hint)


def test_what_is_sealed_cannot_be_changed_or_cut() -> None:
    number = sealed_memory(Header(3, bytes(32)), b"abc")
    try:
        assert is_sealed(number)
        with pytest.raises(PermissionError):
            os.pwrite(number, b"x", 64)
        with pytest.raises(PermissionError):
            os.ftruncate(number, 0)
        with pytest.raises(PermissionError):
            mmap.mmap(number, 67, flags=mmap.MAP_SHARED, prot=mmap.PROT_WRITE)
    finally:
        os.close(number)


def test_another_process_gets_it_from_the_broker(folder: Path, clock: SettableClock) -> None:
    with broker(folder, clock):
        writer, reader = (shared_memory(folder, clock=clock) for _ in range(2))
        ref = shared(writer)
        assert ref is not None
        assert ref.ipc is not None
        assert ref.ipc.shm_name.startswith(PREFIX)
        assert not list(folder.glob("noetl-*-*"))
        writer.close()  # it outlives its writer
        buffer = reader.attach(ref)
        assert reader.bytes_in_use == -(-(ref.byte_length + 64) // 4096) * 4096
        reader.drop(ref)
        with pytest.raises(NotHere, match="gone"):
            reader.attach(ref)
        assert decode_rows(buffer) == some_rows()  # and its name
        reader.close()


def test_a_broker_keeps_to_its_budget_and_to_the_time(folder: Path, clock: SettableClock) -> None:
    with broker(folder, clock):
        memory = shared_memory(folder, clock=clock)
        taken = [shared(memory, bytes([n]) * (20 * 4096 - 64)) for n in range(4)]
        assert [ref is not None for ref in taken] == [True, True, True, False]
        assert taken[0] is not None
        clock.advance(LIFE_S)
        ref = shared(memory)
        assert ref is not None  # what is over is let go of before the next question
        memory.attach(ref)
        assert memory.bytes_in_use == -(-(ref.byte_length + 64) // 4096) * 4096
        memory.close()


def test_without_the_broker_regions_are_files_again(folder: Path, clock: SettableClock) -> None:
    with broker(folder, clock) as end:
        writer, reader = (shared_memory(folder, clock=clock) for _ in range(2))
        sealed = shared(writer)
        assert sealed is not None
        reader.attach(sealed)
        end()
        with pytest.raises(NotHere, match="no broker"):
            reader.attach(sealed)
        assert shared(writer) is None  # it learns so
        again = shared(writer)
        assert again is not None
        assert again.ipc is not None
        assert not again.ipc.shm_name.startswith(PREFIX)
        assert decode_rows(reader.attach(again)) == some_rows()


def test_nothing_is_given_to_a_broker_of_somebody_else(
    folder: Path, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broker(folder, clock):
        monkeypatch.setattr(memfd, "peer_uid", lambda _: os.geteuid() + 1)
        ref = shared(shared_memory(folder, clock=clock))
        assert ref is not None
        assert ref.ipc is not None
        assert not ref.ipc.shm_name.startswith(PREFIX)


def test_what_is_not_sealed_is_not_kept(folder: Path, clock: SettableClock) -> None:
    with broker(folder, clock):
        until = clock.now().timestamp() + 10
        number = os.memfd_create("open", os.MFD_ALLOW_SEALING)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(30)
            connection.connect(str(broker_path(folder)))
            words = f'{{"give": "{PREFIX}x", "until": {until}}}'.encode()
            socket.send_fds(connection, [words], [number])
            assert connection.recv(100) == b"full"
            for nonsense in (b"?", b"[]", b"{}", b'{"give": 1}', b'{"take": {}}', b"\0" * 900):
                connection.send(nonsense)
                assert connection.recv(100) in (b"what", b"gone")
        os.close(number)


def test_there_is_one_broker_and_what_a_dead_one_left_is_no_hindrance(
    folder: Path, clock: SettableClock
) -> None:
    with broker(folder, clock), pytest.raises(NoBroker, match="already"):
        Broker(broker_path(folder), BUDGET, clock)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(broker_path(folder)))
    with broker(folder, clock):
        memory = shared_memory(folder, clock=clock)
        assert shared(memory) is not None
        memory.close()
