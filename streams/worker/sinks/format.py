"""File formats: JSON, CSV, Parquet; and lists split into parts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import BinaryIO

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.sinks.port import SinkJob

MEDIA_TYPES: Mapping[str, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


def encoded(data: Json, format: str) -> bytes:
    """Return the value in this format.

    Raises:
        BadConfig: the format cannot represent it.
    """
    if format == "csv":
        return _csv(rows_in(data, format))
    if format == "parquet":
        return _parquet(rows_in(data, format))
    return orjson.dumps(data, default=str)


def lines(data: Json, format: str, file: BinaryIO) -> bytes:
    """Return the value as lines to append to a file, one for each row.

    Raises:
        BadConfig: the format cannot be appended to, or the columns differ.
    """
    if format == "csv":
        file.seek(0)
        head = next(csv.reader(line.decode("utf-8-sig") for line in file), [])
        return _csv(rows_in(data, format), head=head)
    if format == "json":
        each = data if isinstance(data, list) else [data]
        return b"".join(orjson.dumps(one, default=str) + b"\n" for one in each)
    raise BadConfig(f"a {format} file cannot be appended to; use mode overwrite")


def rows_in(data: Json, what: str) -> list[Mapping[str, Json]]:
    """Return a value as rows.

    Raises:
        BadConfig: it is neither a mapping nor a list of mappings.
    """
    items = data if isinstance(data, list) else [data]
    rows: list[Mapping[str, Json]] = [row for row in items if isinstance(row, Mapping)]
    if len(rows) != len(items):
        raise BadConfig(f"{what} takes a mapping or a list of mappings as `data`")
    return rows


def columns_of(rows: Sequence[Mapping[str, Json]]) -> list[str]:
    """Return the columns of all rows, in order of first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def parts(job: SinkJob) -> list[tuple[int | None, Json]]:
    """Return the numbered chunks of a list, or the whole value without a number."""
    if job.chunk_size is None or not isinstance(job.data, list):
        return [(None, job.data)]
    return list(enumerate(_chunks(job.data, job.chunk_size))) or [(0, [])]


def surplus(job: SinkJob, made: Sequence[tuple[int | None, Json]]) -> int | None:
    """Return the number of the first part that may be left of a longer list, if any."""
    if job.chunk_size is None or job.mode == "append":
        return None
    return sum(number is not None for number, _ in made)


def span(made: Sequence[tuple[int | None, Json]]) -> str:
    """Return the range of parts of a value; empty if it was written whole."""
    return "" if made[0][0] is None else f"parts:{len(made)}"


def numbered(name: str, number: int | None) -> str:
    """Return the name of a part: `a/b.json` -> `a/b-00003.json`."""
    if number is None:
        return name
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}-{number:05}{path.suffix}"))


def _chunks(items: list[Json], size: int) -> Iterator[list[Json]]:
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def _csv(rows: Sequence[Mapping[str, Json]], *, head: Sequence[str] = ()) -> bytes:
    """Return the rows as CSV, in the columns of `head` if given."""
    columns, text = list(head) or columns_of(rows), io.StringIO(newline="")
    if strange := [name for name in columns_of(rows) if name not in columns]:
        raise BadConfig(f"the file has no column {strange[0]!r}; it has {', '.join(columns)}")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    if rows and not head:
        writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue().encode()


def _cell(value: Json) -> Json:
    if isinstance(value, (dict, list)):
        return orjson.dumps(value, default=str).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def _parquet(rows: Sequence[Mapping[str, Json]]) -> bytes:
    columns = columns_of(rows)
    out = pa.BufferOutputStream()
    try:
        made = {name: pa.array([row.get(name) for row in rows]) for name in columns}
        pq.write_table(pa.table(made), out)
    except (OverflowError, pa.ArrowException) as error:
        raise BadConfig(f"the rows have no common type for Parquet: {error}") from error
    written: bytes = out.getvalue().to_pybytes()
    return written
