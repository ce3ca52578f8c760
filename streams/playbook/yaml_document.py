"""YAML parser that records the place of every node.

The specs' spelling is YAML 1.2, where only what looks like a number is one: `on`, `yes`,
`2026-01-01`, `12:30` and `007` are text. NoETL's spelling is YAML 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml

from streams.events.model import Json
from streams.playbook.problem import Problem, Severity

Path = tuple[str | int, ...]
"""Keys and list positions of a value in the document."""
Authored: TypeAlias = Mapping[str, Json]
"""An unparsed mapping as its author wrote it."""
MAX_NODES = 100_000
"""Most nodes of a playbook, with aliases expanded."""
MAX_DEPTH = 60

_TAG = "tag:yaml.org,2002:"
_SCALARS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+|0o[0-7]+", list("-+0123456789")),
    "float": (r"[-+]?(?:0|[1-9][0-9]*)?\.[0-9]+(?:[eE][-+]?[0-9]+)?", list("-+0123456789.")),
    "merge": (r"<<", ["<"]),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the text; both count from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Document:
    """A YAML document as plain values, with the place of each."""

    value: Json = None
    marks: dict[Path, Mark] = field(default_factory=dict)
    """Where a value begins."""
    keys: dict[Path, Mark] = field(default_factory=dict)
    """Where the key of a value begins."""
    problems: list[Problem] = field(default_factory=list)

    def report(
        self,
        path: Path,
        message: str,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
        *,
        at_key: bool = False,
        lines_below: int = 0,
    ) -> None:
        """Add a problem at a node, or at its nearest parent."""
        mark = (self.keys.get(path) if at_key else None) or self._nearest(path)
        where = Mark(mark.line + lines_below, mark.column if not lines_below else 1)
        problem = Problem(where.line, where.column, format_path(path), message, hint, severity)
        if problem not in self.problems:
            self.problems.append(problem)

    def line(self, path: Path) -> int:
        """Return the line of a key, else of its value; 0 if neither exists."""
        mark = self.keys.get(path) or self.marks.get(path)
        return mark.line if mark else 0

    def _nearest(self, path: Path) -> Mark:
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, Mark(1, 1))


def format_path(path: Path) -> str:
    """Return a readable path: workflow[2].tool.url"""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own way to begin anew


for _name, (_pattern, _first) in _SCALARS.items():
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})$"), _first)


def read(text: str, *, version: str = "1.2") -> Document:
    """Parse a YAML text; syntax errors become problems of the document."""
    document = Document()
    try:
        node = (_Loader if version == "1.2" else yaml.SafeLoader)(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = Mark(mark.line + 1, mark.column + 1) if mark else Mark(1, 1)
        document.marks[()] = at
        document.report((), f"this is not YAML: {error.problem or error.context}")
        return document
    except yaml.YAMLError as error:
        document.report((), f"this is not YAML: {error}")
        return document
    if node is not None:
        try:
            document.value = _Reader(document).value(node, ())
        except _TooMuch as error:
            document.report((), str(error))
    return document


def as_mapping(value: Json) -> dict[str, Json]:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


class _TooMuch(Exception):
    """A document is too large with its aliases expanded."""


class _Reader:
    def __init__(self, document: Document) -> None:
        self._document, self._count = document, 0

    def value(self, node: yaml.Node, path: Path) -> Json:
        self._count += 1
        if self._count > MAX_NODES or len(path) > MAX_DEPTH:
            raise _TooMuch(
                f"the playbook has more than {MAX_NODES} nodes, or more than {MAX_DEPTH} levels; "
                "look for an alias that contains itself"
            )
        mark = node.start_mark
        self._document.marks[path] = Mark(mark.line + 1, mark.column + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, place)) for place, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Json]:
        made: dict[str, Json] = {}
        merged: dict[str, Json] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                for base in self._merged(value_node, path):
                    merged = {**base, **merged}
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._document.report(path, "a key is a text, not a list or mapping")
                continue
            key, mark = key_node.value, key_node.start_mark
            self._document.keys[*path, key] = Mark(mark.line + 1, mark.column + 1)
            if key in made:
                message = f"{key!r} is there twice; keep one"
                self._document.report((*path, key), message, at_key=True)
            made[key] = self.value(value_node, (*path, key))
        return {**merged, **made}

    def _merged(self, node: yaml.Node, path: Path) -> Iterator[dict[str, Json]]:
        bases = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for base in bases:
            if isinstance(base, yaml.MappingNode):
                yield as_mapping(self.value(base, path))
            else:
                self._document.report(path, "`<<` merges mappings, and this is none")

    def _scalar(self, node: yaml.Node, path: Path) -> Json:
        text, kind = str(node.value), node.tag.removeprefix(_TAG)
        match kind:
            case "null":
                return None
            case "bool":
                return text.lower() in ("true", "yes", "on")
            case "int":
                return _whole(text)
            case "float":
                return float(text.replace("_", "")) if ":" not in text else text
            case "str" | "merge" | "timestamp" | "value":
                return text
        self._document.report(path, f"the tag {node.tag!r} is not used in playbooks")
        return text


def _whole(text: str) -> int:
    """Return a whole number: decimal, 0x…, 0o…, or as YAML 1.1 writes them."""
    plain = text.replace("_", "")
    if plain[:2] in ("0x", "0o", "0b"):
        return int(plain, 0)
    if ":" in plain:  # sexagesimal
        number = 0
        for part in plain.lstrip("+-").split(":"):
            number = number * 60 + int(part)
        return -number if plain.startswith("-") else number
    is_octal = len(plain) > 1 and plain.lstrip("+-").startswith("0")
    return int(plain, 8 if is_octal and set(plain) <= set("+-01234567") else 10)
