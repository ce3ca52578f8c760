"""Size limits of untrusted Arrow streams: a few bytes can claim any number of rows.

A column of nulls needs no bytes for its rows, a dictionary repeats one long text, and compressed
buffers unpack to any size. A regular stream has at least a bit for every value, a compressed one
less; a stream that claims much more is rejected before it is decoded. Rows as Python objects
take a hundred times the memory of a table: they have separate limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import unpack_from
from sys import byteorder

import pyarrow as pa
import pyarrow.compute as pc

MOST_UNPACKED_BYTES = 256 << 20
FREE_ROWS = 100_000
"""Allowed rows without any bytes, for regular columns of nulls."""
FREE_VALUES = 10_000_000
FREE_OBJECTS = 1_000_000
"""Allowed identical rows: compressed they take no bytes, as objects some 200 MB."""
MOST_OBJECTS, MOST_VALUES = 10_000_000, 50_000_000
"""Most rows, and values, of one table as objects."""
_PACKED_BITS = 64
"""Most values per byte of a compressed stream; differing rows take far more bytes."""
_END_MARK = 8
_ORDERS = {"little": 0, "big": 1}
_VIEWS = (pa.types.is_string_view, pa.types.is_binary_view)
_UNBOUNDED = (
    pa.types.is_run_end_encoded,
    pa.types.is_union,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)
_DENSE = (
    pa.types.is_primitive,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)


class Grows(ValueError):
    """A stream would take too much memory."""


def unpacked(data: bytes | pa.Buffer, most_bytes: int | None = None) -> pa.Table:
    """Return the table of a stream, after checking the size of its compressed buffers.

    Raises:
        Grows: it is too much.
        pa.ArrowException: it is not an Arrow stream.
    """
    total, most_bytes = 0, MOST_UNPACKED_BYTES if most_bytes is None else most_bytes
    messages = list(_messages(pa.BufferReader(data), len(data)))
    for message in messages:
        total += _unpacked(message)
        if total > most_bytes:
            raise Grows(f"its buffers unpack to {total} bytes, {most_bytes} are allowed")
    if not _is_plain(messages):
        return pa.ipc.open_stream(data).read_all()
    # The messages are reused: parsing them again would double the time.
    schema = pa.ipc.read_schema(messages[0])
    batches = [pa.ipc.read_record_batch(one, schema) for one in messages[1:]]
    return pa.Table.from_batches(batches, schema)


def check_table(table: pa.Table, byte_length: int) -> None:
    """Compare a table's rows and values with the bytes it was read from.

    Raises:
        Grows: it claims too much.
    """
    bits, held = 8 * byte_length, table.get_total_buffer_size()
    is_packed = held > byte_length
    if is_packed:
        bits = min(8 * held, _PACKED_BITS * byte_length + FREE_OBJECTS)
    if table.num_rows > bits + FREE_ROWS:
        raise Grows(f"it claims {table.num_rows} rows in {byte_length} bytes")
    if not is_packed and all(
        pa.types.is_primitive(kind) or _is_dense(kind) for kind in table.schema.types
    ):
        return
    if (values := _values(table)) > bits + FREE_VALUES:
        raise Grows(f"it claims {values} values in {byte_length} bytes")


def check_objects(table: pa.Table) -> None:
    """Reject a table that would take too much memory as Python objects.

    The table, or the table it is a slice of, must have passed `check_table`.

    Raises:
        Grows: it has too many rows or values for that.
    """
    rows, held = table.num_rows, table.get_total_buffer_size()
    if rows > min(MOST_OBJECTS, FREE_OBJECTS + held):
        raise Grows(f"its {rows} rows of {held} bytes are too many to be made into JSON")
    # A small table has few values: `check_table` ensures that.
    if 8 * held + FREE_VALUES > MOST_VALUES and _values(table) > MOST_VALUES:
        raise Grows(f"it has more than {MOST_VALUES} values, too many to be made into JSON")


def _values(table: pa.Table) -> int:
    return sum(_count(chunk) for column in table.columns for chunk in column.chunks)


@lru_cache(1024)
def _is_dense(kind: pa.DataType) -> bool:
    """Return whether every value of a type takes bytes, so that Arrow has checked the length."""
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(
            _is_dense(kind.field(n).type) for n in range(kind.num_fields)
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_dense(kind.value_type)
    return any(known(kind) for known in _DENSE)


def _count(array: pa.Array) -> int:
    """Count the values of an array and of everything inside it."""
    kind = array.type
    if any(known(kind) for known in _UNBOUNDED) or isinstance(kind, pa.BaseExtensionType):
        raise Grows(f"a column of {kind} is not read; write plain columns")
    if pa.types.is_dictionary(kind) or any(known(kind) for known in _VIEWS):
        _check_texts(array)
        return len(array)
    return len(array) + sum(_count(inner) for inner in _inside(array))


def _inside(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the child arrays of an array, limited to its slice."""
    kind = array.type
    if pa.types.is_struct(kind):
        yield from (array.field(n) for n in range(kind.num_fields))
    elif pa.types.is_fixed_size_list(kind):
        yield array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size)
    elif pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        begin, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        for inner in (array.keys, array.items) if pa.types.is_map(kind) else (array.values,):
            yield inner.slice(begin, end - begin)


