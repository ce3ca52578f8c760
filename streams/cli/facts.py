"""`streams facts`: read the fact topics, and compare them with the log."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.patience import patiently

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streams.facts.comparison import FactComparison
    from streams.facts.model import Fact
    from streams.settings import Settings

KINDS = ("execution", "stage", "frame", "billing", "audit")
_PAUSE_S = 0.5


@click.group()
def facts() -> None:
    """Read facts for analysts: last states, billing and audit, on compacted topics.

    The role `facts` publishes them from the log; `streams up --profile full` starts it.
    `streams rebuild facts` publishes them again.

    \b
    Examples:
      streams facts show billing --limit 5
      streams facts verify --wait 10
    """


@facts.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--key", help="Only this key, or those below it: 7351 or 7351/7360.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@settings_options
def show(
    kind: str, key: str | None, limit: int, file: Path | None, data: Path | None, as_json: bool
) -> None:
    """Show the newest facts of a topic, by position in the log.

    It reads the whole topic: for questions about many facts, use a sink.

    \b
    Examples:
      streams facts show execution --limit 5 --json
      streams facts show frame --key 7351
    """
    from streams.facts.model import PREFIX

    settings, topic = settings_of(file, data), PREFIX + kind
    found = asyncio.run(patiently(lambda: _newest(settings, topic, key, limit)))
    if as_json:
        print_json({"topic": topic, "facts": [fact_json(fact) for fact in found]})
        return
    for fact in found:
        click.echo(_line(fact))


@facts.command()
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Seconds to wait until they are equal; the role publishes within about a second.",
)
@settings_options
def verify(wait_s: float, file: Path | None, data: Path | None, as_json: bool) -> None:
    """Compare the fact topics with a fold of the log; exit 5 if they differ.

    Facts that are not published yet differ, too.

    \b
    Examples:
      streams facts verify
      streams facts verify --wait 10 --json
    """
    from streams.facts.errors import FactsDiffer

    settings = settings_of(file, data)
    found = asyncio.run(_compared(settings, wait_s))
    if as_json:
        topics = [one.as_json() for one in found.topics]
        print_json(
            {
                "equal": found.is_equal,
                "events": found.events,
                "broken": list(found.broken),
                "topics": topics,
            }
        )
    else:
        for one in found.topics:
            state = "equal" if one.is_equal else "differs"
            counts = f"{one.missing} missing, {one.older} older, {one.different} different"
            click.echo(
                f"{one.topic:<22} {state:<8} {one.facts} of {one.expected} facts"
                + ("" if one.is_equal else f": {counts}, {one.unknown} unknown")
                + f"  {one.content.hex()[:16]}"
            )
    if not found.is_equal:
        raise FactsDiffer(tuple(one.topic for one in found.topics if not one.is_equal))


def fact_json(fact: Fact) -> dict[str, object]:
    """Return a fact for readers of JSON, some of which would round 64-bit ids: they are texts."""
    from dataclasses import fields

    values = {field.name: getattr(fact, field.name) for field in fields(fact)}
    return {
        name: str(value) if name.endswith("_id") and value is not None else value
        for name, value in values.items()
    }


def _line(fact: Fact) -> str:
    values = fact_json(fact).items()
    return "  ".join(f"{name}={value}" for name, value in values if value is not None)


async def _newest(settings: Settings, topic: str, key: str | None, limit: int) -> Sequence[Fact]:
    from streams.roles.fact_topics import newest_facts

    return await newest_facts(settings, topic, key=key, limit=limit)


async def _compared(settings: Settings, wait_s: float) -> FactComparison:
    from streams.roles.fact_topics import compare_facts

    until = time.monotonic() + wait_s
    while True:
        found = await patiently(lambda: compare_facts(settings))
        if found.is_equal or time.monotonic() >= until:
            return found
        await asyncio.sleep(_PAUSE_S)
