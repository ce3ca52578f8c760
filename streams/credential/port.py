"""Values and ports of credentials: store, vault, secret providers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from streams.credential.errors import NotHeld
from streams.credential.seal import SealedFields
from streams.payload.port import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialEntry:
    """A credential without its secret."""

    credential_id: int
    name: str
    kind: str
    revision: int
    key_id: str
    fields: tuple[str, ...]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A worker, and the attempt that it claims to hold."""

    execution_id: int
    entity: Literal["frame", "command"]
    entity_id: int
    attempt: int
    worker: str

    @property
    def stream_id(self) -> str:
        """The stream in the log that records its holder."""
        return f"execution/{self.execution_id}/{self.entity}/{self.entity_id}"

    def lost(self) -> NotHeld:
        """Return the error for a claim that is not held."""
        what = f"{self.entity} {self.entity_id}, attempt {self.attempt}"
        return NotHeld(f"{what}, is not {self.worker}'s now; drop the work and claim anew")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The log's state of a claim that is held now, with the encrypted credential if it exists."""

    scope: Scope
    catalog_id: int
    version: int
    step: str
    seconds_left: float
    kind: str | None = None
    sealed: SealedFields | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A credential decrypted for one claim."""

    kind: str
    fields: Mapping[str, str] = field(repr=False)
    seconds_left: float
    """Remaining lease of the claim: how long this may be cached."""


class CredentialStore(Protocol):
    """Stores encrypted credentials; they are readable only through a claim that is held.

    Every method raises Unavailable when the store cannot be reached.
    """

    async def put(
        self, scope: Scope, name: str, kind: str, fields: Sequence[str], sealed: SealedFields
    ) -> CredentialEntry:
        """Store a credential; an existing one gets its next revision."""
        ...

    async def list(self, scope: Scope) -> Sequence[CredentialEntry]:
        """Return the scope's credentials by name."""
        ...

    async def remove(self, scope: Scope, name: str) -> None:
        """Delete a credential.

        Raises:
            NoCredential: there is none.
        """
        ...

    async def held(self, claim: Claim, name: str) -> Held:
        """Return the log's state of the claim, with its scope's credential of that name.

        Raises:
            NotHeld: the worker does not hold this attempt now, or the execution has ended.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A stored credential with its scope and ciphertext, for re-encryption."""

    credential_id: int
    scope: Scope
    name: str
    revision: int
    sealed: SealedFields


class Vault(Protocol):
    """All stored credentials, for changing keys; no runtime role may open it."""

    async def rows(self) -> Sequence[Row]:
        """Return every credential, encrypted."""
        ...

    async def reseal(self, row: Row, sealed: SealedFields) -> bool:
        """Replace the row's `sealed`; False: it was changed or removed concurrently."""
        ...


class Provider(Protocol):
    """Looks up secrets outside the store, for names like `env:PG_MAIN`."""

    async def find(self, scope: Scope, name: str) -> Mapping[str, str] | None:
        """Return the fields of `name`, given without its prefix; None: not found.

        Raises:
            BadCredential: the name is not allowed, or the secret is invalid.
            ProviderUnavailable: the provider does not respond.
        """
        ...
