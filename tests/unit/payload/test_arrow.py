"""Arrow streams that lie: refused, in little memory, and without a crash."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from streams.payload.arrow.rows import decode_rows, read_table, rows_of
from streams.payload.errors import PayloadBomb, PayloadCorrupt
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW
from tests.support.payload.tiers import ACME, Process

MB = 1 << 20


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_damage_crashes_a_reader_or_gives_wrong_bytes(tmp_path: Path, seed: int) -> None:
    path = os.pathsep.join(place for place in sys.path if place)
    run = subprocess.run(
        [
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            "tests.support.payload.damaged_regions",
            str(seed),
            "600",
            tmp_path,
        ],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=300,
        check=False,
    )

    assert run.returncode == 0, run.stderr.decode()
    found = orjson.loads(run.stdout)
    assert set(found["seen"]) <= {"read", "refused"}
    assert {"arrow", "content", "header", "length", "digest"} <= set(found["fell_through"])
    assert found["peak_mb"] < 400


def test_offsets_that_lead_out_of_the_memory_are_refused() -> None:
    data = bytearray(stream(pa.table({"name": ["abc", "def", "ghi"]})))
    place = data.index(struct.pack("<4i", 0, 3, 6, 9))
    struct.pack_into("<i", data, place + 4, 2**30)
    with pytest.raises(PayloadCorrupt, match="not an Arrow stream"):
        read_table(bytes(data))


def test_a_number_of_rows_that_nothing_holds_is_refused() -> None:
    count = 1_234_567
    data = stream(pa.table({"nothing": pa.nulls(count)}))
    with pytest.raises(PayloadBomb, match=f"claims {count} rows"):
        read_table(data)


def test_another_number_of_rows_than_was_said_is_refused() -> None:
    data = stream(pa.table({"id": [1, 2, 3]}))
    assert read_table(data, row_count=3).num_rows == 3
    with pytest.raises(PayloadCorrupt, match="3 rows, not 4"):
        read_table(data, row_count=4)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_packed_buffers_are_read_up_to_a_bound(compression: str) -> None:
    table = pa.table({"x": pa.array(["x" * 1000] * 1000), "n": pa.array(range(1000))})
    data = stream(table, compression)
    assert read_table(data, unpacked_bytes=2 * MB) == table
    assert len(decode_rows(data)) == 1000
    with pytest.raises(PayloadBomb, match="unpack to 1012004 bytes"):
        read_table(data, unpacked_bytes=1_000_000)


def test_packed_dictionaries_count_as_well() -> None:
    table = pa.table({"x": pa.array(["x" * MB, "y" * MB]).dictionary_encode()})
    with pytest.raises(PayloadBomb):
        read_table(stream(table, "zstd"), unpacked_bytes=MB)
    assert read_table(stream(table, "zstd")) == table


@pytest.mark.parametrize("promised", [2**62, 2**40])
def test_a_packed_buffer_that_lies_about_its_length_takes_no_memory(promised: int) -> None:
    table = pa.table({"x": pa.array(["x" * 100] * 1000)})
    data = bytearray(stream(table, "zstd"))
    place = data.index(struct.pack("<q", 100 * 1000))
    struct.pack_into("<q", data, place, promised)
    with pytest.raises(PayloadBomb):
        read_table(bytes(data))


async def test_packed_rows_do_not_come_from_shared_memory(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(["x" * 100] * 1000)})
    store = MemoryPayloadStore()
    writer, reader = Process(tmp_path, store), Process(tmp_path, store)
    data = stream(table, "zstd")
    ref = await writer.payloads.put(ACME, data, media_type=ARROW, schema_digest="0" * 64)
    assert await reader.payloads.table(ref) == table
    assert reader.served_by() == {"3": 1}
    assert reader.counts.fell_through == {"arrow": 1}


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"t": pa.array([0], pa.timestamp("us", tz="Nowhere/Land"))}),
        pa.table(
            [pa.array(["{"])],
            schema=pa.schema([pa.field("x", pa.string(), metadata={b"noetl.encoding": b"json"})]),
        ),
        pa.table(
            [pa.array(["[" * 100_000])],
            schema=pa.schema(
                [pa.field("x", pa.string(), metadata={b"noetl.encoding": b"json.wide"})]
            ),
        ),
    ],
    ids=["zone", "json", "depth"],
)
def test_values_that_cannot_be_read_are_corrupt_and_no_bug(table: pa.Table) -> None:
    with pytest.raises(PayloadCorrupt, match="wrong values"):
        rows_of(read_table(stream(table)))
