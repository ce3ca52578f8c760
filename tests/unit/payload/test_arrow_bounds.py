"""Arrow streams of a few bytes that would take all memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from streams.payload import arrow_bounds
from streams.payload.errors import PayloadBomb
from streams.payload.rows import decode_rows, read_table

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
