"""Output of `streams replay`: states, organizations, progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from streams.cli.output import print_json

if TYPE_CHECKING:
    from streams.payload.port import Scope
    from streams.replay.cutoff import Cutoff
    from streams.replay.organization import OrganizationDigest, PastExecution
    from streams.replay.state import ReplayedState

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class PastOrganization:
    """An organization as of a cut; `executions` only if they are to be listed."""

    scope: Scope
    cutoff: Cutoff
    digest: OrganizationDigest
    executions: list[PastExecution]


class EventProgress:
    """Reports long replays, a line for each tenth."""

    _LEAST = 50_000

    def __init__(self) -> None:
        self._tenth = 0

    def __call__(self, done: int, of: int) -> None:
        tenth = 10 * done // of
        if of >= self._LEAST and tenth > self._tenth:
            self._tenth = tenth
            click.echo(f"{done} of {of} events", err=True)


def report_executions(done: int) -> None:
    """Report every thousandth execution."""
    if done and done % _PAGE == 0:
        click.echo(f"{done} executions", err=True)


def print_organization(found: PastOrganization, *, as_json: bool, is_list: bool) -> None:
    """Print the counts and the checksum of an organization, and its executions if asked."""
    digest, cut = found.digest, found.cutoff
    if as_json:
        listed = {"executions": [_execution_json(one) for one in found.executions]}
        print_json(
            {
                "tenant_id": found.scope.tenant_id,
                "organization_id": found.scope.organization_id,
                "as_of": {"log_position": cut.seq, "time": cut.time},
                "by_status": digest.by_status,
                "checksum": digest.checksum,
                **(listed if is_list else {}),
            }
        )
        return
    for one in found.executions:
        click.echo(f"{one.execution_id}  {one.status:<10} event {one.seq:<8} {one.path}")
    at = cut.time.isoformat() if cut.time else f"position {cut.seq} of the log"
    click.echo(f"organization  {found.scope.tenant_id}/{found.scope.organization_id}")
    click.echo(f"as of         {at}")
    for status, count in digest.by_status.items():
        click.echo(f"{status:<13} {count}")
    click.echo(f"checksum      {digest.checksum}")


def _execution_json(one: PastExecution) -> dict[str, object]:
    return {
        "execution_id": str(one.execution_id),
        "path": one.path,
        "status": one.status,
        "position": one.seq,
        "checksum": one.checksum,
    }


def print_state(found: ReplayedState, projection: str) -> None:
    """Print a state as lines."""
    at, row = found.as_of, found.execution
    click.echo(f"execution     {found.execution_id}  {row.path}  {row.status}")
    click.echo(f"as of         event {at.seq}, {at.event_type}, {at.time.isoformat()}")
    for one in found.rows_of(projection):
        name = type(one).__name__.removesuffix("Row").lower()
        step = getattr(one, "step_name", "")
        status = getattr(one, "status", "")
        click.echo(f"open          {name:<8} {one.key[0]}  {step}  {status}")
    for kind, chain in found.ended._asdict().items():
        if chain.length:
            click.echo(f"ended         {kind:<10} {chain.length}")
    for name, count in sorted(found.upcasts.items()):
        click.echo(f"upcasted      {count} events by {name}")
    if found.snapshot is not None:
        why = f" ignored: {found.snapshot.ignored}" if found.snapshot.ignored else ""
        click.echo(f"snapshot      at event {found.snapshot.seq}{why}")
    click.echo(f"events read   {found.events_read} from the {found.source}, each verified")
    click.echo(f"checksum      {found.checksum_of(projection)}")
