"""The `streams` command: parses arguments, calls other packages, prints."""

from __future__ import annotations

import sys
from importlib import import_module
from keyword import iskeyword

import click

from streams.errors import StreamsError

# Command name -> its module, imported on use so that --help is fast.
COMMANDS = {
    "bench": "streams.cli.bench",
    "bundle": "streams.cli.bundle",
    "config": "streams.cli.config",
    "connectors": "streams.cli.connectors",
    "credential": "streams.cli.credential",
    "demo": "streams.cli.demo",
    "down": "streams.cli.stack",
    "events": "streams.cli.events",
    "execution": "streams.cli.execution",
    "facts": "streams.cli.facts",
    "lag": "streams.cli.lag",
    "metrics": "streams.cli.metrics",
    "migrate": "streams.cli.migrate",
    "mirror": "streams.cli.mirror",
    "parity": "streams.cli.parity",
    "payloads": "streams.cli.payloads",
    "playbook": "streams.cli.playbook",
    "projections": "streams.cli.projections",
    "prove": "streams.cli.prove",
    "rebuild": "streams.cli.rebuild",
    "replay": "streams.cli.replay",
    "retention": "streams.cli.retention",
    "run": "streams.cli.role",
    "schemas": "streams.cli.schemas",
    "simulate": "streams.cli.simulate",
    "status": "streams.cli.stack",
    "subscription": "streams.cli.subscription",
    "topics": "streams.cli.topics",
    "trigger": "streams.cli.trigger",
    "triggers": "streams.cli.triggers",
    "try": "streams.cli.try_playbook",
    "up": "streams.cli.stack",
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        variable = f"{name}_command" if iskeyword(name) else name
        command = getattr(import_module(COMMANDS[name]), variable)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="noetl-streams")
def cli() -> None:
    """Run playbooks as stages of frames on Kafka, with an event log in Postgres."""


def main() -> None:
    """Run the command line; an expected error is printed as a message, without a traceback."""
    try:
        cli()
    except StreamsError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
