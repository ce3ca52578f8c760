"""`streams connectors`: apply `connectors/*.json` to Kafka Connect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.connect_call import with_connect
from streams.cli.connector_sinks import lag, pause, rebuild, resume, verify
from streams.cli.options import SECONDS, options, settings_options
from streams.cli.output import print_json, settings_of
from streams.errors import Refused

if TYPE_CHECKING:
    from streams.mirror.connect import ConnectClient
    from streams.mirror.connector_status import ConnectorStatus
    from streams.mirror.connectors import Connector
    from streams.settings import Settings

PROFILES = ("mirror", "analytics", "lake")
_for_connect = options(click.argument("name", required=False), settings_options)
_TIMEOUT = click.option(
    "--timeout",
    "timeout_s",
    type=SECONDS,
    default=60.0,
    show_default=True,
    help="Seconds to wait for a connector to run.",
)


@click.group()
def connectors() -> None:
    """Apply, show, restart and rebuild the connectors.

    \b
    Example:
      streams connectors apply
    """


for _command in (lag, pause, rebuild, resume, verify):
    connectors.add_command(_command)


@connectors.command()
@_for_connect
@_TIMEOUT
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    help="mirror, or the sinks: analytics (Postgres), lake (Iceberg)  [default: mirror]",
)
@click.option("--dry-run", is_flag=True, help="Show the configurations; send nothing.")
def apply(
    name: str | None,
    file: Path | None,
    data: Path | None,
    timeout_s: float,
    as_json: bool,
    profile: str | None,
    dry_run: bool,
) -> None:
    """Send each connector of a profile (or NAME) to Connect and wait until it runs.

    Idempotent: an unchanged connector is not touched, and one that was paused or stopped
    stays so. Secrets are shown and sent as references only. Before a sink is sent, its topics
    are created and the schemas of our records published to the registry.

    \b
    Examples:
      streams connectors apply
      streams connectors apply noetl-mirror --dry-run
      streams connectors apply --profile analytics
    """
    settings = settings_of(file, data)
    rendered = _rendered(settings, name, profile)
    if dry_run:
        configs = {one.name: dict(one.config) for one in rendered}
        click.echo(json.dumps({"connectors": configs}, indent=None if as_json else 2))
        return

    done = _send(settings, rendered, timeout_s)
    if as_json:
        print_json({"connectors": done})
    else:
        for connector, what in done.items():
            click.echo(f"{connector}: {what['outcome']}, {what['state'].lower()}")


@connectors.command()
@_for_connect
def status(name: str | None, file: Path | None, data: Path | None, as_json: bool) -> None:
    """Show the state of each connector (or NAME); exit 4 if one is not running.

    \b
    Examples:
      streams connectors status
      streams connectors status noetl-mirror --json
    """
    from streams.mirror.connect_errors import ConnectorFailed

    async def work(connect: ConnectClient) -> list[ConnectorStatus]:
        return [await connect.status(one) for one in ([name] if name else await connect.names())]

    found = with_connect(settings_of(file, data), work)
    if as_json:
        print_json({"connectors": [_as_json(one) for one in found]})
    else:
        for one in found:
            click.echo(str(one))
        if not found:
            click.echo("no connectors; `streams connectors apply` sends them")
    if not_running := [one.name for one in found if not one.running]:
        names = ", ".join(not_running)
        raise ConnectorFailed(f"not running: {names}; try `streams connectors restart`")


@connectors.command()
@_for_connect
@_TIMEOUT
@click.option("--only-failed", is_flag=True, help="Restart failed ones only.")
@click.option("--dry-run", is_flag=True, help="List what would be restarted.")
def restart(
    name: str | None,
    file: Path | None,
    data: Path | None,
    timeout_s: float,
    as_json: bool,
    only_failed: bool,
    dry_run: bool,
) -> None:
    """Restart each connector (or NAME) with its tasks and wait until it runs.

    \b
    Examples:
      streams connectors restart
      streams connectors restart noetl-mirror --only-failed
    """

    async def work(connect: ConnectClient) -> list[str]:
        names = [name] if name else list(await connect.names())
        restarted = []
        for one in names:
            before = await connect.status(one)
            if only_failed and before.failure is None:
                continue
            restarted.append(one)
            if not dry_run:
                await connect.restart(one)
                await connect.wait_until_running(one, timeout_s=timeout_s)
        return restarted

    restarted = with_connect(settings_of(file, data), work)
    if as_json:
        print_json({"restarted": restarted, "dry_run": dry_run})
    else:
        for one in restarted:
            click.echo(f"{one}: {'would be restarted' if dry_run else 'restarted, running'}")
        if not restarted:
            click.echo("nothing to restart")


def _send(
    settings: Settings, rendered: list[Connector], timeout_s: float
) -> dict[str, dict[str, str]]:
    from streams.analytics.setup import SINK_PROFILES, prepare_sinks

    async def work(connect: ConnectClient) -> dict[str, dict[str, str]]:
        done: dict[str, dict[str, str]] = {}
        if any(one.profile in SINK_PROFILES for one in rendered):
            await prepare_sinks(settings)
        for one in rendered:
            outcome = await connect.apply(one.name, one.config)
            status = await connect.wait_until_settled(one.name, timeout_s=timeout_s)
            done[one.name] = {"outcome": outcome, "state": status.state}
        return done

    return with_connect(settings, work)


def _rendered(settings: Settings, name: str | None, profile: str | None) -> list[Connector]:
    from streams.mirror.connectors import MIRROR_PROFILE, load, placeholders, render
    from streams.resources import folder

    source = folder("connectors")
    templates = load(source)
    known = ", ".join(one.name for one in templates)
    if name is None:
        chosen = [one for one in templates if one.profile == (profile or MIRROR_PROFILE)]
    else:
        chosen = [one for one in templates if one.name == name and profile in (None, one.profile)]
    if not chosen:
        raise Refused(f"{source} has no template for connector {name}; available: {known}")
    values = placeholders(settings)
    return [render(one, values) for one in chosen]


def _as_json(status: ConnectorStatus) -> dict[str, object]:
    return {
        "name": status.name,
        "state": status.state,
        "running": status.running,
        "failure": status.failure,
        "tasks": [{"id": task.task_id, "state": task.state} for task in status.tasks],
    }
