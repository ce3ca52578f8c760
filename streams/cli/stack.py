"""`streams up`, `status` and `down`: the embedded stack."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import click

from streams.cli.output import print_json
from streams.data_folder import layout_of
from streams.local.assembly import PROFILES
from streams.local.display import choose_display
from streams.local.errors import StackAlreadyUp, StackNotUp
from streams.local.roles import pool_workers
from streams.local.service_rows import ServiceRows
from streams.local.settings import ADDRESSES
from streams.local.shutdown import shut_down
from streams.local.stack import Stack
from streams.local.state import StackState, read_supervised
from streams.local.status import describe
from streams.local.supervise import detach, run_until_signal
from streams.local.tier_stats import tier_lines
from streams.segments import is_pool_name
from streams.settings import load

_data = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Folder of the stack's data [default: .streams].",
)
_ALL = "all"
_DEFAULT = "default"
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def _parse_ports(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    """Parse NAME=NUMBER pairs."""
    ports = {}
    for pair in given:
        name, _sign, number = pair.partition("=")
        if re.fullmatch("[0-9]{1,5}", number) is None or int(number) > 65535:
            raise click.BadParameter(f"{pair!r} is not NAME=NUMBER, such as postgres=5432")
        ports[name] = int(number)
    return ports


def _parse_roles(_: click.Context, __: click.Parameter, given: str) -> tuple[str, ...]:
    """Parse comma-separated names, `all` or `none`."""
    from streams.roles.start import ALL_ROLES, current_name, existing_roles, node_roles

    if given == "none":
        return ()
    if given == _ALL:
        # Roles get the settings of this process, which determine the roles of the node.
        return (*node_roles(load(env=os.environ, settled=ADDRESSES).settings), *existing_roles())
    known = existing_roles(ALL_ROLES)
    names = tuple(current_name(name.strip()) for name in given.split(","))
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name!r} is not a role; use one of {', '.join(known)}")
    return names


def _parse_workers(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    """Parse N and POOL=N; the pool `default` has one worker, if it is not named."""
    workers = {_DEFAULT: 1}
    for text in given:
        pool, sign, number = text.rpartition("=")
        if not sign:
            pool = _DEFAULT
        if re.fullmatch("[1-9][0-9]{0,3}", number) is None or not is_pool_name(pool):
            raise click.BadParameter(f"{text!r} is not N or POOL=N, such as 4 or gpu=1")
        workers[pool] = int(number)
    return workers


@click.command()
@_data
@click.option(
    "--detach", "is_detached", is_flag=True, help="Run in the background; return when ready."
)
@click.option("--profile", type=click.Choice(PROFILES), default="core", show_default=True)
@click.option(
    "--port",
    "ports",
    multiple=True,
    metavar="NAME=NUMBER",
    callback=_parse_ports,
    help="Pin a port (postgres, kafka, kafka-controller, connect, s3, registry).",
)
@click.option(
    "--roles",
    default=_ALL,
    show_default=True,
    callback=_parse_roles,
    metavar="NAMES",
    help="Comma-separated roles to run; or all, or none.",
)
@click.option(
    "--workers",
    multiple=True,
    metavar="[POOL=]N",
    callback=_parse_workers,
    help="Processes of `worker`; of another pool: POOL=N, may be repeated  [default: 1]",
)
@_json
def up(
    data: Path | None,
    is_detached: bool,
    profile: str,
    ports: dict[str, int],
    roles: tuple[str, ...],
    workers: dict[str, int],
    as_json: bool,
) -> None:
    """Start and supervise Postgres, Kafka, Connect, S3 and the roles.

    Without --detach the command supervises until Ctrl-C. The profile `full` adds the Apicurio
    schema registry, the analytics sinks (JDBC and Iceberg) and the role `facts`.

    \b
    Example:
      streams up --detach
      streams up --workers 4 --workers gpu=1
      streams up --roles none
      streams up --profile full --data /tmp/other-stack --port postgres=5432
    """
    folder = layout_of(data).data
    if read_supervised(folder) is not None:
        raise StackAlreadyUp(folder)
    display = choose_display(as_json=as_json)
    counts = role_counts(profile, roles, workers)
    wanted: dict[str, Any] = {"profile": profile, "ports": ports, "roles": counts}
    if is_detached:
        with display:
            detach(folder, **wanted, say=display.say, report=ServiceRows(display).report)
        _print_up(folder, as_json)
        return
    stack = Stack(folder, **wanted, say=display.say, report=ServiceRows(display).report)
    with display:
        asyncio.run(run_until_signal(stack, lambda _: _print_up(folder, as_json)))


def role_counts(profile: str, roles: tuple[str, ...], workers: dict[str, int]) -> dict[str, int]:
    """Return how many processes of each role to run; with all of them, `full` has its own, too."""
    from streams.app import ANALYTICS_ROLES
    from streams.roles.start import existing_roles

    counts = {role: 1 for role in roles if role != "worker"}
    if profile == "full" and set(existing_roles()) <= set(roles):
        counts |= dict.fromkeys(ANALYTICS_ROLES, 1)
    if "worker" in roles:
        counts |= {pool_workers(pool): count for pool, count in workers.items()}
    return counts


@click.command()
@_data
@_json
def status(data: Path | None, as_json: bool) -> None:
    """Show every service's address, process, memory, version and state.

    Below, counters of each role's payload tiers since its start: reads by tier, memory and
    disk in use, regions refused and swept, and reasons for skipping a tier.

    Exits with 4 when no stack is up.

    \b
    Example:
      streams status --json
    """
    folder = layout_of(data).data
    state = read_supervised(folder)
    if state is None:
        if as_json:
            print_json({"up": False, "data": str(folder)})
            raise click.exceptions.Exit(StackNotUp.exit_code)
        raise StackNotUp(folder)
    _print_state(state, as_json)


@click.command()
@_data
@_json
def down(data: Path | None, as_json: bool) -> None:
    """Stop the stack; its data is preserved.

    \b
    Example:
      streams down
    """
    folder = layout_of(data).data
    was_up = shut_down(folder)
    if as_json:
        print_json({"stopped": was_up, "data": str(folder)})
    else:
        click.echo(f"the stack in {folder} {'is stopped' if was_up else 'was not up'}")


def _print_up(folder: Path, as_json: bool) -> None:
    state = read_supervised(folder)
    if state is not None:
        _print_state(state, as_json)


def _print_state(state: StackState, as_json: bool) -> None:
    described = describe(state)
    if as_json:
        print_json(described)
        return
    click.echo(
        f"stack {described['phase']} in {described['data']} (profile {described['profile']})"
    )
    click.echo(_row(("part", "state", "address", "pid", "MiB", "version", "restarts")))
    for service in described["parts"]:
        click.echo(_row(_cells(service)))
    for line in tier_lines(described["tiers"]):
        click.echo(line)


def _cells(service: dict[str, Any]) -> tuple[object, ...]:
    memory = service["memory_bytes"] // 2**20
    names = (service["name"], service["state"], service["address"], service["pid"], memory)
    return (*names, service["version"], service["restarts"])


def _row(cells: tuple[object, ...]) -> str:
    widths = (13, 12, 26, 8, 6, 30, 8)
    return "".join(f"{cell!s:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
