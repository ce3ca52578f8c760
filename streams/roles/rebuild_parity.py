"""Parity after a rebuild: rebuilt rows against a replay of verified events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from streams.app import open_audits
from streams.payload.port import Scope
from streams.replay.audit.port import ProjectedRows
from streams.replay.checks import Status
from streams.replay.errors import NoSuchExecution
from streams.settings import Settings

PAGE = 500
MOST_FAILURES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildParity:
    """How many executions were compared, and those that differ."""

    executions: int = 0
    events: int = 0
    failures: tuple[str, ...] = ()


OnParity = Callable[[RebuildParity], None]


async def rebuild_parity(
    settings: Settings, execution_id: int | None = None, report: OnParity | None = None
) -> RebuildParity:
    """Compare the rows of an execution, or of all of the settings' scope, with a replay.

    A running execution is compared up to where it is projected. Stops after ten that differ.

    Raises:
        Unavailable: log or tables cannot be read; retrying is safe.
    """
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    found = RebuildParity()
    async with open_audits(settings, payloads=False) as opened:
        async for one in _executions(opened.stored, scope, execution_id):
            try:
                audited = await opened.audit.run(one, scope)
            except NoSuchExecution:  # it was rebuilt for another scope
                continue
            failed = [check for check in audited.checks if check.status is Status.FAILED]
            lines = [f"execution {one}: {check.name}: {check.detail}" for check in failed]
            found = replace(
                found,
                executions=found.executions + 1,
                events=found.events + audited.seq,
                failures=(*found.failures, *lines),
            )
            if report is not None:
                report(found)
            if len(found.failures) >= MOST_FAILURES:
                return found
    return found


async def _executions(
    stored: ProjectedRows, scope: Scope, execution_id: int | None
) -> AsyncIterator[int]:
    if execution_id is not None:
        yield execution_id
        return
    before = None
    while page := await stored.executions(scope, only_finished=False, before=before, limit=PAGE):
        for one in page:
            yield one
        before = page[-1]
