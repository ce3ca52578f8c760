"""The command line as a whole: every command explains itself and speaks JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from streams.cli import cli
from streams.roles.start import UnknownRole, find_role


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
    output = CliRunner().invoke(cli, [*words, "--help"]).output

    assert f"streams {' '.join(words)}" in output.partition("Example")[2]
    assert "--json" in output


@pytest.mark.parametrize(("alias", "role"), [("broker", "shm-broker")])
def test_an_alias_of_a_role_runs_it_and_is_in_no_help(alias: str, role: str) -> None:
    assert find_role(alias) is find_role(role)
    for words in (("run",), ("up",)):
        listed = CliRunner().invoke(cli, [*words, "--help"]).output
        assert not re.search(rf"(?<![-\w]){alias}\b", listed)
    with pytest.raises(UnknownRole) as refused:
        find_role("nobody")
    assert not re.search(rf"(?<![-\w]){alias}\b", str(refused.value))


def test_the_walk_reaches_commands_of_every_depth() -> None:
    assert {("demo",), ("bench", "pft"), ("playbook", "check")} <= set(COMMANDS)
