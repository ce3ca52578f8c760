"""`streams prove`: measure every claim and write docs/benchmarks.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.options import json_option
from streams.cli.output import print_json

if TYPE_CHECKING:
    from streams.dev.bench.prove import MeasuredClaim


@click.command()
@click.option("--only", help="Only claims whose name contains this.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("docs/benchmarks.md"))
@click.option("--dry-run", is_flag=True, help="List the claims; measure nothing.")
@json_option
def prove(only: str | None, out: Path, dry_run: bool, as_json: bool) -> None:
    """Measure every claim; this may take an hour.

    The page is written only when all claims are selected, after each measurement. Exits with 1
    when a claim does not hold.

    \b
    Examples:
      streams prove
      streams prove --only mirror --json
    """
    from streams.dev.bench.claims import CLAIMS
    from streams.dev.bench.prove import page
    from streams.dev.bench.prove import prove as measure

    wanted = tuple(claim for claim in CLAIMS if only is None or only in claim.name)
    if not wanted:
        names = "; ".join(claim.name for claim in CLAIMS)
        raise click.BadParameter(f"no claim has {only!r} in its name: {names}", param_hint="--only")
    if dry_run:
        _print_plan(wanted, as_json)
        return
    proofs = []
    for proof in measure(wanted, lambda line: click.echo(line, err=True)):
        proofs.append(proof)
        if only is None:
            out.write_text(page(proofs, at=datetime.now(UTC)), encoding="utf-8")
    if as_json:
        found = [
            {"claim": p.claim.name, "holds": p.holds, "figures": dict(p.figures)} for p in proofs
        ]
        print_json({"claims": found})
    elif only is None:
        click.echo(f"wrote {out}")
    if not all(proof.holds for proof in proofs):
        sys.exit(1)


def _print_plan(wanted: Sequence[MeasuredClaim], as_json: bool) -> None:
    if as_json:
        print_json({"claims": [{"claim": claim.name, "how": claim.how} for claim in wanted]})
        return
    for claim in wanted:
        click.echo(f"{claim.name}: {claim.how}")
