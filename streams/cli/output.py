"""Helpers of commands: effective settings, JSON and progress output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.errors import Refused

if TYPE_CHECKING:
    from streams.settings import Settings
    from streams.settings.load import Loaded


def settings_of(file: Path | None, data: Path | None) -> Settings:
    """Return the settings of `--config` and `--data`."""
    from streams.local.settings import load_settings

    return load_settings(file, data).settings


def print_ineffective(loaded: Loaded) -> None:
    """Warn of settings that were given and have no effect."""
    from streams.settings.unused import ineffective

    for entry, why in ineffective(loaded):
        click.echo(f"warning: {entry.origin}: {'.'.join(entry.path)}: {why}", err=True)


def text_of(file: Path) -> str:
    """Return the text of a playbook's file.

    Raises:
        Refused: it cannot be read.
    """
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{file}: cannot be read: {error}; give a file of UTF-8 text") from error


def print_json(value: object) -> None:
    """Print one JSON object as a line."""
    click.echo(orjson.dumps(value).decode())


def say(line: str) -> None:
    """Print a line of progress to standard error."""
    click.echo(line, err=True)
