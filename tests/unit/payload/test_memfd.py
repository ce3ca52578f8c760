"""Sealed memory, kept by a broker and handed to whoever asks by name."""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from streams.clock import SettableClock
from streams.events.model import IpcHint, PayloadRef
from streams.payload.arrow.rows import decode_rows
from streams.payload.content import describe
from streams.payload.port import ARROW
from streams.payload.shm import memfd
from streams.payload.shm.broker import ShmBroker, ShmBrokerRefused
from streams.payload.shm.header import Header
from streams.payload.shm.memfd import is_sealed, sealed_memory
from streams.payload.shm.node import SharedMemory
from streams.payload.shm.region import NotHere
from streams.payload.shm.space import SEALED
from streams.payload.tiers.counts import TierCounts
from tests.support.payload.tiers import ACME, LIFE_S, encoded, shared_memory, some_rows, space

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
        target=ShmBroker(space(folder), BUDGET, clock, TierCounts()).serve,
        args=(stop,),
        daemon=True,
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
        writer, reader = (
            shared_memory(folder, clock=clock, sealed=True, budget_bytes=BUDGET) for _ in range(2)
        )
        ref = shared(writer)
        assert ref is not None
        assert ref.ipc is not None
        assert ref.ipc.shm_name.startswith(SEALED)
        assert not list(folder.glob("noetl-*-*-?" + "?" * 39))
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
        memory = shared_memory(folder, clock=clock, sealed=True, budget_bytes=BUDGET)
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
        writer, reader = (
            shared_memory(folder, clock=clock, sealed=True, budget_bytes=BUDGET) for _ in range(2)
        )
        sealed = shared(writer)
        assert sealed is not None
        reader.attach(sealed)
        end()
        with pytest.raises(NotHere, match="no broker"):
            reader.attach(sealed)
        again = shared(writer)
        assert again is not None
        assert again.ipc is not None
        assert not again.ipc.shm_name.startswith(SEALED)
        assert decode_rows(reader.attach(again)) == some_rows()


def test_nothing_is_given_to_a_broker_of_somebody_else(
    folder: Path, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broker(folder, clock):
        monkeypatch.setattr(memfd, "peer_uid", lambda _: os.geteuid() + 1)
        ref = shared(shared_memory(folder, clock=clock, sealed=True, budget_bytes=BUDGET))
        assert ref is not None
        assert ref.ipc is not None
        assert not ref.ipc.shm_name.startswith(SEALED)


def test_what_is_not_sealed_is_not_kept(folder: Path, clock: SettableClock) -> None:
    with broker(folder, clock):
        until = clock.now().timestamp() + 10
        number = os.memfd_create("open", os.MFD_ALLOW_SEALING)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(30)
            connection.connect(str(space(folder).socket))
            words = f'{{"give": "{space(folder).sealed_prefix}x", "until": {until}}}'.encode()
            socket.send_fds(connection, [words], [number])
            assert connection.recv(100) == b"what"
            for nonsense in (b"?", b"[]", b"{}", b'{"give": 1}', b'{"take": {}}', b"\0" * 900):
                connection.send(nonsense)
                assert connection.recv(100) in (b"what", b"gone")
        os.close(number)


def test_there_is_one_broker_and_what_a_dead_one_left_is_no_hindrance(
    folder: Path, clock: SettableClock
) -> None:
    with broker(folder, clock), pytest.raises(ShmBrokerRefused, match="already"):
        ShmBroker(space(folder), BUDGET, clock, TierCounts())
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(space(folder).socket))
    with broker(folder, clock):
        memory = shared_memory(folder, clock=clock, sealed=True, budget_bytes=BUDGET)
        assert shared(memory) is not None
        memory.close()


def test_files_and_sealed_memory_have_one_budget(folder: Path, clock: SettableClock) -> None:
    with broker(folder, clock) as end:
        sealing = shared_memory(folder, clock=clock, sealed=True, budget_bytes=BUDGET)
        filing = shared_memory(folder, clock=clock, budget_bytes=BUDGET)
        size = 20 * 4096
        assert shared(sealing, b"s" * (size - 64)) is not None
        assert sealing.bytes_in_use == filing.bytes_in_use == size
        assert shared(filing, b"f" * (size - 64)) is not None
        assert shared(sealing, b"t" * (size - 64)) is not None
        assert shared(sealing, b"u" * (size - 64)) is None
        assert shared(filing, b"v" * (size - 64)) is None
        assert sealing.bytes_in_use == filing.bytes_in_use == 3 * size
        filing.sweep()  # whoever counts finds the same
        assert filing.bytes_in_use == 3 * size
        end()
        assert filing.bytes_in_use == size
        filing.close()
        sealing.close()
        assert not list(folder.iterdir())


def test_what_a_killed_broker_kept_is_counted_no_more(folder: Path, clock: SettableClock) -> None:
    dead = ShmBroker(space(folder), BUDGET, clock, TierCounts())
    dead._budget.reserve(60 * 4096, clock.now().timestamp() + 10)
    dead._listener.close()
    filing = shared_memory(folder, clock=clock, budget_bytes=BUDGET)
    assert shared(filing, bytes(20 * 4096)) is None
    clock.advance(11)
    assert shared(filing, bytes(20 * 4096)) is not None
    filing.close()
    dead._budget.reserve(60 * 4096, clock.now().timestamp() + 10)
    with broker(folder, clock):  # and a new one begins with nothing
        assert filing.bytes_in_use == 0


