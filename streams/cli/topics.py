"""`streams topics`: apply the topics declared in `topics/*.yaml` to the broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import SECONDS, config_option, data_option, json_option, options
from streams.cli.output import print_json, settings_of

if TYPE_CHECKING:
    from streams.topology import Profile, Topology
    from streams.topology.broker import TopicAdmin
    from streams.topology.changes import TopologyChange, TopologyPlan

_for_a_broker = options(
    config_option,
    data_option,
    click.option(
        "--profile",
        type=click.Choice(["cluster", "local"]),
        help="Which declared values to use  [default: local on a single broker, else cluster]",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=SECONDS,
        default=30.0,
        show_default=True,
        help="Seconds to wait for Kafka.",
    ),
    json_option,
)


@click.group()
def topics() -> None:
    """Compare, apply and draw the declared topics.

    \b
    Example:
      streams topics apply
    """


@topics.command("plan")
@_for_a_broker
def plan_command(
    file: Path | None, data: Path | None, profile: Profile | None, timeout_s: float, as_json: bool
) -> None:
    """Print what `apply` would change; exit 3 if it would be refused.

    \b
    Examples:
      streams topics plan
      streams topics plan --json
    """
    broker, topology = _open(file, data, profile, timeout_s)
    _report_plan(broker.plan(topology), as_json)


@topics.command()
@_for_a_broker
@click.option("--dry-run", is_flag=True, help="Change nothing; the same as `plan`.")
def apply(
    file: Path | None,
    data: Path | None,
    profile: Profile | None,
    timeout_s: float,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Create and change topics to match the declaration.

    Idempotent, and safe to run concurrently. An undeclared topic is never deleted, and a change
    that would move keys to other partitions is refused.

    \b
    Examples:
      streams topics apply
      streams topics apply --dry-run --json
    """
    broker, topology = _open(file, data, profile, timeout_s)
    if dry_run:
        _report_plan(broker.plan(topology), as_json)
        return
    steps = broker.apply(topology)
    extra = broker.plan(topology).extra
    if as_json:
        print_json({"taken": [_as_json(step) for step in steps], "extra": extra})
        return
    for step in steps:
        click.echo(str(step))
    _print_extra(extra)
    click.echo(f"{len(topology.topics)} topics are as declared ({len(steps)} changes)")


@topics.command("draw")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The page to write  [default: docs/topology.md]"
)
@click.option("--dry-run", is_flag=True, help="Print the page instead of writing it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def draw_command(out: Path | None, dry_run: bool, as_json: bool) -> None:
    """Write the page with the writers and readers of each topic.

    \b
    Example:
      streams topics draw
    """
    from streams.resources import folder
    from streams.topology import draw, load

    source = folder("topics")
    page, target = draw(load(source)), out or source.parent / "docs" / "topology.md"
    if not dry_run:
        _write(target, page)
    if as_json:
        output = {"path": str(target), "written": not dry_run}
        print_json({**output, "page": page} if dry_run else output)
    else:
        click.echo(page if dry_run else f"wrote {target}")


def _open(
    file: Path | None, data: Path | None, profile: Profile | None, timeout_s: float
) -> tuple[TopicAdmin, Topology]:
    from streams.resources import folder
    from streams.topology import load
    from streams.topology.broker import TopicAdmin

    topology = load(folder("topics"))
    settings = settings_of(file, data)
    broker = TopicAdmin(settings.event_store.connection.url, timeout_s=timeout_s)
    return broker, topology.at(profile or broker.profile())


def _report_plan(plan: TopologyPlan, as_json: bool) -> None:
    from streams.topology.broker import TopicsRefused

    if as_json:
        output = {
            "settled": plan.settled,
            "steps": [_as_json(step) for step in plan.steps],
            "refused": plan.refused,
            "extra": plan.extra,
        }
        print_json(output)
    else:
        for step in plan.steps:
            click.echo(str(step))
        _print_extra(plan.extra)
        if plan.settled:
            click.echo("nothing to do: the topics are as declared")
    if plan.refused:
        raise TopicsRefused("; ".join(plan.refused))


def _print_extra(extra: tuple[str, ...]) -> None:
    for name in extra:
        click.echo(f"note: {name} is on the broker, but not declared; it is not changed")


def _as_json(step: TopologyChange) -> dict[str, object]:
    from streams.topology.changes import Create, Grow, Reconfigure

    match step:
        case Create(topic):
            what: dict[str, object] = {"partitions": topic.partitions, "settings": topic.settings}
            return {"do": "create", "topic": topic.name, **what}
        case Grow(name, partitions, was):
            return {"do": "grow", "topic": name, "partitions": partitions, "was": was}
        case Reconfigure(name, changes, was):
            return {
                "do": "configure",
                "topic": name,
                "settings": dict(changes),
                "was": dict(was),
            }


def _write(target: Path, page: str) -> None:
    from streams.errors import Refused

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{target}: cannot be written: {error.strerror}; try --out") from error
