"""Credentials in memory, with claims that somebody declares: for tests."""

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
class _Kept:
    entry: CredentialEntry
    sealed: SealedFields


class MemoryCredentials:
    """Keeps credentials and claims for as long as it lives; also a vault."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Scope, str], _Kept] = {}
        self._claims: dict[Claim, Held] = {}
        self._ids = count(1)

    def hold(self, claim: Claim, held: Held) -> None:
        """Let a claim hold until it is released."""
        self._claims[claim] = held

    def release(self, claim: Claim) -> None:
        """End a claim."""
        self._claims.pop(claim, None)

    async def put(
        self, scope: Scope, name: str, kind: str, fields: Sequence[str], sealed: SealedFields
    ) -> CredentialEntry:
        """Keep a credential; one of the same name gets its next revision."""
        now, known = datetime.now(UTC), self._kept.get((scope, name))
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
        self._kept[scope, name] = _Kept(made, sealed)
        return made

    async def list(self, scope: Scope) -> Sequence[CredentialEntry]:
        """Return the scope's credentials by name."""
        found = [kept.entry for (whose, _), kept in self._kept.items() if whose == scope]
        return sorted(found, key=lambda entry: entry.name)

    async def remove(self, scope: Scope, name: str) -> None:
        """Forget a credential."""
        if self._kept.pop((scope, name), None) is None:
            raise NoCredential(name)

    async def held(self, claim: Claim, name: str) -> Held:
        """Return what was declared of the claim, with its scope's credential of that name."""
        if (held := self._claims.get(claim)) is None:
            raise claim.lost()
        kept = self._kept.get((held.scope, name))
        if kept is None:
            return held
        return replace(held, kind=kept.entry.kind, sealed=kept.sealed)

    async def rows(self) -> Sequence[Row]:
        """Return every credential, sealed."""
        return [
            Row(
                credential_id=kept.entry.credential_id,
                scope=scope,
                name=name,
                revision=kept.entry.revision,
                sealed=kept.sealed,
            )
            for (scope, name), kept in self._kept.items()
        ]

    async def reseal(self, row: Row, sealed: SealedFields) -> bool:
        """Put `sealed` in the row's place; False: it was changed or removed meanwhile."""
        kept = self._kept.get((row.scope, row.name))
        if kept is None or (kept.entry.revision, kept.sealed.key_id) != (
            row.revision,
            row.sealed.key_id,
        ):
            return False
        entry = replace(kept.entry, key_id=sealed.key_id)
        self._kept[row.scope, row.name] = _Kept(entry, sealed)
        return True