def test_a_broker_whose_socket_was_removed_is_found_again(
    folder: Path, clock: SettableClock
) -> None:
    with broker(folder, clock):
        old = shared_memory(folder, clock=clock, sealed=True, budget_bytes=BUDGET)
        ref = shared(old)
        assert ref is not None
        space(folder).socket.unlink()
        clock.advance(3)
        assert wait_for(space(folder).socket.is_socket)
        new = shared_memory(folder, clock=clock, sealed=True, budget_bytes=BUDGET)
        assert decode_rows(new.attach(ref)) == decode_rows(old.attach(ref)) == some_rows()
        new.close()
        old.close()


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def lying_memory(data: bytes, *, cut: int = 0, sparse: bool = False) -> int:
    """Return sealed memory of ours whose header does not tell the truth, or hides holes."""
    digest = bytes.fromhex(describe(ACME, data, media_type=ARROW).sha256)
    if not sparse:
        return sealed_memory(Header(len(data), digest), data[: len(data) - cut])
    number = os.memfd_create("holes", os.MFD_ALLOW_SEALING)
    os.fchmod(number, 0o600)
    os.ftruncate(number, 64 + len(data))
    os.pwrite(number, Header(len(data), digest).pack(), 0)
    fcntl.fcntl(number, memfd._ADD_SEALS, memfd._SEALS)
    return number


def test_descriptors_that_lie_are_passed_over(folder: Path, clock: SettableClock) -> None:
    data = bytes(range(256)) * 400
    ref = describe(ACME, data, media_type=ARROW, schema_digest="0" * 64)
    unsealed = os.memfd_create("open", os.MFD_ALLOW_SEALING)
    pipe, other_end = os.pipe()
    plain = os.open(folder, os.O_RDONLY)
    everybodys = lying_memory(data)
    os.fchmod(everybodys, 0o666)
    given = {
        lying_memory(data, cut=1): "length",
        lying_memory(data[:-1] + b"!"): "digest",
        lying_memory(data, sparse=True): "holes",
        everybodys: "foreign",
        unsealed: "foreign",
        pipe: "foreign",
        plain: "foreign",
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(space(folder).socket))
        listener.listen()
        reader = shared_memory(folder, clock=clock, sealed=True)
        assert shared(shared_memory(folder, clock=clock), data) is not None  # a file, to compare
        until = clock.now() + timedelta(seconds=60)
        hint = IpcHint("node-1", f"{space(folder).sealed_prefix}x", "0" * 64, until)

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                for number in given:
                    connection.recv(1024)
                    socket.send_fds(connection, [b"ok"], [number, number])

        lying = threading.Thread(target=answer)
        lying.start()
        before = len(os.listdir("/proc/self/fd"))
        for reason in given.values():
            with pytest.raises(NotHere) as caught:
                reader.attach(replace(ref, ipc=hint))
            assert caught.value.reason == reason
        lying.join(30)
        reader.close()
        assert len(os.listdir("/proc/self/fd")) <= before  # not one of them is left open
    for number in (*given, other_end):
        os.close(number)


def test_a_broker_that_hangs_is_left_alone(folder: Path, clock: SettableClock) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(space(folder).socket))
        listener.listen()  # and nobody answers
        memory = shared_memory(folder, clock=clock, sealed=True)
        assert shared(memory) is not None  # as a file
        assert not memory._sealed.is_there
        clock.advance(9)
        assert not memory._sealed.is_there
        clock.advance(2)
        assert memory._sealed.is_there
        memory.close()


def test_a_broker_keeps_no_descriptor_it_was_not_asked_to(
    folder: Path, clock: SettableClock
) -> None:
    with broker(folder, clock), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(30)
        client.connect(str(space(folder).socket))
        numbers = [os.memfd_create(name) for name in "ab"]
        client.send(b"{}")
        assert client.recv(100) == b"what"
        before = len(os.listdir("/proc/self/fd"))  # the broker is a thread of ours
        until = clock.now().timestamp() + 10
        names = (space(folder).sealed_prefix + "x", "/noetl-memfd-other-x", "../x", "x" * 500)
        for name in names:
            words = f'{{"give": "{name}", "until": {until}}}'.encode()
            for some in ([], numbers[:1], numbers):
                socket.send_fds(client, [words], some)
                assert client.recv(100) == b"what"
        assert len(os.listdir("/proc/self/fd")) == before
        for number in numbers:
            os.close(number)


def test_where_a_broker_cannot_listen_it_says_so(folder: Path, clock: SettableClock) -> None:
    space(folder).socket.mkdir()
    with pytest.raises(ShmBrokerRefused, match=r"cannot listen at .*tier_15_path"):
        ShmBroker(space(folder), BUDGET, clock, TierCounts())


def test_a_broker_keeps_nothing_that_is_no_longer_counted(
    folder: Path, clock: SettableClock
) -> None:
    """A broker that stood still for long finds its room taken when it goes on."""
    made = ShmBroker(space(folder), BUDGET, clock, TierCounts())
    try:
        number = sealed_memory(Header(1, bytes(32)), bytes(20 * 4096))
        until = clock.now().timestamp() + LIFE_S
        assert made._give(f"{space(folder).sealed_prefix}{'a' * 40}", number, until) == b"ok"
        (folder / space(folder).reserve).unlink()
        others = shared_memory(folder, clock=clock, budget_bytes=BUDGET)
        others.sweep()
        assert shared(others, bytes(50 * 4096)) is not None
        made._renew()
        assert (made._held, made._used) == ({}, 0)
    finally:
        made._close()
