"""Environment variables: overrides of single settings, and `${NAME}` inside the file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from streams.errors import Refused
from streams.settings.layers import LayerEntry
from streams.settings.problems import SettingsProblem

PREFIX = "STREAMS__"

# Variables without our prefix that deployments already set.
KNOWN = {
    "NOETL_TENANT_ID": ("runtime", "tenant_id"),
    "NOETL_ORGANIZATION_ID": ("runtime", "organization_id"),
    "NOETL_CLUSTER_ID": ("runtime", "cluster_id"),
    "NOETL_SHARD_ID": ("runtime", "shard_id"),
    "NOETL_NODE_ID": ("runtime", "node_id"),
}

_REFERENCE = re.compile(
    r"\$\$(?=\{)"  # $${ is an escaped ${
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}"
    r"|\$\{(?P<wrong>[^}]*)\}?"
)


def overrides(env: Mapping[str, str]) -> tuple[list[LayerEntry], list[SettingsProblem]]:
    """Read the settings that `env` overrides; our own prefix wins over the known names."""
    found = [LayerEntry(path, env[name], name) for name, path in KNOWN.items() if name in env]
    problems: list[SettingsProblem] = []
    for name in sorted(env):
        if not name.startswith(PREFIX):
            continue
        path = tuple(name.removeprefix(PREFIX).lower().split("__"))
        if all(path):
            found.append(LayerEntry(path, env[name], name))
        else:
            what = f"is not a setting; write it like {PREFIX}EVENT_STORE__CONNECTION__URL"
            problems.append(SettingsProblem(name, "", what))
    return found, problems


class BadReference(Refused):
    """A `${...}` that cannot be replaced; the message says why."""


def substitute(text: str, env: Mapping[str, str]) -> str:
    """Replace `${NAME}` and `${NAME:-default}`; as in a shell, `:-` also covers empty.

    Raises:
        BadReference: a variable is not set and has no default, or the form is wrong.
    """

    def value_of(match: re.Match[str]) -> str:
        if match["wrong"] is not None:
            raise BadReference(f"'{match[0]}' is not of the form ${{NAME}} or ${{NAME:-default}}")
        name, default = match["name"], match["default"]
        if name is None:
            return "$"
        value = env.get(name)
        if default is not None:
            return value or default
        if value is None:
            raise BadReference(
                f"environment variable {name} is not set; set it or write ${{{name}:-default}}"
            )
        return value

    return _REFERENCE.sub(value_of, text)
