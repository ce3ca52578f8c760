"""Regions: bounded, sealed, removed in time, and never believed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.clock import SettableClock
from streams.payload.arrow.rows import decode_rows
from streams.payload.shm import region as region_module
from streams.payload.shm.header import SIZE, BadHeader, Header, unpack
from streams.payload.shm.node import SharedMemory, Terms
from streams.payload.shm.region import NotHere
from streams.payload.tiers.counts import TierCounts
from tests.support.payload.regions import DATA, reason, regions, shared
from tests.support.payload.tiers import LIFE_S, shared_memory, some_rows, space


def test_the_header_has_the_fields_of_the_format_in_order() -> None:
    packed = Header(5, bytes(range(32))).pack()
    assert len(packed) == SIZE == 64
    assert packed[:8] == b"NOETLIPC"
    assert packed[8:12] == (1).to_bytes(4, "little")
    assert packed[12:20] == (5).to_bytes(8, "little")
    assert packed[20:52] == bytes(range(32))
    assert packed[52:] == bytes(12)
    assert unpack(packed) == Header(5, bytes(range(32)))


@given(st.binary(max_size=80))
def test_other_bytes_are_no_header(data: bytes) -> None:
    with pytest.raises(BadHeader):
        unpack(data)


def test_what_is_mapped_outlives_its_name(tmp_path: Path) -> None:
    writer, reader = shared_memory(tmp_path), shared_memory(tmp_path)
    ref = shared(writer)
    assert ref is not None
    buffer = reader.attach(ref)
    writer.close()
    assert not regions(tmp_path)
    assert decode_rows(buffer) == some_rows()
    assert reason(reader, ref) == "gone"


def test_a_reader_gets_the_pages_themselves_and_not_a_copy(tmp_path: Path) -> None:
    writer, reader = shared_memory(tmp_path), shared_memory(tmp_path)
    ref = shared(writer)
    assert ref is not None
    assert ref.ipc is not None
    buffer = reader.attach(ref)
    region = tmp_path / ref.ipc.shm_name[1:]
    with region.open("r+b") as file:
        file.seek(SIZE)
        file.write(b"#")
    assert buffer[0:1].to_pybytes() == b"#"


def test_the_same_bytes_are_shared_once_and_live_on(tmp_path: Path) -> None:
    clock = SettableClock()
    one, other = shared_memory(tmp_path, clock=clock), shared_memory(tmp_path, clock=clock)
    shared(one)
    clock.advance(LIFE_S - 1)
    ref = shared(other)
    assert len(regions(tmp_path)) == 1
    clock.advance(2)
    one.tend()  # its own time is over, the other's is not
    assert ref is not None
    assert decode_rows(other.attach(ref)) == some_rows()
    clock.advance(LIFE_S)
    one.tend()
    assert not regions(tmp_path)
    assert one.bytes_in_use == 0


MUTATIONS = st.one_of(
    st.tuples(st.just("flip"), st.integers(0, SIZE * 8 - 1)),
    st.tuples(st.just("cut"), st.integers(0, SIZE + len(DATA) - 1)),
    st.tuples(st.just("grow"), st.integers(1, 10_000)),
    st.tuples(st.just("length"), st.integers(0, 2**64 - 1).filter(lambda n: n != len(DATA))),
)


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(mutation=MUTATIONS)
def test_a_mutated_region_never_gives_wrong_bytes(
    mutation: tuple[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("shm")
    writer, reader = shared_memory(folder), shared_memory(folder)
    ref = shared(writer)
    assert ref is not None
    (region,) = regions(folder)
    region.write_bytes(mutated(region.read_bytes(), *mutation))
    with pytest.raises(NotHere):
        reader.attach(ref)


def mutated(whole: bytes, kind: str, number: int) -> bytes:
    if kind == "cut":
        return whole[:number]
    if kind == "grow":
        return whole + bytes(number)
    changed = bytearray(whole)
    if kind == "flip":
        changed[number // 8] ^= 1 << number % 8
    else:
        changed[12:20] = number.to_bytes(8, "little")
    return bytes(changed)


def test_what_is_no_plain_file_of_ours_is_refused(tmp_path: Path) -> None:
    memory = shared_memory(tmp_path)
    ref = shared(memory)
    assert ref is not None
    (region,) = regions(tmp_path)
    whole = region.read_bytes()
    region.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(whole)
    region.symlink_to(elsewhere)
    assert reason(memory, ref) == "unreadable"
    region.unlink()
    os.mkfifo(region)
    assert reason(memory, ref) == "foreign"
    region.unlink()
    region.write_bytes(whole)
    region.chmod(0o666)
    assert reason(memory, ref) == "foreign"
    region.chmod(0o600)
    memory.attach(ref)


KILLED = """
import os, sys
from pathlib import Path
from tests.unit.payload.test_shm import shared
from tests.support.payload.regions import DATA, REF, reason, regions, shared
from tests.support.payload.tiers import shared_memory
write = os.pwrite
def half(number, data, offset):
    write(number, data[: len(data) // 2], offset)
    print("half", flush=True)
    sys.stdin.read()
os.pwrite = half
shared(shared_memory(Path(sys.argv[1])))
"""


def test_a_writer_killed_half_way_leaves_what_readers_refuse_and_the_sweep_removes(
    tmp_path: Path,
) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"half\n"
        writer.send_signal(signal.SIGKILL)
    (left,) = regions(tmp_path)
    clock = SettableClock()
    clock.set(SettableClock().now().fromtimestamp(time.time(), tz=clock.now().tzinfo))
    memory = shared_memory(tmp_path, clock=clock)
    ref = shared(memory)
    assert ref is not None
    assert ref.ipc is not None
    half = replace(ref, ipc=replace(ref.ipc, shm_name=f"/{left.name}"))
    assert reason(memory, half) == "header"
    assert memory.sweep() == 0  # it might still be written
    clock.advance(61)
    assert memory.sweep() == 1
    assert not left.exists()
    assert decode_rows(memory.attach(ref)) == some_rows()
    assert memory.bytes_in_use == -(-(len(DATA) + SIZE) // 4096) * 4096


def test_what_was_never_written_is_not_looked_at(tmp_path: Path) -> None:
    memory = shared_memory(tmp_path)
    ref = shared(memory, bytes(100_000))
    assert ref is not None
    (region,) = regions(tmp_path)
    header = region.read_bytes()[:SIZE]
    region.unlink()
    with region.open("xb") as file:
        file.write(header)
        file.truncate(SIZE + 100_000)
    region.chmod(0o600)
    assert reason(memory, ref) == "holes"


def test_what_is_cut_while_it_is_mapped_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = shared_memory(tmp_path)
    ref = shared(memory)
    assert ref is not None
    (region,) = regions(tmp_path)
    looked = os.pread

    def cut(number: int, size: int, offset: int) -> bytes:
        found = looked(number, size, offset)
        os.truncate(region, SIZE)
        return found

    monkeypatch.setattr(region_module.os, "pread", cut)
    assert reason(memory, ref) in ("length", "holes")


FULL = """
import os, sys
from pathlib import Path
from tests.support.payload.regions import DATA, REF, reason, regions, shared
from tests.support.payload.tiers import shared_memory
from tests.unit.payload.test_shm import shared
memory = shared_memory(Path(sys.argv[1]), budget_bytes=1 << 30)
taken = [shared(memory, bytes([n]) * 60_000) for n in range(20)]
print(sum(ref is not None for ref in taken), sum(ref is None for ref in taken), flush=True)
(good, *_) = [ref for ref in taken if ref is not None]
assert memory.attach(good).to_pybytes() == bytes([0]) * 60_000
path = Path(sys.argv[1]) / good.ipc.shm_name[1:]
header = path.read_bytes()[:64]
path.unlink()
for n in range(64):  # no page is left for anybody
    try:
        (path.parent / f"filler-{n}").write_bytes(bytes(4096))
    except OSError:
        break
(path.parent / f"filler-{n - 1}").unlink()
path.write_bytes(header)
os.truncate(path, 64 + 60_000)
path.chmod(0o600)
try:
    memory.attach(good)[4096:].to_pybytes()
except Exception as error:
    print(error)
print(memory.bytes_in_use)
"""


@pytest.fixture
def small_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory of half a megabyte, as a full /dev/shm would be."""
    folder = tmp_path / "small"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("only root may mount a small folder in memory")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_memory_ends_neither_writer_nor_reader(small_folder: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(small_folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        check=False,
    )

    assert run.returncode == 0, run.stderr
    (taken, refused), (why,), (used,) = (line.split() for line in run.stdout.splitlines())
    assert int(taken) > 0
    assert int(refused) > 0
    assert why == "holes"
    assert int(used) == int(taken) * 61_440  # what could not be written is not counted


def test_stacks_of_a_machine_know_nothing_of_each_other(tmp_path: Path) -> None:
    clock, counts = SettableClock(), TierCounts()
    one, other = (
        SharedMemory(
            Terms(node_id="n", space=space(tmp_path, name), budget_bytes=8192, life_s=LIFE_S),
            clock,
            counts,
        )
        for name in ("one", "other")
    )
    ref = shared(one)
    assert ref is not None
    assert reason(other, ref) == "foreign"
    assert reason(other, replace(ref, ipc=None)) == "no hint"
    assert other.bytes_in_use == 0
    assert shared(other, bytes(5000)) is not None  # each has a budget of its own
    other.drop(ref)
    clock.advance(LIFE_S + 60)
    other.sweep()
    assert one.bytes_in_use > 0
    assert len(regions(tmp_path)) == 1  # not even what is over: its owner tends it
    clock.advance(3600)
    assert other.sweep() == 1  # but nobody tends this
    assert not regions(tmp_path)
    for memory in (one, other):
        memory.sweep()
        memory.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of somebody else")
def test_files_of_other_users_are_neither_read_nor_counted_nor_removed(tmp_path: Path) -> None:
    clock = SettableClock()
    memory = shared_memory(tmp_path, clock=clock, budget_bytes=8192)
    ref = shared(memory)
    assert ref is not None
    (region,) = regions(tmp_path)
    os.chown(region, 65534, 65534)
    assert reason(memory, ref) == "foreign"
    clock.advance(LIFE_S + 7200)
    assert memory.sweep() == 0
    assert region.exists()
    assert memory.bytes_in_use == 0


def test_a_link_under_a_regions_name_is_replaced_and_not_followed(tmp_path: Path) -> None:
    memory = shared_memory(tmp_path / "shm")
    ref = shared(memory)
    assert ref is not None
    (region,) = regions(tmp_path / "shm")
    victim = tmp_path / "victim"
    region.rename(victim)
    os.utime(victim, (1, 1))
    region.symlink_to(victim)
    again = shared(memory)
    assert again is not None
    assert victim.stat().st_mtime == 1
    assert not region.is_symlink()
    memory.attach(again)


def test_a_folder_under_a_regions_name_does_not_end_the_sweep(tmp_path: Path) -> None:
    memory, clock = shared_memory(tmp_path), SettableClock()
    assert shared(shared_memory(tmp_path, clock=clock)) is not None
    (tmp_path / f"{space(tmp_path).prefix}aaa").mkdir()
    os.utime(tmp_path / f"{space(tmp_path).prefix}aaa", (1, 1))
    (left,) = [path for path in regions(tmp_path) if path.is_file()]
    os.utime(left, (1, 1))
    assert memory.sweep() == 1
    assert not left.exists()


def test_a_region_that_another_process_gave_more_time_outlives_its_writer(tmp_path: Path) -> None:
    clock = SettableClock()
    first, second = (shared_memory(tmp_path, clock=clock) for _ in range(2))
    assert shared(first) is not None
    clock.advance(5)
    ref = shared(second)
    assert ref is not None
    first.close()
    assert second.attach(ref).size == len(DATA)
    second.close()
    assert not regions(tmp_path)


def test_a_lease_of_days_makes_no_region_that_is_swept_at_once(tmp_path: Path) -> None:
    terms = Terms(node_id="n", space=space(tmp_path), budget_bytes=1 << 20, life_s=1e6)
    memory = SharedMemory(terms, SettableClock(), TierCounts())
    ref = shared(memory)
    assert ref is not None
    memory.sweep()
    assert memory.attach(ref).size == len(DATA)
