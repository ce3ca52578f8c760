"""`streams replay verify`: everything that was stored of executions, compared with their logs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.audit_output import print_checks
from streams.cli.options import settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.replay_output import EventProgress
from streams.errors import Refused

if TYPE_CHECKING:
    from streams.payload.port import Scope
    from streams.replay.audit.execution import AuditReport
    from streams.replay.audit.port import ProjectedRows
    from streams.settings import Settings

_PAGE = 100


@click.command()
@click.argument("execution_ids", metavar="[EXECUTION]...", type=click.IntRange(min=1), nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Every execution, the newest first.")
@click.option("--payloads", is_flag=True, help="Read every payload, and compare its SHA-256.")
@settings_options
def verify(
    execution_ids: tuple[int, ...],
    is_all: bool,
    payloads: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Compare what is stored of executions with their logs, folded from the first event.

    Every event's checksum and link is verified. Rows of executions, stages, frames, commands and
    results are compared column by column at the last event of each, and so are snapshots. Exit
    code 1 if anything differs; the first difference is named.

    \b
    Examples:
      streams replay verify 334285732872290304 --payloads
      streams replay verify --all --json
    """
    if bool(execution_ids) == is_all:
        raise Refused("give execution ids, or --all")
    found = asyncio.run(_verify(settings_of(file, data), execution_ids, payloads, as_json))
    sys.exit(0 if found else 1)


async def _verify(
    settings: Settings, execution_ids: Sequence[int], payloads: bool, as_json: bool
) -> bool:
    """Report each execution as it is done, so that memory does not grow with their number."""
    from streams.app import open_audits
    from streams.payload.port import Scope

    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    count = differing = 0
    async with open_audits(settings, payloads=payloads) as opened:
        async for one in chosen(opened.stored, scope, execution_ids):
            report = await opened.audit.run(one, scope, on_progress=EventProgress())
            count += 1
            differing += not report.is_equal
            _print(report, as_json)
    if not as_json:
        click.echo(f"{count} executions, {differing} differ from their logs")
    return not differing


async def chosen(
    stored: ProjectedRows,
    scope: Scope,
    execution_ids: Sequence[int],
    *,
    only_finished: bool = False,
    limit: int | None = None,
) -> AsyncIterator[int]:
    """Yield the executions given, or those of the log, the newest first."""
    for one in execution_ids:
        yield one
    if execution_ids:
        return
    before, count = None, 0
    while limit is None or count < limit:
        wanted = _PAGE if limit is None else min(_PAGE, limit - count)
        page = await stored.executions(
            scope, only_finished=only_finished, before=before, limit=wanted
        )
        for one in page:
            yield one
        if not page:
            return
        before, count = page[-1], count + len(page)


def _print(report: AuditReport, as_json: bool) -> None:
    if as_json:
        found = {"execution_id": str(report.execution_id), "events": report.seq}
        print_json({**found, "is_equal": report.is_equal, "checks": report.checks})
        return
    click.echo(f"execution {report.execution_id}")
    print_checks(report.checks)