def _check_texts(array: pa.Array) -> None:
    """Reject dictionary values whose repetition adds up to too much."""
    texts = array.dictionary if pa.types.is_dictionary(array.type) else array
    if texts.type.num_fields:
        raise Grows(f"a column of {array.type} is not read; write plain columns")
    longest = 8
    if len(texts) and not pa.types.is_primitive(texts.type):
        longest = int(pc.max(pc.binary_length(texts)).as_py() or 0)
    if len(array) * max(longest, 0) > MOST_UNPACKED_BYTES:
        raise Grows(f"its {len(array)} values have up to {longest} bytes each")


def _messages(source: pa.BufferReader, length: int) -> Iterator[pa.ipc.Message]:
    """Yield the messages of a stream.

    The optional end mark is not read: in shared memory, where it may be on a separate page,
    that would take as long as a message.
    """
    reader = pa.ipc.MessageReader.open_stream(source)
    while length - source.tell() > _END_MARK:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


def _is_plain(messages: list[pa.ipc.Message]) -> bool:
    """Return whether a stream is only a schema and batches, in native byte order."""
    if not messages or messages[0].type != "schema":
        return False
    if any(message.type != "record batch" for message in messages[1:]):
        return False
    data = memoryview(messages[0].metadata)
    schema = _table(data, unpack_from("<I", data, 0)[0], 2)
    order = None if schema is None else _field(data, schema, 0)
    return schema is not None and (order is None or data[order] == _ORDERS[byteorder])


def _unpacked(message: pa.ipc.Message) -> int:
    """Return the declared uncompressed size of a batch's buffers."""
    if (kind := message.type) not in ("record batch", "dictionary"):
        return 0
    data = memoryview(message.metadata)
    batch = _table(data, unpack_from("<I", data, 0)[0], 2)
    if batch is not None and kind == "dictionary":
        batch = _table(data, batch, 1)
    if batch is None or _table(data, batch, 3) is None or message.body is None:
        return 0
    buffers, whole, total = _table(data, batch, 2), memoryview(message.body), 0
    for n in range(0 if buffers is None else unpack_from("<I", data, buffers)[0]):
        at, length = unpack_from("<qq", data, (buffers or 0) + 4 + 16 * n)
        if length >= 8 and 0 <= at <= len(whole) - 8:
            total += max(0, unpack_from("<q", whole, at)[0])
    return total


def _field(data: memoryview, table: int, slot: int) -> int | None:
    """Return the offset of a flatbuffer table's field; Arrow has verified the buffer."""
    vtable = table - unpack_from("<i", data, table)[0]
    if 4 + 2 * slot >= unpack_from("<H", data, vtable)[0]:
        return None
    offset = unpack_from("<H", data, vtable + 4 + 2 * slot)[0]
    return table + offset if offset else None


def _table(data: memoryview, table: int, slot: int) -> int | None:
    at = _field(data, table, slot)
    found: int | None = None if at is None else at + unpack_from("<I", data, at)[0]
    return found
