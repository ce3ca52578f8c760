"""`streams credential`: set, list and remove the secrets that playbooks name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streams.cli.credential_fields import read_fields
from streams.cli.credential_keys import new_key_command, rekey_command
from streams.cli.options import config_option, data_option, json_option, options, settings_options
from streams.cli.output import print_json, say, settings_of

if TYPE_CHECKING:
    from streams.credential.port import CredentialEntry
    from streams.credential.postgres import PostgresCredentials
    from streams.payload.port import Scope
    from streams.settings import Settings

_scope_options = options(
    click.option("--tenant", help="Its tenant  [default: from the settings]"),
    click.option("--organization", help="Its organization  [default: from the settings]"),
)


@click.group()
def credential() -> None:
    """Store the secrets that playbooks name with `auth`, encrypted; they are never shown.

    \b
    Example:
      streams credential set pg_main --type postgres < pg_main.json
    """


credential.add_command(rekey_command)
credential.add_command(new_key_command)


@credential.command("set")
@click.argument("name")
@click.option("--type", "kind", required=True, help="What it is for: postgres, http, s3, ...")
@click.option(
    "--from-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A JSON object of fields, or one line: a connection string or token.",
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="K=V",
    help="A field. Visible in the process list and the shell's history: use it for fields that "
    "are not secret, such as host=..., or on your own machine.",
)
@click.option("--dry-run", is_flag=True, help="Check the fields; store nothing.")
@_scope_options
@options(config_option, data_option, json_option)
def set_command(
    name: str,
    kind: str,
    from_file: Path | None,
    pairs: tuple[str, ...],
    dry_run: bool,
    tenant: str | None,
    organization: str | None,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Store the credential NAME; an existing one gets its next revision.

    The fields come from --from-file, else from --set, else from standard input (a hidden
    prompt on a terminal). They are a JSON object, such as {"dsn": ...}, or one line. Stored
    values are never printed.

    \b
    Examples:
      streams credential set pg_main --type postgres < pg_main.json
      streams credential set care_api --type http --from-file token.txt
      streams credential set pg_main --type postgres --json
    """
    from streams.credential.fields import check_name

    check_name(name)
    check_name(kind, "type")
    fields = read_fields(kind, from_file, pairs)
    output: dict[str, object] = {"name": name, "kind": kind, "fields": sorted(fields)}
    names, what = sorted(fields), "can be stored"
    if not dry_run:
        entry = asyncio.run(_set(name, kind, fields, tenant, organization, file, data))
        output = _entry_json(entry)
        names, what = list(entry.fields), f"is stored, revision {entry.revision}"
    output |= _overridden(name, settings_of(file, data))
    if as_json:
        print_json({"dry_run": dry_run, **output})
        return
    click.echo(f"{name} ({kind}: {', '.join(names)}) {what}")


@credential.command("list")
@_scope_options
@settings_options
def list_command(
    tenant: str | None,
    organization: str | None,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """List names, types, field names and times; never values.

    \b
    Examples:
      streams credential list
      streams credential list --json
    """

    async def run() -> list[CredentialEntry]:
        async with _store(file, data, tenant, organization) as (store, scope, _):
            return list(await store.list(scope))

    entries = asyncio.run(run())
    if as_json:
        print_json({"credentials": [_entry_json(entry) for entry in entries]})
        return
    for entry in entries:
        when = f"{entry.updated_at:%Y-%m-%d %H:%M:%S}Z"
        fields = ", ".join(entry.fields)
        click.echo(
            f"{entry.name:<24} {entry.kind:<12} revision {entry.revision:<4} {when}  {fields}"
        )
    if not entries:
        click.echo("no credentials; try `streams credential set pg_main --type postgres`")


@credential.command("rm")
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="Check that it exists; remove nothing.")
@_scope_options
@settings_options
def rm_command(
    name: str,
    dry_run: bool,
    tenant: str | None,
    organization: str | None,
    file: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Remove the credential NAME. Workers drop it when their leases end.

    \b
    Examples:
      streams credential rm pg_main
      streams credential rm pg_main --dry-run --json
    """

    async def run() -> None:
        from streams.credential.errors import NoCredential

        async with _store(file, data, tenant, organization) as (store, scope, _):
            if not dry_run:
                await store.remove(scope, name)
            elif name not in {entry.name for entry in await store.list(scope)}:
                raise NoCredential(name)

    asyncio.run(run())
    if as_json:
        print_json({"dry_run": dry_run, "removed": name})
    else:
        click.echo(f"{name} can be removed" if dry_run else f"{name} is removed")


async def _set(
    name: str,
    kind: str,
    fields: dict[str, str],
    tenant: str | None,
    organization: str | None,
    file: Path | None,
    data: Path | None,
) -> CredentialEntry:
    from streams.app import keys_of
    from streams.credential.seal import seal

    async with _store(file, data, tenant, organization) as (store, scope, settings):
        sealed = seal(keys_of(settings)(), scope, name, fields)
        return await store.put(scope, name, kind, sorted(fields), sealed)


@asynccontextmanager
async def _store(
    file: Path | None, data: Path | None, tenant: str | None, organization: str | None
) -> AsyncIterator[tuple[PostgresCredentials, Scope, Settings]]:
    from streams.app import credentials_of, open_log
    from streams.payload.port import Scope

    settings = settings_of(file, data)
    runtime = settings.runtime
    scope = Scope(tenant or runtime.tenant_id, organization or runtime.organization_id)
    async with open_log(settings, role="api", lanes=1) as log:
        yield credentials_of(log, settings), scope, settings


def _overridden(name: str, settings: Settings) -> dict[str, object]:
    if name not in settings.credentials:
        return {}
    say(f"tasks do not use it: the settings have a credential {name}, which comes first")
    return {"overridden_by": "settings"}


def _entry_json(entry: CredentialEntry) -> dict[str, object]:
    return {**asdict(entry), "credential_id": str(entry.credential_id)}
