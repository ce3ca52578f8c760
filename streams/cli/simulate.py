"""`streams simulate`: deterministic simulation of the runtime with injected faults."""

from __future__ import annotations

import logging
import sys

import click

from streams.cli.output import print_json
from streams.errors import Refused


@click.command(
    epilog="""\b
Example:
  streams simulate --seeds 200
  streams simulate --first 1734 --seeds 1           (repeat one seed)
  streams simulate --plant double-dispatch          (a planted bug must be found)"""
)
@click.option("--seeds", default=200, show_default=True, help="How many seeds to run.")
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--plant", help="Plant a bug: lost-acknowledgement, double-dispatch, …")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def simulate(seeds: int, first: int, plant: str | None, as_json: bool) -> None:
    """Run planner, workers and projector on one seeded scheduler with injected faults.

    Exits with 1 when a seed fails; with --plant, when none does.
    """
    from streams.dev.simulator.plants import PLANTS
    from streams.dev.simulator.run import Summary
    from streams.dev.simulator.run import simulate as run

    if seeds < 1:
        raise Refused(f"--seeds is {seeds}; it must be at least 1")
    if plant is not None and plant not in PLANTS:
        raise Refused(f"--plant {plant}: use one of {', '.join(sorted(PLANTS))}")
    logging.getLogger("streams").setLevel(logging.CRITICAL)

    def show(summary: Summary) -> None:
        if not as_json and sys.stderr.isatty():
            line = f"\r{summary.seeds} of {seeds} seeds, {len(summary.failures)} failures"
            click.echo(line, nl=False, err=True)

    summary = run(
        range(first, first + seeds),
        progress=show,
        stop_at_first=plant is not None,
        **({"plant": PLANTS[plant]} if plant else {}),
    )
    if as_json:
        failures = [{"seed": one.seed, "problem": one.problem} for one in summary.failures]
        output = {"seeds": summary.seeds, "steps": summary.steps, "faults": dict(summary.faults)}
        print_json({**output, "failures": failures})
    else:
        _print(summary.seeds, summary.steps, dict(summary.faults))
        for one in summary.failures:
            click.echo(f"seed {one.seed}: {one.problem}")
    found = bool(summary.failures)
    if found == (plant is None):
        sys.exit(1)


def _print(seeds: int, steps: int, faults: dict[str, int]) -> None:
    click.echo(f"\n{seeds} seeds, {steps} records, {sum(faults.values())} faults:")
    for kind, times in sorted(faults.items()):
        click.echo(f"  {kind:<18} {times}")
