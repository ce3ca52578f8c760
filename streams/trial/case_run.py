"""Runs test cases, each with a log of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from streams.errors import Refused, Unavailable
from streams.events.model import Json
from streams.playbook.yaml_document import as_list, as_mapping
from streams.trial.case_file import CaseFile, RowsExpected, TestCase
from streams.trial.deployment import TrialOptions
from streams.trial.errors import BadTrial
from streams.trial.expectations import differences, row_differences
from streams.trial.mocks import mock_of
from streams.trial.playbooks import FilePlaybooks
from streams.trial.run import SCOPE, TIMEOUT_S, Trial, TrialResult
from streams.worker.port import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The outcome of one case."""

    case: TestCase
    seconds: float
    problems: tuple[str, ...]
    run: TrialResult | None = None
    """None: it could not be run, or did not end."""

    @property
    def is_passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.problems


async def run_cases(
    cases: CaseFile, options: TrialOptions, timeout_s: float = TIMEOUT_S
) -> AsyncIterator[CaseResult]:
    """Run the cases in order and yield their results.

    Raises:
        BadPlaybook: the playbook has errors.
    """
    playbooks = FilePlaybooks(cases.playbook, cases.given)
    for case in cases.cases:
        began = perf_counter()
        problems: list[str] = []
        run: TrialResult | None = None
        try:
            run = await _run(playbooks, case, options, timeout_s, problems)
        except (Refused, Unavailable) as error:
            problems.append(str(error))
        yield CaseResult(
            case=case, seconds=perf_counter() - began, problems=tuple(problems), run=run
        )


async def _run(
    playbooks: FilePlaybooks,
    case: TestCase,
    options: TrialOptions,
    timeout_s: float,
    problems: list[str],
) -> TrialResult:
    steps = playbooks.main.steps
    mocks = tuple(mock_of(name, value, steps) for name, value in case.mocks.items())
    trial = Trial(playbooks, replace(options, mocks=mocks))
    result = await trial.run(case.workload, timeout_s)
    problems += differences(case.expect, result)
    for number, expected in enumerate(case.expect.rows):
        found = await _query(trial, expected, result.execution_id)
        problems += row_differences(f"rows[{number}]", expected.rows, found)
    return result


async def _query(trial: Trial, expected: RowsExpected, execution_id: int) -> Sequence[Json]:
    call = Call(
        tenant_id=SCOPE.tenant_id,
        organization_id=SCOPE.organization_id,
        execution_id=execution_id,
        step="expect",
        task="rows",
        entity_id=execution_id,
        attempt=1,
    )
    async with trial.tools() as tools:
        outcome = await tools[expected.kind].run(expected.config, call)
    if outcome.status == "error":
        message = (outcome.error or {}).get("message")
        raise BadTrial(f"query {expected.config['query']!r} failed: {message}")
    return as_list(as_mapping(outcome.data).get("rows"))
