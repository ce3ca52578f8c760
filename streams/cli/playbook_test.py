"""`streams playbook test`: run the test cases beside a playbook."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import json_option
from streams.cli.output import print_json
from streams.cli.trial_options import PLAYBOOK_FILE, TrialArguments, bad_input, trial_options
from streams.errors import Refused

if TYPE_CHECKING:
    from streams.trial.case_file import CaseFile
    from streams.trial.case_run import CaseResult
    from streams.trial.deployment import TrialOptions

CASES_FAILED = 1


@click.command("test")
@click.argument("file", type=PLAYBOOK_FILE)
@click.option("--case", "chosen", help="Run only cases whose name contains this text.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write JUnit XML.")
@trial_options
@json_option
def test_command(
    file: Path,
    chosen: str | None,
    junit: Path | None,
    trial: TrialArguments,
    as_json: bool,
) -> None:
    """Run the cases in NAME.test.yaml beside the playbook NAME.yaml, in this process.

    FILE is the playbook, or the file of cases. Exit codes: 0 every case passed; 1 one failed;
    2 the playbook or the file of cases is not valid.

    \b
    Examples:
      streams playbook test examples/hello.yaml
      streams playbook test load.yaml --credential pg=pg.json --junit results.xml
    """
    cases = _chosen(file, chosen, trial)
    with bad_input():
        results = asyncio.run(_run(cases, trial.options(), trial.timeout_s, quiet=as_json))
    if junit is not None:
        _write_junit(junit, cases.file, results)
    failed = sum(not one.is_passed for one in results)
    if as_json:
        print_json({"file": str(cases.file), "failed": failed, "cases": _cases_json(results)})
    else:
        click.echo(f"{len(results) - failed} of {len(results)} cases passed")
    if failed:
        sys.exit(CASES_FAILED)


def _chosen(file: Path, chosen: str | None, trial: TrialArguments) -> CaseFile:
    from streams.trial.case_file import case_file_of, read_cases

    cases = read_cases(case_file_of(file))
    some = tuple(one for one in cases.cases if chosen is None or chosen in one.name)
    if chosen is not None and not some:
        raise click.BadParameter(f"no case is named {chosen!r}", param_hint="--case")
    return replace(cases, cases=some, given=(*cases.given, *trial.given))


async def _run(
    cases: CaseFile, around: TrialOptions, timeout_s: float, *, quiet: bool
) -> list[CaseResult]:
    from streams.trial.case_run import run_cases

    results = []
    async for result in run_cases(cases, around, timeout_s):
        results.append(result)
        if not quiet:
            _print(cases.file, result)
    return results


def _print(file: Path, result: CaseResult) -> None:
    mark = "✓" if result.is_passed else "✗"
    click.echo(f"{mark} {result.case.name} ({result.seconds:.2f} s)")
    for problem in result.problems:
        click.echo(f"    {problem}")
    if result.problems:
        click.echo(f"    {file}:{result.case.line}")


def _cases_json(results: list[CaseResult]) -> list[dict[str, object]]:
    return [
        {
            "name": one.case.name,
            "line": one.case.line,
            "passed": one.is_passed,
            "seconds": round(one.seconds, 3),
            "problems": one.problems,
            "status": None if one.run is None else one.run.status,
            "result": None if one.run is None else one.run.result,
        }
        for one in results
    ]


def _write_junit(out: Path, file: Path, results: list[CaseResult]) -> None:
    from streams.trial.junit import junit_xml

    try:
        out.write_bytes(junit_xml(file, results))
    except OSError as error:
        raise Refused(f"{out}: cannot be written: {error.strerror}; choose another file") from error
