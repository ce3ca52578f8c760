"""Credentials in memory, with declared claims: for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count

from streams.credential.errors import NoCredential
from streams.credential.port import Claim, CredentialEntry, Held, Row
from streams.credential.seal import SealedFields
from streams.payload.port import Scope


@dataclass(frozen=True, slots=True)
class _Stored:
    entry: CredentialEntry
    sealed: SealedFields


class MemoryCredentials:
    """Stores credentials and claims in memory; also a vault."""

    def __init__(self) -> None:
        self._stored: dict[tuple[Scope, str], _Stored] = {}
        self._claims: dict[Claim, Held] = {}
        self._ids = count(1)

    def hold(self, claim: Claim, held: Held) -> None:
        """Declare a claim as held until it is released."""
        self._claims[claim] = held

    def release(self, claim: Claim) -> None:
        """End a claim."""
        self._claims.pop(claim, None)

    async def put(
        self, scope: Scope, name: str, kind: str, fields: Sequence[str], sealed: SealedFields
    ) -> CredentialEntry:
        """Store a credential; an existing one gets its next revision."""
        now, known = datetime.now(UTC), self._stored.get((scope, name))
        made = CredentialEntry(
            credential_id=known.entry.credential_id if known else next(self._ids),
            name=name,
            kind=kind,
            revision=known.entry.revision + 1 if known else 1,
            key_id=sealed.key_id,
            fields=tuple(fields),
            created_at=known.entry.created_at if known else now,
            updated_at=now,
        )
        self._stored[scope, name] = _Stored(made, sealed)
        return made

    async def list(self, scope: Scope) -> Sequence[CredentialEntry]:
        """Return the scope's credentials by name."""
        found = [stored.entry for (owner, _), stored in self._stored.items() if owner == scope]
        return sorted(found, key=lambda entry: entry.name)

    async def remove(self, scope: Scope, name: str) -> None:
        """Delete a credential."""
        if self._stored.pop((scope, name), None) is None:
            raise NoCredential(name)

    async def held(self, claim: Claim, name: str) -> Held:
        """Return the declared claim, with its scope's credential of that name."""
        if (held := self._claims.get(claim)) is None:
            raise claim.lost()
        stored = self._stored.get((held.scope, name))
        if stored is None:
            return held
        return replace(held, kind=stored.entry.kind, sealed=stored.sealed)

    async def rows(self) -> Sequence[Row]:
        """Return every credential, sealed."""
        return [
            Row(
                credential_id=stored.entry.credential_id,
                scope=scope,
                name=name,
                revision=stored.entry.revision,
                sealed=stored.sealed,
            )
            for (scope, name), stored in self._stored.items()
        ]

    async def reseal(self, row: Row, sealed: SealedFields) -> bool:
        """Replace the row's `sealed`; False: it was changed or removed concurrently."""
        stored = self._stored.get((row.scope, row.name))
        if stored is None or (stored.entry.revision, stored.sealed.key_id) != (
            row.revision,
            row.sealed.key_id,
        ):
            return False
        entry = replace(stored.entry, key_id=sealed.key_id)
        self._stored[row.scope, row.name] = _Stored(entry, sealed)
        return True
