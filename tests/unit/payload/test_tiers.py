"""Reads come from the nearest tier that has the right bytes, and always come."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from streams.clock import SettableClock
from streams.events.model import IpcHint, PayloadRef
from streams.payload import content
from streams.payload.arrow import rows
from streams.payload.arrow.rows import encode_rows, rows_of
from streams.payload.content import describe, key_of
from streams.payload.errors import PayloadCorrupt, PayloadMissing
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW, JSON
from streams.payload.shm.space import SEALED, space_in
from streams.payload.tiers import pieces
from tests.support.payload.tiers import ACME, NODE, Process, encoded, some_rows, space


@pytest.fixture
def store() -> MemoryPayloadStore:
    return MemoryPayloadStore()


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def writer(tmp_path: Path, store: MemoryPayloadStore, clock: SettableClock) -> Process:
    return Process(tmp_path, store, clock=clock)


@pytest.fixture
def reader(tmp_path: Path, store: MemoryPayloadStore, clock: SettableClock) -> Process:
    return Process(tmp_path, store, clock=clock, memory_bytes=1 << 20)


async def put_rows(process: Process, count: int = 100) -> PayloadRef:
    rows = encoded(count)
    return await process.payloads.put(
        ACME,
        rows.data,
        media_type=ARROW,
        row_count=rows.row_count,
        schema_digest=rows.schema_digest,
    )


async def put_far(process: Process) -> PayloadRef:
    """Store rows of which the node has no copy."""
    ref = await put_rows(process)
    assert process.shared is not None
    process.shared.drop(ref)
    return replace(ref, ipc=None)


def hint_of(ref: PayloadRef) -> IpcHint:
    assert ref.ipc is not None
    return ref.ipc


async def test_another_process_reads_rows_from_shared_memory(
    writer: Process, reader: Process
) -> None:
    ref = await put_rows(writer)
    assert rows_of(await reader.payloads.table(ref)) == some_rows()
    assert await reader.payloads.get(ref) == encoded().data
    assert reader.counts.reads == {("1.5", False): 2}


async def test_what_the_writer_reads_itself_is_counted_apart(writer: Process) -> None:
    await writer.payloads.table(await put_rows(writer))
    assert writer.counts.reads == {("1.5", True): 1}


async def test_the_durable_store_is_written_first(
    tmp_path: Path, store: MemoryPayloadStore, writer: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: object, **__: object) -> PayloadRef:
        raise PayloadMissing("the store")

    monkeypatch.setattr(store, "put", down)
    with pytest.raises(PayloadMissing):
        await put_rows(writer)
    assert not list((tmp_path / "shm").glob("noetl-*-*-*"))


async def test_only_arrow_goes_to_shared_memory(writer: Process, reader: Process) -> None:
    ref = await writer.payloads.put(ACME, b"{}", media_type=JSON)
    assert ref.ipc is None
    assert await reader.payloads.get(ref) == b"{}"
    assert reader.served_by() == {"3": 1}


async def test_without_a_hint_the_store_is_asked_once_and_then_the_disk_and_the_memory(
    tmp_path: Path, store: MemoryPayloadStore, writer: Process, reader: Process
) -> None:
    ref = await put_far(writer)
    for _ in range(2):
        await reader.payloads.get(ref)
    assert reader.served_by() == {"3": 1, "1": 1}
    restarted = Process(tmp_path, store)
    assert await restarted.payloads.get(ref) == encoded().data
    assert restarted.served_by() == {"2": 1}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"node_id": "elsewhere"}, "node"),
        ({"schema_digest": "0" * 64}, "schema"),
        ({"shm_name": "/noetl-0-nobody"}, "foreign"),
        ({"shm_name": f"/{space(Path()).prefix}nobody"}, "gone"),
        ({"shm_name": f"/{space_in(Path(), 'other').prefix}nobody"}, "foreign"),
        ({"shm_name": f"{space(Path()).sealed_prefix}nobody"}, "no broker"),
        ({"shm_name": f"{SEALED}0-nobody"}, "foreign"),
        ({"shm_name": f"{space(Path()).sealed_prefix}/../x"}, "name"),
        ({"shm_name": "/etc/passwd"}, "name"),
        ({"shm_name": f"/{space(Path()).prefix}/../../x"}, "name"),
        ({"shm_name": f"/{space(Path()).prefix}\0"}, "name"),
        ({"shm_name": ""}, "name"),
    ],
)
async def test_a_hint_that_does_not_hold_falls_through(
    writer: Process, reader: Process, change: dict[str, str], reason: str
) -> None:
    ref = await put_rows(writer)
    lying = replace(ref, ipc=replace(hint_of(ref), **change))  # type: ignore[arg-type]
    assert rows_of(await reader.payloads.table(lying)) == some_rows()
    assert reader.served_by() == {"3": 1}
    assert reader.counts.fell_through == {reason: 1}


async def test_a_hint_of_another_payload_falls_through(writer: Process, reader: Process) -> None:
    ref, other = await put_rows(writer), await put_rows(writer, 200)
    mixed = replace(ref, ipc=hint_of(other))
    assert rows_of(await reader.payloads.table(mixed)) == some_rows()
    same_length = encode_rows([{"id": n, "name": f"n{n}", "tags": [n]} for n in range(100)][::-1])
    reversed_ref = await writer.payloads.put(
        ACME, same_length.data, media_type=ARROW, schema_digest=same_length.schema_digest
    )
    assert reversed_ref.byte_length == ref.byte_length
    lying = replace(ref, ipc=hint_of(reversed_ref))
    reader.payloads._memory = None  # type: ignore[attr-defined]
    assert rows_of(await reader.payloads.table(lying)) == some_rows()
    assert reader.counts.fell_through == {"length": 1, "digest": 1}


async def test_a_reference_that_lost_its_hint_is_found_by_its_content(
    writer: Process, reader: Process
) -> None:
    ref = replace(await put_rows(writer), ipc=None)
    assert rows_of(await reader.payloads.table(ref)) == some_rows()
    assert reader.counts.reads == {("1.5", False): 1}


async def test_a_hint_is_not_used_after_its_time(
    writer: Process, reader: Process, clock: SettableClock
) -> None:
    ref = await put_rows(writer)
    assert hint_of(ref).node_id == NODE
    assert hint_of(ref).valid_until == clock.now() + timedelta(seconds=90)
    clock.advance(90)
    await reader.payloads.table(ref)
    assert reader.served_by() == {"3": 1}
    assert reader.counts.fell_through == {"expired": 1}


async def test_a_region_that_holds_no_arrow_falls_through(
    tmp_path: Path, writer: Process, reader: Process
) -> None:
    ref = await put_rows(writer)
    region = tmp_path / "shm" / hint_of(ref).shm_name[1:]
    whole = region.read_bytes()
    region.write_bytes(whole[:64] + bytes(len(whole) - 64))
    assert rows_of(await reader.payloads.table(ref)) == some_rows()
    assert reader.counts.fell_through == {"arrow": 1}


async def test_losing_every_cache_during_reads_changes_no_result(
    tmp_path: Path, writer: Process, reader: Process
) -> None:
    refs = [await put_rows(writer, count) for count in range(1, 9)]
    first = [await reader.payloads.table(ref) for ref in refs]
    shutil.rmtree(tmp_path / "shm")
    shutil.rmtree(tmp_path / "disk")
    again = [await reader.payloads.table(ref) for ref in refs]
    for count, (one, other) in enumerate(zip(first, again, strict=True), start=1):
        assert rows_of(one) == rows_of(other) == some_rows(count)
    assert (await put_rows(writer)).ipc is None  # and storing goes on without them


async def test_a_damaged_file_on_disk_is_replaced(
    tmp_path: Path, store: MemoryPayloadStore, writer: Process
) -> None:
    ref = await put_far(writer)
    one = Process(tmp_path, store)
    await one.payloads.get(ref)
    (copy,) = [path for path in (tmp_path / "disk").glob("*/*") if path.is_file()]
    copy.write_bytes(b"x" * ref.byte_length)
    other = Process(tmp_path, store)
    assert await other.payloads.get(ref) == encoded().data
    assert other.counts.fell_through["disk corrupt"] == 1
    assert copy.read_bytes() == encoded().data


async def test_a_damaged_store_is_still_noticed(
    store: MemoryPayloadStore, writer: Process, reader: Process
) -> None:
    ref = await put_far(writer)
    store.objects[key_of(ref)] = b"x" * ref.byte_length
    with pytest.raises(PayloadCorrupt):
        await reader.payloads.table(ref)


async def test_a_reference_that_lies_about_its_length_is_corrupt(
    writer: Process, reader: Process
) -> None:
    ref = await put_rows(writer)
    with pytest.raises(PayloadCorrupt):
        await reader.payloads.get(replace(ref, byte_length=ref.byte_length + 1))


async def test_a_deleted_payload_leaves_no_copy_on_the_node(
    tmp_path: Path, writer: Process, reader: Process
) -> None:
    ref = await put_rows(writer)
    await reader.payloads.get(ref)
    await reader.payloads.delete(ref)
    for process in (writer, reader):
        with pytest.raises(PayloadMissing):
            await process.payloads.get(ref)
    assert not list((tmp_path / "shm").glob("noetl-*-*-*"))


async def test_the_counters_are_told_as_json(writer: Process, reader: Process) -> None:
    ref = await put_rows(writer)
    await reader.payloads.table(ref)
    stats = reader.payloads.snapshot()
    assert stats["consumer"] == "test"
    assert stats["reads"] == [{"tier": "1.5", "own": False, "count": 1}]
    assert stats["bytes_in_use"]["1.5"] == -(-(ref.byte_length + 64) // 4096) * 4096


async def fetched(process: Process, ref: PayloadRef) -> bytes:
    return b"".join([piece async for piece in process.payloads.fetch(ref)])


def on_disk(folder: Path) -> list[Path]:
    return [path for path in (folder / "disk").glob("*/*") if path.is_file()]


async def test_what_is_streamed_passes_by_the_disk_and_survives_a_restart(
    tmp_path: Path, store: MemoryPayloadStore, writer: Process
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for number in range(5):
            yield bytes([number]) * 40_000

    ref = await writer.payloads.store(ACME, pieces(), media_type=JSON)
    whole = b"".join([piece async for piece in pieces()])
    assert not on_disk(tmp_path)  # whoever stores it may never read it
    assert await fetched(writer, ref) == whole
    assert writer.served_by() == {"3": 1}
    restarted = Process(tmp_path, store)
    assert await fetched(restarted, ref) == whole
    assert await restarted.payloads.get(ref) == whole
    assert restarted.served_by() == {"2": 2}


async def test_what_is_not_wanted_to_its_end_is_not_kept(
    tmp_path: Path, store: MemoryPayloadStore, writer: Process
) -> None:
    ref = await writer.payloads.put(ACME, bytes(200_000), media_type=JSON)
    pieces = writer.payloads.fetch(ref)
    await anext(pieces)
    await pieces.aclose()  # type: ignore[attr-defined]
    assert not on_disk(tmp_path)
    assert writer.disk is not None
    assert writer.disk.bytes_in_use == 0


async def test_what_is_too_large_for_the_disk_is_streamed_all_the_same(
    tmp_path: Path, writer: Process
) -> None:
    ref = await writer.payloads.put(ACME, bytes(300_000), media_type=JSON)
    assert await fetched(writer, ref) == bytes(300_000)
    assert not on_disk(tmp_path)


async def test_a_damaged_store_is_streamed_to_nobodys_disk(
    tmp_path: Path, store: MemoryPayloadStore, writer: Process
) -> None:
    ref = await writer.payloads.put(ACME, bytes(200_000), media_type=JSON)
    store.objects[key_of(ref)] = b"x" * ref.byte_length
    with pytest.raises(PayloadCorrupt):
        await fetched(writer, ref)
    assert not on_disk(tmp_path)


async def test_a_damaged_copy_on_disk_is_not_streamed(tmp_path: Path, writer: Process) -> None:
    ref = await writer.payloads.put(ACME, bytes(200_000), media_type=JSON)
    await fetched(writer, ref)
    (copy,) = on_disk(tmp_path)
    copy.write_bytes(b"x" * ref.byte_length)
    assert await fetched(writer, ref) == bytes(200_000)
    assert writer.counts.fell_through == {"disk corrupt": 1}
    assert writer.served_by() == {"3": 2}


async def test_rows_are_streamed_from_shared_memory(writer: Process, reader: Process) -> None:
    ref = await put_rows(writer)
    assert await fetched(reader, ref) == encoded().data
    assert reader.served_by() == {"1.5": 1}


async def test_a_region_that_holds_something_else_is_neither_copied_nor_streamed(
    tmp_path: Path, writer: Process, store: MemoryPayloadStore, clock: SettableClock
) -> None:
    ref = await put_rows(writer)
    region = tmp_path / "shm" / hint_of(ref).shm_name[1:]
    whole = bytearray(region.read_bytes())
    whole[-100] ^= 1
    region.write_bytes(whole)
    reader = Process(tmp_path, store, clock=clock)
    assert await reader.payloads.get(ref) == encoded().data
    assert await fetched(reader, ref) == encoded().data
    assert reader.counts.fell_through == {"content": 2}
    assert reader.served_by() == {"3": 1, "2": 1}


async def test_a_payload_that_is_missing_pushes_no_copy_out(
    tmp_path: Path, writer: Process, store: MemoryPayloadStore
) -> None:
    ref = await put_far(writer)
    await fetched(writer, ref)
    before = on_disk(tmp_path)
    assert before
    assert writer.disk is not None
    absent = describe(ACME, b"x" * 200_000, media_type=JSON)
    for _ in range(10):
        with pytest.raises(PayloadMissing):
            await fetched(writer, absent)
    assert on_disk(tmp_path) == before
    assert "disk refused" not in writer.counts.events


async def test_rows_in_shared_memory_are_not_hashed(
    writer: Process, reader: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("hashed")

    ref = await put_rows(writer)
    for module in (content, pieces, rows):
        monkeypatch.setattr(module, "sha256", refuse)
    assert (await reader.payloads.table(ref)).num_rows == ref.row_count
    assert reader.served_by() == {"1.5": 1}
