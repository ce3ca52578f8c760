"""`streams try`: run a playbook in one process, without servers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.imports import importing
from streams.cli.options import json_option
from streams.cli.output import print_json
from streams.cli.trial_options import (
    PLAYBOOK_FILE,
    TrialArguments,
    bad_input,
    json_of,
    print_warnings,
    trial_options,
)
from streams.cli.workload import named, set_json_option, set_option, workload_of

if TYPE_CHECKING:
    from streams.events.model import Event, Json
    from streams.trial.deployment import TrialOptions
    from streams.trial.playbooks import FilePlaybooks
    from streams.trial.run import TrialResult

NOT_COMPLETED = 1


@click.command("try")
@click.argument("file", type=PLAYBOOK_FILE)
@set_option
@set_json_option
@click.option(
    "--mock",
    "mocks",
    multiple=True,
    metavar="STEP=FILE",
    help="Answer for STEP, or STEP.TASK, with the JSON in FILE.",
)
@trial_options
@click.option("--events", "show_events", is_flag=True, help="Print every event as a JSON line.")
@json_option
def try_command(
    file: Path,
    texts: tuple[str, ...],
    values: tuple[str, ...],
    mocks: tuple[str, ...],
    trial: TrialArguments,
    show_events: bool,
    as_json: bool,
) -> None:
    """Run the playbook in FILE in this process: no Kafka, no Postgres, nothing registered.

    Its tools are the real ones: what it sends and writes has an effect. Playbooks that it calls
    are found beside FILE, or given by --with. A credential is read from the environment
    (NOETL_CREDENTIAL_<NAME>), or given by --credential.

    Exit codes: 0 COMPLETED; 1 it failed, partly failed or did not end in time; 2 the playbook
    or an option is not valid.

    \b
    Examples:
      streams try examples/hello.yaml --set name=Ada
      streams try load.yaml --credential pg=pg.json --mock fetch=fetch.json
      streams try load.yaml --json > run.json
    """
    workload = workload_of(texts, values)
    with importing():
        playbooks, around = _prepared(file, trial, mocks)
        watch = _nothing if as_json else _print_event if show_events else _progress()
        import_module("streams.trial.run")
    result = asyncio.run(_run(playbooks, around, workload, trial.timeout_s, watch))
    if as_json:
        print_json(_result_json(result))
    elif not show_events:
        _print(result)
    if result.status != "COMPLETED":
        sys.exit(NOT_COMPLETED)


def _prepared(
    file: Path, trial: TrialArguments, mocks: Sequence[str]
) -> tuple[FilePlaybooks, TrialOptions]:
    """Return the compiled playbook, and what its run may use."""
    from streams.trial.mocks import mock_of
    from streams.trial.playbooks import FilePlaybooks

    with bad_input():
        playbooks = FilePlaybooks(file, trial.given)
    print_warnings(file, playbooks)
    pairs = [named(pair, "--mock", "STEP=FILE") for pair in mocks]
    answers = {name: json_of(Path(one), "--mock") for name, one in pairs}
    steps = playbooks.main.steps
    made = tuple(mock_of(name, value, steps) for name, value in answers.items())
    return playbooks, replace(trial.options(), mocks=made)


async def _run(
    playbooks: FilePlaybooks,
    around: TrialOptions,
    workload: Mapping[str, Json],
    timeout_s: float,
    watch: Callable[[Event], None],
) -> TrialResult:
    from streams.trial.run import Trial

    return await Trial(playbooks, around, watch).run(workload, timeout_s)


def _progress() -> Callable[[Event], None]:
    from streams.trial.progress import StepLines

    return StepLines(click.echo).note


def _print_event(event: Event) -> None:
    from streams.api.event_json import event_json

    print_json(event_json(event))


def _nothing(_: Event) -> None:
    """Report nothing."""


def _print(result: TrialResult) -> None:
    click.echo(result.status)
    if result.error:
        click.echo(f"error: {result.error}")
    if result.result is not None:
        click.echo(orjson.dumps(result.result, option=orjson.OPT_INDENT_2).decode())


def _result_json(result: TrialResult) -> dict[str, object]:
    from streams.api.event_json import event_json

    return {
        "execution_id": str(result.execution_id),
        "status": result.status,
        "result": result.result,
        "error": result.error,
        "steps": result.steps,
        "events": [event_json(event) for event in result.events],
    }
