"""The command line as a whole: every command explains itself and speaks JSON."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from streams.cli import cli


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command that does something."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = list(commands(cli))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_and_json(words: tuple[str, ...]) -> None:
    told = CliRunner().invoke(cli, [*words, "--help"]).output

    assert f"streams {' '.join(words)}" in told.partition("Example")[2]
    assert "--json" in told


def test_the_walk_reaches_commands_of_every_depth() -> None:
    assert {("demo",), ("bench", "pft"), ("playbook", "check")} <= set(COMMANDS)
