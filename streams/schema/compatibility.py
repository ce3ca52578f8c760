"""Compatibility check of Avro schemas, with reasons.

The log stores every record forever, and old programs read new records during an upgrade, so a
schema must stay readable both ways against every release (Confluent's FULL_TRANSITIVE). The
rules are those of Avro's schema resolution, with two stricter ones because records are stored
forever: names must agree in full, and a logical type may not change, since the same number would
then mean something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from streams.schema.avro_model import (
    Array,
    AvroEnum,
    AvroFixed,
    AvroRecord,
    Field,
    Map,
    Named,
    Node,
    Primitive,
    Schema,
    Union,
    branch_kind,
)
from streams.schema.avro_parse import parse

Direction = Literal["backward", "forward"]

# Promotions of a writer's primitive type.
_PROMOTIONS: Mapping[str, frozenset[str]] = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}


@dataclass(frozen=True, slots=True)
class Break:
    """One incompatibility.

    `backward`: the new schema cannot read what the old one wrote; `forward`: the old
    schema cannot read what the new one writes.
    """

    direction: Direction
    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why} ({self.direction})"


def breaks(new: str, old: str, *, old_name: str = "the released schema") -> tuple[Break, ...]:
    """Return every incompatibility between `new` and `old` (Avro JSON).

    Empty means fully compatible. `old_name` is what messages call the old schema.

    Raises:
        BadSchema: one of the two is not valid Avro.
    """
    new_schema, old_schema = parse(new), parse(old)
    backward = _Reading("backward", new_schema, old_schema, "the new schema", old_name)
    forward = _Reading("forward", old_schema, new_schema, old_name, "the new schema")
    found = [*backward.breaks(), *forward.breaks()]
    return tuple(dict.fromkeys(found))


class _Reading:
    """One direction: `reader` reads what `writer` wrote."""

    def __init__(
        self,
        direction: Direction,
        reader: Schema,
        writer: Schema,
        reader_name: str,
        writer_name: str,
    ) -> None:
        self.direction = direction
        self.reader, self.writer = reader, writer
        self.reader_name, self.writer_name = reader_name, writer_name
        self._pairs: set[tuple[str, str]] = set()

    def breaks(self) -> Iterator[Break]:
        root = self.reader.resolve(self.reader.root)
        path = branch_kind(root).rpartition(".")[2]
        yield from self._node(self.reader.root, self.writer.root, path)

    def _break(self, path: str, why: str) -> Break:
        return Break(self.direction, path, why)

    def _node(self, reader_node: Node, writer_node: Node, path: str) -> Iterator[Break]:
        reader = self.reader.resolve(reader_node)
        writer = self.writer.resolve(writer_node)
        if isinstance(writer, Union):
            for branch in writer.branches:
                yield from self._branch(reader, branch, path)
        elif isinstance(reader, Union):
            yield from self._branch(reader, writer, path)
        elif isinstance(reader, AvroRecord) and isinstance(writer, AvroRecord):
            yield from self._record(reader, writer, path)
        elif isinstance(reader, AvroEnum) and isinstance(writer, AvroEnum):
            yield from self._enum(reader, writer, path)
        elif isinstance(reader, AvroFixed) and isinstance(writer, AvroFixed):
            yield from self._fixed(reader, writer, path)
        elif isinstance(reader, Array) and isinstance(writer, Array):
            yield from self._node(reader.items, writer.items, f"{path}[]")
        elif isinstance(reader, Map) and isinstance(writer, Map):
            yield from self._node(reader.values, writer.values, f"{path}{{}}")
        elif isinstance(reader, Primitive) and isinstance(writer, Primitive):
            yield from self._primitive(reader, writer, path)
        else:
            yield self._type_changed(reader, writer, path)

    def _branch(self, reader: Node, branch: Node, path: str) -> Iterator[Break]:
        """Check that the reader can read a branch of the writer."""
        if not isinstance(reader, Union):
            found = list(self._trial(reader, branch, path))
            if found and not self._alike(reader, branch):
                why = f"{self.writer_name} may write {_called(self.writer.resolve(branch))}"
                yield self._break(path, f"{why}, but {self.reader_name} takes {_called(reader)}")
            else:
                yield from found
            return
        same = next((one for one in reader.branches if self._alike(one, branch)), None)
        if same is not None:
            yield from self._node(same, branch, path)
        elif all(any(self._trial(one, branch, path)) for one in reader.branches):
            why = f"the union of {self.reader_name} has no branch for"
            yield self._break(
                path,
                f"{why} {_called(self.writer.resolve(branch))}, which "
                f"{self.writer_name} may write; keep or add that branch",
            )

    def _trial(self, reader: Node, writer: Node, path: str) -> Iterable[Break]:
        """Compare a pair without recording its names: a failed guess must not hide a break."""
        before = set(self._pairs)
        found = list(self._node(reader, writer, path))
        if found:
            self._pairs = before
        return found

    def _alike(self, reader_node: Node, writer_node: Node) -> bool:
        reader, writer = self.reader.resolve(reader_node), self.writer.resolve(writer_node)
        if isinstance(reader, AvroRecord | AvroEnum | AvroFixed):
            return type(reader) is type(writer) and _same_name(reader, writer)
        return branch_kind(reader) == branch_kind(writer)

    def _record(self, reader: AvroRecord, writer: AvroRecord, path: str) -> Iterator[Break]:
        if not _same_name(reader, writer):
            yield self._renamed(reader, writer, path)
            return
        if (reader.name, writer.name) in self._pairs:
            return
        self._pairs.add((reader.name, writer.name))
        written = {one.name: one for one in writer.fields}
        for one in reader.fields:
            source = _find(one, written)
            if source is not None:
                yield from self._node(one.schema, source.schema, f"{path}.{one.name}")
            elif not one.has_default:
                yield self._break(f"{path}.{one.name}", self._missing())

    def _missing(self) -> str:
        if self.direction == "backward":
            return (
                f"{self.writer_name} does not write this field and it has no default; "
                "give the new field a default"
            )
        return (
            f"{self.reader_name} needs this field (it has no default there) and the new schema "
            "no longer writes it; keep the field"
        )

    def _enum(self, reader: AvroEnum, writer: AvroEnum, path: str) -> Iterator[Break]:
        if not _same_name(reader, writer):
            yield self._renamed(reader, writer, path)
            return
        unknown = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
        if unknown and reader.default is None:
            yield self._break(path, self._unknown_symbols(reader, unknown))

    def _unknown_symbols(self, reader: AvroEnum, symbols: list[str]) -> str:
        names = ("symbol " if len(symbols) == 1 else "symbols ") + ", ".join(symbols)
        why = (
            f"{self.reader_name} could not read what it does not know, as it has no default symbol"
        )
        if self.direction == "backward":
            return f"{names} removed from enum {reader.name}: {why}; keep what was released"
        return f"{names} added to enum {reader.name}: {why}; add a new field instead"

    def _fixed(self, reader: AvroFixed, writer: AvroFixed, path: str) -> Iterator[Break]:
        if not _same_name(reader, writer):
            yield self._renamed(reader, writer, path)
        elif reader.size != writer.size:
            yield self._break(
                path,
                f"fixed {reader.name} has {writer.size} bytes in {self.writer_name} "
                f"and {reader.size} in {self.reader_name}; add a new field instead",
            )
        elif reader.logical != writer.logical:
            yield self._meaning_changed(reader, writer, path)

    def _primitive(self, reader: Primitive, writer: Primitive, path: str) -> Iterator[Break]:
        if reader.type != writer.type and reader.type not in _PROMOTIONS.get(
            writer.type, frozenset()
        ):
            yield self._type_changed(reader, writer, path)
        elif reader.logical != writer.logical:
            yield self._meaning_changed(reader, writer, path)

    def _type_changed(self, reader: Node, writer: Node, path: str) -> Break:
        return self._break(
            path,
            f"{self.writer_name} writes {_called(writer)} and {self.reader_name} "
            f"cannot read that as {_called(reader)}; add a new field instead",
        )

    def _meaning_changed(
        self, reader: Primitive | AvroFixed, writer: Primitive | AvroFixed, path: str
    ) -> Break:
        return self._break(
            path,
            f"the logical type is {writer.logical or 'none'} in {self.writer_name} and "
            f"{reader.logical or 'none'} in {self.reader_name}, so the same bytes would mean "
            "something else; add a new field instead",
        )

    def _renamed(self, reader: Named, writer: Named, path: str) -> Break:
        kind = type(reader).__name__.removeprefix("Avro").lower()
        return self._break(
            path,
            f"{kind} {writer.name} of {self.writer_name} is called {reader.name} in "
            f"{self.reader_name}; keep the name",
        )


def _same_name(reader: Named, writer: Node) -> bool:
    name = branch_kind(writer)
    return name == reader.name or name in reader.aliases


def _find(reader: Field, written: Mapping[str, Field]) -> Field | None:
    if reader.name in written:
        return written[reader.name]
    return next((written[alias] for alias in sorted(reader.aliases) if alias in written), None)


def _called(node: Node) -> str:
    if isinstance(node, Union):
        return "a union of " + ", ".join(branch_kind(one) for one in node.branches)
    if isinstance(node, Primitive) and node.logical:
        return f"{node.type} ({node.logical})"
    return branch_kind(node)
