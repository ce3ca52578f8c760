"""Changing keys: everything that an older key sealed is sealed anew with the current one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streams.credential.keys import KeyRing
from streams.credential.port import Vault
from streams.credential.seal import seal, unseal


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """What was done; `unused` are keys that nothing needs any more."""

    resealed: int
    current: int
    """How many were under the current key already."""
    changed: int
    """How many were set anew meanwhile, and so are under the current key or need another run."""
    unused: tuple[str, ...]


async def rekey(
    vault: Vault, keys: KeyRing, *, dry_run: bool = False, keep: Callable[[], None] | None = None
) -> Rekeyed:
    """Seal everything with the current key.

    All rows are opened first, so nothing is changed where one cannot be. Then, before anything
    is sealed with it, `keep` puts a new key where it is found again.

    Raises:
        NotOpened: the key of a row is not here, or the row was tampered with.
    """
    rows = await vault.rows()
    old = [row for row in rows if row.sealed.key_id != keys.current.id]
    opened = [(row, unseal(keys, row.scope, row.name, row.sealed)) for row in old]
    if keep is not None and not dry_run:
        keep()
    done = 0
    for row, fields in opened:
        if dry_run or await vault.reseal(row, seal(keys, row.scope, row.name, fields)):
            done += 1
    needed = {row.sealed.key_id for row in (rows if dry_run else await vault.rows())}
    unused = tuple(key.id for key in keys.keys[1:] if key.id not in needed)
    return Rekeyed(done, len(rows) - len(old), len(old) - done, unused)
