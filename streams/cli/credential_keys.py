"""`streams credential rekey` and `new-key`: encryption keys of credentials."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.options import json_option, settings_options
from streams.cli.output import print_json, settings_of
from streams.errors import Refused

if TYPE_CHECKING:
    from streams.credential.rekey import Rekeyed
    from streams.settings import Settings


@click.command("rekey")
@click.option("--new-key", is_flag=True, help="First add a new key at the top of the file.")
@click.option("--dry-run", is_flag=True, help="Decrypt everything; change nothing.")
@settings_options
def rekey_command(
    new_key: bool, dry_run: bool, file: Path | None, data: Path | None, as_json: bool
) -> None:
    """Encrypt every credential, of all tenants, with the first key of the key file.

    Older keys must stay in the file until this is done; it reports which are no longer
    needed. It connects as the owner of the database: no runtime role may read all of them.

    \b
    Examples:
      streams credential rekey --new-key
      streams credential rekey --dry-run --json
    """
    done = asyncio.run(_rekey(new_key, dry_run, file, data))
    if as_json:
        print_json({"dry_run": dry_run, **asdict(done)})
        return
    verb = "would be re-encrypted" if dry_run else "re-encrypted"
    click.echo(f"{done.resealed} {verb}, {done.current} already had the current key")
    if done.changed:
        click.echo(f"{done.changed} were set concurrently; run it again")
    for key_id in done.unused:
        click.echo(f"key {key_id} is no longer needed; its line may be removed from the file")


@click.command("new-key")
@click.option("--out", type=click.Path(path_type=Path), help="Write it here, readable by you only.")
@json_option
def new_key_command(out: Path | None, as_json: bool) -> None:
    """Generate a key that encrypts credentials.

    \b
    Examples:
      streams credential new-key --out credential.key
      streams credential new-key --json
    """
    from streams.credential.keys import new_key, read_keys
    from streams.data_folder import write_private

    made = new_key()
    key_id = read_keys(made, "the new key").current.id
    if out is None:
        click.echo(orjson.dumps({"key": made, "key_id": key_id}).decode() if as_json else made)
        return
    if out.exists():
        raise Refused(f"{out} exists, and credentials may depend on it; choose another file")
    try:
        write_private(out, f"{made}\n".encode())
    except OSError as error:
        raise Refused(f"{out}: cannot be written: {error.strerror}; choose another file") from error
    output = {"written": str(out), "key_id": key_id}
    click.echo(orjson.dumps(output).decode() if as_json else f"wrote {out}, key {key_id}")


async def _rekey(is_new: bool, dry_run: bool, file: Path | None, data: Path | None) -> Rekeyed:
    from streams.app import keys_of, open_pool
    from streams.credential.keys import KeyRing, new_key, read_keys
    from streams.credential.postgres import PostgresVault
    from streams.credential.rekey import rekey
    from streams.data_folder import write_private

    settings = settings_of(file, data)
    keys, owner = keys_of(settings)(), settings.event_store.canonical_connection.dsn("owner")
    async with open_pool(owner) as pool:
        if not is_new:
            return await rekey(PostgresVault(pool), keys, dry_run=dry_run)
        path, line = _key_file(settings), new_key()
        keys = KeyRing((*read_keys(line, "the new key").keys, *keys.keys))

        def save_key() -> None:
            write_private(path, f"{line}\n".encode() + path.read_bytes())

        return await rekey(PostgresVault(pool), keys, dry_run=dry_run, save_key=save_key)


def _key_file(settings: Settings) -> Path:
    chosen = settings.credential_store
    if chosen.key is not None or chosen.key_file is None:
        raise Refused("--new-key needs credential_store.key_file; without it, add the key yourself")
    return Path(chosen.key_file)
