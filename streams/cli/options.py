"""Options shared by commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]
SECONDS = click.FloatRange(min=0, min_open=True)
COUNT = click.IntRange(min=1)

config_option = click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    help="The configuration file  [default: $STREAMS_CONFIG, else ./streams.yaml if present]",
)
data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="The embedded stack's folder  [default: .streams]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def options(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds these options, in order."""

    def add(command: Command) -> Command:
        for option in reversed(decorators):
            command = option(command)
        return command

    return add


settings_options = options(config_option, data_option, json_option)
