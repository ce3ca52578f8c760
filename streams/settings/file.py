"""Parser of the YAML file: values with their lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath

import yaml

from streams.settings.environment import BadReference, substitute
from streams.settings.layers import LayerEntry, Path
from streams.settings.problems import BadSettings, SettingsProblem


def read(path: FilePath, env: Mapping[str, str]) -> tuple[list[LayerEntry], list[SettingsProblem]]:
    """Read the file at `path`, with `${NAME}` replaced from `env`.

    Raises:
        BadSettings: the file cannot be read, or is not YAML at all.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadSettings(
            [SettingsProblem(str(path), "", f"cannot be read: {error.strerror}")]
        ) from None
    except UnicodeDecodeError:
        raise BadSettings(
            [SettingsProblem(str(path), "", "cannot be read: not UTF-8 text")]
        ) from None
    return _Reader(str(path), env).read(text)


# Errors that PyYAML raises for scalars that look like a number or a date but are not.
_YAML_ERRORS = (ValueError, LookupError, AttributeError, TypeError, OverflowError)


class _Unreadable(Exception):
    """A value does not match its apparent type or its tag."""


class _Reader:
    """Walks the nodes of one file, collecting entries and problems."""

    def __init__(self, name: str, env: Mapping[str, str]) -> None:
        self._name, self._env = name, env
        self._entries: list[LayerEntry] = []
        self._problems: list[SettingsProblem] = []
        self._open: list[yaml.Node] = []

    def read(self, text: str) -> tuple[list[LayerEntry], list[SettingsProblem]]:
        try:
            self._loader = yaml.SafeLoader(text)
            root = self._loader.get_single_node()
            if isinstance(root, yaml.MappingNode):
                self._section(root, ())
            elif root is not None and root.tag != "tag:yaml.org,2002:null":
                self._complain(root, (), "the file must hold sections such as 'runtime:'")
        except yaml.MarkedYAMLError as error:
            raise BadSettings([self._not_yaml(error)]) from None
        except yaml.YAMLError as error:
            raise BadSettings([SettingsProblem(self._name, "", f"is not YAML: {error}")]) from None
        return self._entries, self._problems

    def _section(self, node: yaml.MappingNode, path: Path) -> None:
        self._open.append(node)
        first_line: dict[str, int] = {}
        for key, value in self._pairs(node, path):
            line = key.start_mark.line + 1
            name = str(key.value)
            if name in first_line:
                what = f"is given twice; first on line {first_line[name]}"
                self._complain(key, (*path, name), what)
                continue
            first_line[name] = line
            self._value(value, (*path, name), line)
        self._open.pop()

    def _pairs(
        self, node: yaml.MappingNode, path: Path
    ) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._complain(key, path, "a key must be a plain word")
            elif key.tag == "tag:yaml.org,2002:merge":
                self._complain(key, path, "merging with '<<' is not supported; repeat the keys")
            else:
                yield key, value

    def _value(self, node: yaml.Node, path: Path, line: int) -> None:
        if node in self._open:
            self._complain(node, path, "refers to itself")
        elif isinstance(node, yaml.MappingNode) and node.value:
            self._section(node, path)
        else:
            try:
                value = self._plain(node)
            except (BadReference, _Unreadable) as error:
                self._complain(node, path, str(error))
            else:
                self._entries.append(LayerEntry(path, value, f"{self._name}:{line}"))

    def _plain(self, node: yaml.Node) -> object:
        """Build a scalar or a list; a substituted reference is always text."""
        if isinstance(node, yaml.SequenceNode):
            if node in self._open:
                raise BadReference("refers to itself")
            self._open.append(node)
            try:
                return [self._plain(item) for item in node.value]
            finally:
                self._open.pop()
        if isinstance(node, yaml.ScalarNode) and "${" in node.value:
            return substitute(node.value, self._env)
        try:
            value: object = self._loader.construct_object(node, deep=True)
        except _YAML_ERRORS:
            kind = node.tag.rpartition(":")[2]
            raise _Unreadable(
                f"is not a valid {kind}; put quotes around it if it is text"
            ) from None
        return value

    def _complain(self, node: yaml.Node, path: Path, what: str) -> None:
        place = f"{self._name}:{node.start_mark.line + 1}"
        self._problems.append(SettingsProblem(place, ".".join(path), what))

    def _not_yaml(self, error: yaml.MarkedYAMLError) -> SettingsProblem:
        mark = error.problem_mark or error.context_mark
        place = f"{self._name}:{mark.line + 1}" if mark else self._name
        return SettingsProblem(place, "", f"is not YAML: {error.problem or error.context}")
