"""`streams config`: show the effective settings and their origins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import settings_options
from streams.cli.output import print_ineffective

if TYPE_CHECKING:
    from streams.settings.load import Loaded


@click.group()
def config() -> None:
    """Show the effective settings.

    \b
    Example:
      streams config show
    """


@config.command()
@settings_options
def show(file: Path | None, data: Path | None, as_json: bool) -> None:
    """Print every setting with its value and origin; secrets are masked.

    The origin is `default`, `stack` (a running embedded stack), the file and line, or the
    name of the environment variable. Settings for later versions are marked `not used yet`.

    \b
    Examples:
      streams config show --config streams.yaml
      STREAMS__EVENT_STORE__CONNECTION__URL=kafka:9092 streams config show --json
    """
    from streams.local.settings import load_settings
    from streams.settings.mask import masked
    from streams.settings.unused import ineffective, why_unused

    loaded = load_settings(file, data)
    if as_json:
        output = {
            ".".join(entry.path): {
                "value": masked(entry.path, entry.value),
                "origin": entry.origin,
                "used": why_unused(entry.path, loaded.settings) is None,
            }
            for entry in loaded
        }
        source = str(loaded.file) if loaded.file else None
        ignored = {".".join(entry.path): why for entry, why in ineffective(loaded)}
        page = {"file": source, "settings": output, "ineffective": ignored}
        click.echo(json.dumps(page, indent=2))
    else:
        click.echo("\n".join(_table(loaded)))
    print_ineffective(loaded)


def _table(loaded: Loaded) -> list[str]:
    """Format the settings in columns: key, value, origin."""
    from streams.settings.mask import masked
    from streams.settings.unused import why_unused

    rows = []
    for entry in loaded:
        value = json.dumps(masked(entry.path, entry.value), ensure_ascii=False)
        why = why_unused(entry.path, loaded.settings)
        origin = entry.origin if why is None else f"{entry.origin}  ({why})"
        rows.append((".".join(entry.path), value, origin))
    key_width = max(len(row[0]) for row in rows)
    value_width = min(44, max(len(row[1]) for row in rows))
    return [f"{key:{key_width}}  {value:{value_width}}  {origin}" for key, value, origin in rows]
