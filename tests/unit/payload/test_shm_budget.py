"""The budget of a node's regions: counted once for all processes, swept, and never overdrawn."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streams.clock import SettableClock
from streams.payload.shm import region as region_module
from streams.payload.shm.node import Terms, open_shared_memory
from streams.payload.tiers.counts import TierCounts
from tests.support.payload.regions import regions, shared
from tests.support.payload.tiers import LIFE_S, shared_memory, space


def test_the_budget_is_the_nodes_not_the_process_s(tmp_path: Path) -> None:
    counts = TierCounts()
    one = shared_memory(tmp_path, budget_bytes=3 * 8192)
    other = shared_memory(tmp_path, budget_bytes=3 * 8192, counts=counts)
    taken = [shared(one, bytes([n]) * 5000) for n in range(2)]
    taken += [shared(other, bytes([n]) * 5000) for n in range(2, 4)]
    assert [ref is not None for ref in taken] == [True, True, True, False]
    assert counts.events["exhausted"] == 1
    assert one.bytes_in_use == other.bytes_in_use == 3 * 8192
    one.close()
    assert shared(other, b"again" * 1000) is not None


def test_a_large_region_is_counted_as_well(tmp_path: Path) -> None:
    memory = shared_memory(tmp_path)
    data = bytes(100_000)
    ref = shared(memory, data)
    assert ref is not None
    assert memory.attach(ref).to_pybytes() == data
    assert memory.bytes_in_use == 25 * 4096
    memory.close()
    assert memory.bytes_in_use == 0


def test_what_is_larger_than_the_budget_is_not_shared(tmp_path: Path) -> None:
    memory = shared_memory(tmp_path, budget_bytes=4096)
    assert shared(memory, bytes(5000)) is None
    assert not regions(tmp_path)


def test_a_full_folder_is_swept_before_anything_is_refused(tmp_path: Path) -> None:
    clock = SettableClock()
    crashed = shared_memory(tmp_path, budget_bytes=8192, clock=clock)
    shared(crashed, bytes(5000))
    clock.advance(LIFE_S + 1)
    alive = shared_memory(tmp_path, budget_bytes=8192, clock=clock)
    assert shared(alive, b"x" * 5000) is not None


@pytest.mark.parametrize("content", [b"", b"?", b"\xff" * 8])
def test_a_damaged_ledger_is_counted_anew(tmp_path: Path, content: bytes) -> None:
    memory = shared_memory(tmp_path)
    shared(memory)
    used = memory.bytes_in_use
    (ledger,) = tmp_path.glob("*.ledger")
    ledger.write_bytes(content)
    assert shared_memory(tmp_path).bytes_in_use == used
    ledger.unlink()
    assert memory.bytes_in_use == used


def test_a_ledger_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    memory = shared_memory(tmp_path / "shm")
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    space(tmp_path / "shm").ledger.symlink_to(victim)
    assert shared(memory) is None
    assert victim.read_bytes() == b"precious"


def test_a_ledger_that_somebody_else_holds_stalls_nobody(tmp_path: Path) -> None:
    import fcntl

    memory = shared_memory(tmp_path)
    shared(memory)
    (ledger,) = tmp_path.glob("*.ledger")
    with ledger.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert shared(memory, b"other") is None
    assert shared(memory, b"other") is not None


def test_a_start_removes_what_a_crash_left_and_nothing_else(tmp_path: Path) -> None:
    clock = SettableClock()
    shared(shared_memory(tmp_path, clock=clock), b"left by a crash")
    clock.advance(LIFE_S / 2)
    shared(shared_memory(tmp_path, clock=clock), b"in use")
    unfinished = tmp_path / f"{space(tmp_path).prefix}new-1-1"
    unfinished.write_bytes(bytes(100))
    old = clock.now().timestamp() - 61
    os.utime(unfinished, (old, old))
    (tmp_path / "somebody-elses").write_bytes(b"")
    clock.advance(LIFE_S / 2 + 1)
    counts = TierCounts()
    terms = Terms(node_id="n", space=space(tmp_path), budget_bytes=1 << 20, life_s=LIFE_S)
    memory = open_shared_memory(terms, clock, counts)
    assert memory is not None
    assert (counts.events["sweeps"], counts.events["swept"]) == (1, 2)
    assert len(regions(tmp_path)) == 1
    assert (tmp_path / "somebody-elses").exists()
    assert memory.bytes_in_use == 4096


def test_where_there_is_no_shared_memory_there_is_none(tmp_path: Path) -> None:
    terms = Terms(node_id="n", space=space(tmp_path / "not"), budget_bytes=1 << 20, life_s=LIFE_S)
    assert open_shared_memory(terms, SettableClock(), TierCounts()) is None
    terms = Terms(node_id="n", space=space(tmp_path), budget_bytes=0, life_s=LIFE_S)
    assert open_shared_memory(terms, SettableClock(), TierCounts()) is None


@pytest.mark.parametrize("size", [1000, 100_000])
def test_no_room_left_on_the_device_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    memory = shared_memory(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(region_module, "write", full)
    assert shared(memory, bytes(size)) is None
    assert not regions(tmp_path)
    assert memory.bytes_in_use == 0
