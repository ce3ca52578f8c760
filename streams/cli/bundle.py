"""`streams bundle`: an execution in one file, for auditors."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.audit_output import print_checks
from streams.cli.bundle_show import show
from streams.cli.options import json_option, settings_options
from streams.cli.output import print_json, settings_of
from streams.cli.patience import patiently
from streams.cli.replay_output import EventProgress
from streams.errors import Refused

if TYPE_CHECKING:
    from streams.replay.bundle.manifest import Manifest
    from streams.settings import Settings


@click.group()
def bundle() -> None:
    """Write an execution to one file; verify and read it without any server.

    \b
    Example:
      streams bundle export 334285732872290304 --out run.bundle
    """


bundle.add_command(show)


@bundle.command()
@click.argument("execution_id", metavar="ID", type=click.IntRange(min=1))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="[default: ID.bundle]")
@click.option("--no-payloads", is_flag=True, help="Only events and schemas.")
@click.option("--children", is_flag=True, help="Include the executions that it started.")
@settings_options
def export(
    execution_id: int,
    out: Path | None,
    no_payloads: bool,
    children: bool,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Write events, payloads, schemas and expected checksums of an execution to a file.

    The log is verified first. An existing file is replaced when the new one is complete.

    \b
    Examples:
      streams bundle export 334285732872290304 --children
      streams bundle export 334285732872290304 --out run.bundle --no-payloads --json
    """
    settings = settings_of(file, data)
    target = out or Path(f"{execution_id}.bundle")
    if not target.parent.is_dir():
        raise Refused(f"{target.parent}: no such folder; create it, or give another --out")
    attempt = lambda: _export(settings, execution_id, target, not no_payloads, children)  # noqa: E731
    manifest = asyncio.run(patiently(attempt))
    _print_export(manifest, target, as_json)


def _print_export(manifest: Manifest, target: Path, as_json: bool) -> None:
    first, size = manifest.executions[0], target.stat().st_size
    events = sum(one.seq for one in manifest.executions)
    if as_json:
        counts = {"executions": len(manifest.executions), "events": events}
        heads = {"chain": first.chain, "checksum": first.checksums["all"]}
        found = {"file": str(target), "bytes": size, "execution_id": str(first.execution_id)}
        print_json({**found, **heads, **counts, "payloads": manifest.payloads})
        return
    click.echo(f"file          {target}, {size} bytes")
    click.echo(f"executions    {len(manifest.executions)}")
    click.echo(f"events        {events}")
    click.echo(f"payloads      {manifest.payloads.count}, {manifest.payloads.expired} expired")
    click.echo(f"chain         {first.chain}")
    click.echo(f"checksum      {first.checksums['all']}")


async def _export(
    settings: Settings, execution_id: int, target: Path, payloads: bool, children: bool
) -> Manifest:
    from streams.app import open_bundle_sources
    from streams.payload.port import Scope
    from streams.replay.bundle.export import BundleExport
    from streams.replay.payload_index import PayloadIndex

    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        async with open_bundle_sources(settings, payloads=payloads, children=children) as sources:
            with PayloadIndex() as index, partial.open("wb") as file:
                bundled = BundleExport(sources, scope, index, EventProgress())
                manifest = await bundled.prepare(execution_id)
                async for chunk in bundled.chunks(manifest):
                    file.write(chunk)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return manifest


@bundle.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--chain", metavar="HEX", help="The head's chain, as you know it from elsewhere.")
@json_option
def verify(path: Path, chain: str | None, as_json: bool) -> None:
    """Prove a bundle without database, broker, settings or network.

    Every byte, every event's checksum, the chain from zero to the head, the fold and the
    payloads are checked. Exit code 1 if anything differs. A file in which everything was
    replaced consistently is found only with --chain.

    \b
    Examples:
      streams bundle verify run.bundle
      streams bundle verify run.bundle --chain 5bfd… --json
    """
    from streams.replay.bundle.verify import verify_bundle

    report = asyncio.run(verify_bundle(path, chain=chain))
    if as_json:
        manifest = report.manifest
        executions = () if manifest is None else manifest.executions
        ids = [str(one.execution_id) for one in executions]
        checks = report.checks
        print_json({"is_proven": report.is_proven, "executions": ids, "checks": checks})
    else:
        print_checks(report.checks)
        for one in () if report.manifest is None else report.manifest.executions:
            click.echo(f"execution     {one.execution_id}, {one.seq} events, chain {one.chain}")
    sys.exit(0 if report.is_proven else 1)
