"""`streams subscription`: register subscriptions, show their lag, and steer them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import json_option, settings_options
from streams.cli.output import print_json
from streams.cli.subscription_access import subscription_access
from streams.cli.subscription_steering import pause, replay, resume
from streams.errors import Refused

if TYPE_CHECKING:
    from streams.playbook.problem import Problem
    from streams.trigger.subscriptions.standing import PartitionLag

_files = click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)


class SubscriptionsHaveErrors(Refused):
    """At least one file has an error."""


@click.group()
def subscription() -> None:
    """Register subscriptions, which start playbooks for the messages of a topic.

    \b
    Example:
      streams subscription register examples/subscriptions/orders.yaml
    """


@subscription.command()
@_files
@json_option
def check(files: tuple[Path, ...], as_json: bool) -> None:
    """Report every problem with its line and column; exit 3 if one of them is an error.

    \b
    Example:
      streams subscription check examples/subscriptions/orders.yaml
    """
    from streams.subscription.parse import check_subscription

    found = {file: check_subscription(_text(file)) for file in files}
    bad = [str(file) for file, (made, _) in found.items() if made is None]
    if as_json:
        shown = [
            {"file": str(file), "ok": made is not None, "problems": [*map(_problem_json, problems)]}
            for file, (made, problems) in found.items()
        ]
        print_json({"files": shown, "errors": len(bad)})
    else:
        for file, (_, problems) in found.items():
            for problem in problems:
                click.echo(f"{file}:{problem}")
        click.echo(f"{len(files) - len(bad)} of {len(files)} subscriptions can be registered")
    if bad:
        raise SubscriptionsHaveErrors(f"{', '.join(bad)}: fix the errors and check again")


@subscription.command()
@_files
@click.option("--dry-run", is_flag=True, help="Check only; register nothing.")
@settings_options
def register(
    files: tuple[Path, ...], dry_run: bool, file: Path | None, data: Path | None, as_json: bool
) -> None:
    """Register subscriptions; trigger processes begin to read within seconds.

    Unchanged content creates no new version. Warnings are printed to standard error.

    \b
    Examples:
      streams subscription register examples/subscriptions/orders.yaml
      streams subscription register orders.yaml --dry-run --json
    """
    from streams.subscription.parse import check_subscription, parse_subscription

    texts = {one: _text(one) for one in files}
    for one, text in texts.items():
        parse_subscription(text, str(one))
        for problem in check_subscription(text)[1]:
            click.echo(f"{one}:{problem}", err=True)

    async def run() -> list[dict[str, object]]:
        async with subscription_access(file, data) as access:
            return [
                {"file": str(one), **await access.register(text)} for one, text in texts.items()
            ]

    rows = [{"file": str(one)} for one in files] if dry_run else asyncio.run(run())
    if as_json:
        print_json({"dry_run": dry_run, "registered": rows})
        return
    for row in rows:
        if dry_run:
            click.echo(f"{row['file']} can be registered")
        else:
            state = "" if row["is_new"] else " (already registered)"
            click.echo(f"{row['path']} version {row['version']}{state}")


@subscription.command("list")
@settings_options
def list_command(file: Path | None, data: Path | None, as_json: bool) -> None:
    """List every subscription with its source, playbook and state.

    \b
    Examples:
      streams subscription list
      streams subscription list --json
    """

    async def run() -> list[dict[str, object]]:
        async with subscription_access(file, data) as access:
            return await access.rows()

    rows = asyncio.run(run())
    if as_json:
        print_json({"subscriptions": rows})
        return
    for row in rows:
        line = f"{row['path']:<32} version {row['version']:<4} {row['state']:<8} {row['reads']}"
        click.echo(f"{line} -> {row['playbook']}")
    if not rows:
        click.echo("there are none; register one with `streams subscription register FILE`")


@subscription.command()
@click.argument("path")
@settings_options
def show(path: str, file: Path | None, data: Path | None, as_json: bool) -> None:
    """Print a subscription, its lag in each partition, and its replays.

    \b
    Examples:
      streams subscription show shop/orders
      streams subscription show shop/orders --json
    """

    async def run() -> tuple[dict[str, object], list[PartitionLag], str]:
        async with subscription_access(file, data) as access:
            return await access.show(path)

    row, lags, content = asyncio.run(run())
    if as_json:
        partitions = [_lag_json(one) for one in lags]
        print_json({**row, "partitions": partitions, "content": content})
        return
    click.echo(f"{row['path']} version {row['version']}, {row['state']}")
    click.echo(f"reads {row['reads']}, starts {row['playbook']}")
    for one in lags:
        position = "none" if one.committed is None else one.committed
        click.echo(f"partition {one.partition}: end {one.end}, position {position}, lag {one.lag}")
    for one_replay in row["replays"] if isinstance(row["replays"], list) else []:
        where = "replay {number}: partition {partition}, offsets {from_offset} to {until_offset}"
        click.echo(where.format(**one_replay) + " (excluded)")
    click.echo(content, nl=not content.endswith("\n"))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{file}: cannot be read: {error}; save it as UTF-8 text") from error


def _problem_json(problem: Problem) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(problem)


def _lag_json(one: PartitionLag) -> dict[str, object]:
    return {
        "partition": one.partition,
        "begin": one.begin,
        "end": one.end,
        "committed": one.committed,
        "next_offset": one.next_offset,
        "lag": one.lag,
    }


for _command in (pause, resume, replay):
    subscription.add_command(_command)
