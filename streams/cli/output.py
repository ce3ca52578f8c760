"""Helpers of commands: effective settings, JSON and progress output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

if TYPE_CHECKING:
    from streams.settings import Settings


def settings_of(file: Path | None, data: Path | None) -> Settings:
    """Return the settings of `--config` and `--data`."""
    from streams.local.settings import load_settings

    return load_settings(file, data).settings


def print_json(value: object) -> None:
    """Print one JSON object as a line."""
    click.echo(orjson.dumps(value).decode())


def say(line: str) -> None:
    """Print a line of progress to standard error."""
    click.echo(line, err=True)
