"""Arrow streams of a few bytes that would take all memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from struct import pack_into, unpack_from
from typing import Any

import pyarrow as pa
import pytest

from streams.payload.arrow import bounds as arrow_bounds
from streams.payload.arrow.rows import decode_rows, read_table
from streams.payload.errors import PayloadBomb
from streams.results.rendering import _slices

MANY = 50_000_000


def stream(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        out.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def bombs() -> Iterator[Any]:
    text = pa.array(["x" * 1_000_000])
    yield "nulls", pa.table({"n": pa.nulls(MANY)})
    yield (
        "structs of nothing",
        pa.table({"s": pa.StructArray.from_buffers(pa.struct([]), MANY, [None])}),
    )
    yield (
        "run ends",
        pa.table({"r": pa.RunEndEncodedArray.from_arrays(pa.array([MANY], pa.int32()), [1])}),
    )
    yield (
        "a dictionary",
        pa.table({"d": pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int8()), text)}),
    )
    yield (
        "lists of nulls",
        pa.table({"l": pa.ListArray.from_arrays(pa.array([0, MANY], pa.int32()), pa.nulls(MANY))}),
    )


@pytest.mark.parametrize("table", [pytest.param(table, id=name) for name, table in bombs()])
def test_values_that_need_no_bytes_are_refused(table: pa.Table) -> None:
    data = stream(table)
    assert len(data) < 2_000_000
    with pytest.raises(PayloadBomb):
        read_table(data)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_buffers_that_unpack_to_too_much_are_refused_unread(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_bounds, "MOST_UNPACKED_BYTES", 1_000_000)
    zeros = pa.table({"z": pa.array([0] * 1_000_000, pa.int64())})
    data = stream(zeros, compression=codec)
    before = pa.total_allocated_bytes()
    with pytest.raises(PayloadBomb, match="unpack"):
        read_table(data)
    assert pa.total_allocated_bytes() <= before


@pytest.mark.parametrize("codec", ["zstd", "lz4", None])
def test_what_other_writers_make_is_read(codec: str | None) -> None:
    rows = [
        {"n": n, "b": n % 2 == 0, "t": "text", "l": [n], "s": {"a": None}, "c": "red", "x": None}
        for n in range(5000)
    ]
    table = pa.Table.from_pylist(rows)
    table = table.set_column(5, "c", table["c"].dictionary_encode())
    assert decode_rows(stream(table, compression=codec)) == rows


def test_many_rows_of_one_bit_are_read() -> None:
    table = pa.table({"b": pa.array([True] * 400_000)})
    assert read_table(stream(table)).num_rows == 400_000


def alike(count: int, columns: int = 1) -> pa.Table:
    """Return rows of bits that are all zero, so that they pack to nothing."""
    bits = pa.BooleanArray.from_buffers(
        pa.bool_(), count, [None, pa.py_buffer(bytes(count // 8 + 1))]
    )
    return pa.table({f"b{n}": bits for n in range(columns)})


@pytest.mark.parametrize(("count", "columns"), [(1 << 24, 1), (1 << 28, 1), (900_000, 1000)])
def test_a_small_packed_stream_of_many_rows_is_refused(count: int, columns: int) -> None:
    data = stream(alike(count, columns), compression="zstd")
    assert len(data) < 300_000
    with pytest.raises(PayloadBomb, match="claims"):
        read_table(data)


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(alike(1 << 24), id="rows of a bit"),
        pytest.param(alike(900_000, 60), id="many columns of bits"),
        pytest.param(pa.table({"n": pa.array(bytes(10_000_001), pa.int8())}), id="many rows"),
        pytest.param(
            pa.table(
                {
                    "l": pa.ListArray.from_arrays(
                        pa.array([0, MANY + 8], pa.int32()), alike(MANY + 8)["b0"].chunk(0)
                    )
                }
            ),
            id="one list of bits",
        ),
    ],
)
def test_rows_that_would_take_all_memory_are_not_made(table: pa.Table) -> None:
    """As a table they are fit to be read; a reader of columns may want them."""
    data = stream(table)
    assert read_table(data).num_rows == table.num_rows
    tracemalloc.start()
    try:
        with pytest.raises(PayloadBomb, match="made into JSON"):
            decode_rows(data)
        with pytest.raises(PayloadBomb, match="made into JSON"):
            next(_slices(data))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", ["zstd", None])
def test_a_large_frame_of_rows_alike_is_read(codec: str | None) -> None:
    rows = decode_rows(stream(alike(300_000, 3), compression=codec))
    assert (len(rows), rows[-1]) == (300_000, {"b0": False, "b1": False, "b2": False})
    assert read_table(stream(alike(1_000_000), compression=codec)).num_rows == 1_000_000


def test_a_slice_counts_for_what_it_reaches() -> None:
    lists = pa.array([[[n], None] for n in range(1000)])
    table = pa.table({"l": lists, "m": pa.array([[("k", 1)]] * 1000, pa.map_("string", "int8"))})
    part = table.slice(10, 5)
    assert arrow_bounds._values(part) == 5 + 10 + 5 + 5 + 5 + 5
    fixed = pa.table({"f": pa.array([[1, 2]] * 100, pa.list_(pa.int8(), 2))})
    assert arrow_bounds._values(fixed.slice(7, 3)) == 3 + 6


def test_a_stream_from_a_machine_with_the_other_byte_order_is_read_as_arrow_reads_it() -> None:
    data = bytearray(stream(pa.table({"n": pa.array([1, 2, 3], pa.int32())})))
    meta = memoryview(data)[8:]
    schema = arrow_bounds._table(meta, unpack_from("<I", meta, 0)[0], 2) or 0
    vtable = schema - unpack_from("<i", meta, schema)[0]
    # The order is left out where it is ours: let it be found in bytes that are not zero.
    pack_into("<H", meta, vtable + 4, unpack_from("<H", meta, vtable + 6)[0])
    assert read_table(bytes(data))["n"].to_pylist() == [1 << 24, 2 << 24, 3 << 24]


def test_every_batch_and_every_mark_of_a_schema_is_there() -> None:
    marked = pa.schema([pa.field("n", pa.int64(), metadata={"a": "b"})], metadata={"c": "d"})
    table = pa.Table.from_batches(
        [pa.record_batch([pa.array([n, n + 1])], schema=marked) for n in range(3)]
    )
    found = read_table(stream(table))
    assert found.equals(table, check_metadata=True)
    assert found["n"].num_chunks == 3


def test_dictionaries_that_grow_between_batches_are_read() -> None:
    batches = [
        pa.record_batch([pa.array(words).dictionary_encode()], names=["w"])
        for words in (["a"], ["a", "b"])
    ]
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as out:
        for batch in batches:
            out.write_batch(batch)
    assert read_table(sink.getvalue())["w"].to_pylist() == ["a", "a", "b"]
