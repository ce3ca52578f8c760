"""What is kept of a credential, and what keeping and providing secrets needs from outside."""

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
    """A credential as people see it: everything but its secret."""

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
    """Who asks: a worker, and the attempt that it says it holds."""

    execution_id: int
    entity: Literal["frame", "command"]
    entity_id: int
    attempt: int
    worker: str

    @property
    def stream_id(self) -> str:
        """The stream in the log that says who holds it."""
        return f"execution/{self.execution_id}/{self.entity}/{self.entity_id}"

    def lost(self) -> NotHeld:
        """Return the error that says it does not hold."""
        what = f"{self.entity} {self.entity_id}, attempt {self.attempt}"
        return NotHeld(f"{what}, is not {self.worker}'s now; drop the work and claim anew")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the log says of a claim that holds now, with the sealed credential if there is one."""

    scope: Scope
    catalog_id: int
    version: int
    step: str
    seconds_left: float
    kind: str | None = None
    sealed: SealedFields | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A credential opened for one claim."""

    kind: str
    fields: Mapping[str, str] = field(repr=False)
    seconds_left: float
    """How long the claim's lease lasts, and so how long this may be kept."""


class CredentialStore(Protocol):
    """Keeps sealed credentials. Nothing lists what is sealed; one is read by a live claim only.

    Every method raises Unavailable when the store cannot be reached.
    """

    async def put(
        self, scope: Scope, name: str, kind: str, fields: Sequence[str], sealed: SealedFields
    ) -> CredentialEntry:
        """Keep a credential; one of the same name gets its next revision."""
        ...

    async def list(self, scope: Scope) -> Sequence[CredentialEntry]:
        """Return the scope's credentials by name."""
        ...

    async def remove(self, scope: Scope, name: str) -> None:
        """Forget a credential.

        Raises:
            NoCredential: there is none.
        """
        ...

    async def held(self, claim: Claim, name: str) -> Held:
        """Return what the log says of the claim, with its scope's credential of that name.

        Raises:
            NotHeld: the worker does not hold this attempt now, or the execution has ended.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A stored credential with whose it is and what is sealed, for sealing it anew."""

    credential_id: int
    scope: Scope
    name: str
    revision: int
    sealed: SealedFields


class Vault(Protocol):
    """The whole store, for whoever changes keys; no role of the runtime may open it."""

    async def rows(self) -> Sequence[Row]:
        """Return every credential, sealed."""
        ...

    async def reseal(self, row: Row, sealed: SealedFields) -> bool:
        """Put `sealed` in the row's place; False: it was changed or removed meanwhile."""
        ...


class Provider(Protocol):
    """Finds secrets that somebody else keeps, for names like `env:PG_MAIN`."""

    async def find(self, scope: Scope, name: str) -> Mapping[str, str] | None:
        """Return the fields of what `name`, without its prefix, stands for; None: nothing.

        Raises:
            BadCredential: the name is not allowed, or what is found cannot be used.
            ProviderUnavailable: the provider does not answer.
        """
        ...
