"""Parser of `topics/*.yaml`; errors name file, line and key."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from streams.errors import Refused
from streams.topology.model import Topic, Topology

_TOPIC = TypeAdapter(Topic)


class BadDeclaration(Refused):
    """A topic file is not valid."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")
        self.path, self.line = path, line


def load(folder: Path) -> Topology:
    """Read every declaration in `folder`.

    Raises:
        BadDeclaration: a file is not YAML, a value is wrong, or a topic is declared twice.
        Refused: the folder declares nothing.
    """
    seen: dict[str, str] = {}
    topics: list[Topic] = []
    for path in sorted(folder.glob("*.yaml")):
        for node in _entries(path):
            topic = _topic(path, node)
            line = node.start_mark.line + 1
            if topic.name in seen:
                raise BadDeclaration(
                    path,
                    line,
                    f"name: {topic.name} is already declared at {seen[topic.name]}; "
                    "a topic has one declaration and one writer, remove one of them",
                )
            seen[topic.name] = f"{path}:{line}"
            topics.append(topic)
    if not topics:
        raise Refused(f"{folder}: no topic is declared here; pass the folder of the topic files")
    return Topology(tuple(sorted(topics, key=lambda topic: topic.name)))


def _entries(path: Path) -> list[yaml.MappingNode]:
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BadDeclaration(path, line, f"not YAML: {error.problem}") from error
    if root is None:
        return []
    if not isinstance(root, yaml.SequenceNode):
        raise BadDeclaration(path, root.start_mark.line + 1, "must be a list of topics")
    for node in root.value:
        if not isinstance(node, yaml.MappingNode):
            raise BadDeclaration(
                path, node.start_mark.line + 1, "each topic must be a mapping, such as name: …"
            )
    return list(root.value)


def _topic(path: Path, node: yaml.MappingNode) -> Topic:
    lines = _lines(path, node)
    loader = yaml.SafeLoader("")
    try:
        return _TOPIC.validate_python(loader.construct_document(node))
    except ValidationError as error:
        first = error.errors()[0]
        key, line = _place(first["loc"], lines, node)
        raise BadDeclaration(path, line, f"{key}: {_plainly(key, first['msg'])}") from error
    finally:
        loader.dispose()


def _lines(path: Path, node: yaml.MappingNode) -> dict[str, int]:
    """Map each key to its line; YAML itself silently takes the last duplicate."""
    lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if key.value in lines:
            raise BadDeclaration(path, line, f"{key.value}: given twice, remove one")
        lines[key.value] = line
    return lines


def _place(
    loc: tuple[int | str, ...], lines: dict[str, int], node: yaml.MappingNode
) -> tuple[str, int]:
    key = ".".join(str(part) for part in loc) or "topic"
    return key, lines.get(str(loc[0]) if loc else "", node.start_mark.line + 1)


def _plainly(key: str, message: str) -> str:
    if key == "writer":
        return "a topic has exactly one writer; name it in small letters, digits and hyphens"
    return {
        "Unexpected keyword argument": "unknown key",
        "Field required": "missing, and has no default",
    }.get(message, message.removeprefix("Value error, "))
