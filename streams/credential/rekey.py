"""Re-encryption of stored credentials with the current key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streams.credential.keys import KeyRing
from streams.credential.port import Vault
from streams.credential.seal import seal, unseal


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """Counts of a run; `unused` are keys that no row needs."""

    resealed: int
    current: int
    """Rows already under the current key."""
    changed: int
    """Rows set concurrently: under the current key, or in need of another run."""
    unused: tuple[str, ...]


async def rekey(
    vault: Vault,
    keys: KeyRing,
    *,
    dry_run: bool = False,
    save_key: Callable[[], None] | None = None,
) -> Rekeyed:
    """Encrypt everything with the current key.

    All rows are decrypted first, so that one failure leaves all unchanged. `save_key` then
    persists a new key before anything is encrypted with it.

    Raises:
        NotOpened: the key of a row is not configured, or the row was tampered with.
    """
    rows = await vault.rows()
    old = [row for row in rows if row.sealed.key_id != keys.current.id]
    opened = [(row, unseal(keys, row.scope, row.name, row.sealed)) for row in old]
    if save_key is not None and not dry_run:
        save_key()
    done = 0
    for row, fields in opened:
        if dry_run or await vault.reseal(row, seal(keys, row.scope, row.name, fields)):
            done += 1
    needed = {row.sealed.key_id for row in (rows if dry_run else await vault.rows())}
    unused = tuple(key.id for key in keys.keys[1:] if key.id not in needed)
    return Rekeyed(done, len(rows) - len(old), len(old) - done, unused)
