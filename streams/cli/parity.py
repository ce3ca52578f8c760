"""`streams parity`: the replay parity gate over finished executions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.audit_output import print_checks
from streams.cli.options import COUNT, settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.replay_output import EventProgress
from streams.cli.replay_verify import chosen

if TYPE_CHECKING:
    from streams.replay.checks import Check
    from streams.replay.parity import ParityGate
    from streams.settings import Settings


@click.command()
@click.argument("execution_ids", metavar="[EXECUTION]...", type=click.IntRange(min=1), nargs=-1)
@click.option("--limit", type=COUNT, default=20, show_default=True, help="How many, if none given.")
@click.option(
    "--reader",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The Rust reader  [default: the one built in this checkout]",
)
@settings_options
def parity(
    execution_ids: tuple[int, ...],
    limit: int,
    reader: Path | None,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Check that finished executions can be proven from their logs: eight checks.

    Envelopes, facts of snapshots, replay with payloads, live state, business projections, the
    Rust reader, hints of shared memory, and idempotency keys. A check that was not run has not
    passed. By default the newest finished executions. Exit code 1 if a check failed.

    \b
    Examples:
      streams parity
      streams parity 334285732872290304 --json
    """
    from streams.replay.checks import has_failed

    gate, checks = asyncio.run(_parity(settings_of(file, data), execution_ids, limit, reader))
    if as_json:
        numbers = {"executions": gate.executions, "events": gate.events}
        print_json({"is_proven": not has_failed(checks), **numbers, "checks": checks})
    else:
        print_checks(checks)
    sys.exit(1 if has_failed(checks) else 0)


async def _parity(
    settings: Settings, execution_ids: Sequence[int], limit: int, reader: Path | None
) -> tuple[ParityGate, list[Check]]:
    from streams.app import open_audits, open_business_parity
    from streams.events.catalogue import catalogue
    from streams.payload.port import Scope
    from streams.replay.parity import READER, ParityGate, parity_rules
    from streams.replay.parity_reader import find_corpus, reader_check
    from streams.resources import folder

    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    gate, rules = ParityGate(), parity_rules(catalogue())
    async with (
        open_audits(settings, payloads=True) as opened,
        open_business_parity(settings) as business,
    ):
        ids = chosen(opened.stored, scope, execution_ids, only_finished=True, limit=limit)
        async for one in ids:
            progress = EventProgress()
            report = await opened.audit.run(one, scope, rules=rules, on_progress=progress)
            gate.add(report, await business.compare(one, scope))
    golden = find_corpus(folder("avro_schemas").parent, reader)
    return gate, gate.checks(await reader_check(READER, golden), has_business=True)
