"""Loader of settings: merges the sources and validates the result.

Lowest first: defaults, a running embedded stack, the file, environment variables. Commands
for one stack let it override all of them for the addresses of its servers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath

from pydantic import BaseModel, SecretStr, ValidationError

from streams.settings import environment, file
from streams.settings.layers import LayerEntry, Layers, Path, entries_of, lies_in
from streams.settings.model import Settings
from streams.settings.problems import BadSettings, SettingsProblem, explain

USUAL_FILE = FilePath("streams.yaml")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in effect, and their origins."""

    settings: Settings
    file: FilePath | None
    _layers: Layers
    overruled: tuple[LayerEntry, ...] = ()
    """Entries without effect, because the stack overrides them."""

    def origin_of(self, key: str) -> str:
        """Return the origin of the setting with this dotted key, such as `streams.yaml:4`.

        Raises:
            KeyError: the setting does not exist.
        """
        path = tuple(key.split("."))
        if not any(path == known[: len(path)] for known, _ in leaves(self.settings)):
            raise KeyError(key)
        return self._layers.origin(path) or "default"

    def given(self) -> Iterator[LayerEntry]:
        """Yield the entries of the file and the environment, not those of the stack."""
        return (entry for entry in self._layers.entries() if entry.origin != "stack")

    def __iter__(self) -> Iterator[LayerEntry]:
        """Yield every setting in effect, with secrets in plain text."""
        for path, value in leaves(self.settings):
            yield LayerEntry(path, value, self._layers.origin(path) or "default")


def load(
    path: FilePath | None = None,
    *,
    env: Mapping[str, str],
    stack: Mapping[str, object] | None = None,
    settled: Collection[Path] = (),
) -> Loaded:
    """Load the settings from the file at `path` and the other sources.

    Without a `path`, the file is the one named by STREAMS_CONFIG, else ./streams.yaml if
    there is one. In the sections `settled` only the stack and the defaults apply.

    Raises:
        BadSettings: the settings are not valid; every problem is listed.
    """
    path = path or _file_to_read(env)
    layers = Layers()
    ours = entries_of(stack or {}, "stack")
    layers.lay(ours)
    problems: list[SettingsProblem] = []
    if path is not None:
        entries, problems = file.read(path, env)
        layers.lay(entries)
    entries, more = environment.overrides(env)
    layers.lay(entries)
    overruled = layers.settle(settled, ours)
    problems = [
        problem
        for problem in (*problems, *more, *map(_clash, layers.clashes))
        if not lies_in(tuple(problem.key.split(".")), settled)
    ]
    return Loaded(_validate(layers, problems), path, layers, tuple(overruled))


def _file_to_read(env: Mapping[str, str]) -> FilePath | None:
    if env.get("STREAMS_CONFIG"):
        return FilePath(env["STREAMS_CONFIG"])
    return USUAL_FILE if USUAL_FILE.exists() else None


def _clash(pair: tuple[LayerEntry, LayerEntry]) -> SettingsProblem:
    value, below = pair
    what = f"is a value here, but a section in {below.origin}"
    return SettingsProblem(value.origin, ".".join(value.path), what)


def _validate(layers: Layers, problems: list[SettingsProblem]) -> Settings:
    try:
        settings = Settings.model_validate(layers.tree())
    except ValidationError as error:
        found = explain(error, Settings, layers.origin)
        problems = [*problems, *(f for f in found if not _follows_from(problems, f))]
    if problems:
        raise BadSettings(problems)
    return settings


def _follows_from(problems: list[SettingsProblem], other: SettingsProblem) -> bool:
    """Return whether `other` only repeats that a value below it could not be read."""
    return any(problem.key.startswith(f"{other.key}.") for problem in problems)


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield every setting below `value` with its path, in the order of the model."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from leaves(getattr(value, name), (*path, name))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, (*path, name))
    else:
        yield path, value.get_secret_value() if isinstance(value, SecretStr) else value
