"""Credentials in Postgres: the row and its event, in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime

import asyncpg

from streams.credential.errors import NoCredential
from streams.credential.port import Claim, CredentialEntry, Held, Row
from streams.credential.seal import SealedFields
from streams.events.catalogue import catalogue
from streams.events.codec import Codec
from streams.events.model import NewEvent, Root
from streams.events.seal import seal as seal_event
from streams.events.types import CredentialRemoved, CredentialStored
from streams.log.append_connection import APPEND
from streams.log.errors import LogUnavailable
from streams.log.receipts import receipt
from streams.log.rows import new_event_row
from streams.payload.port import Scope
from streams.postgres import queries, translated

WAIT_S = 30.0
query = queries("streams.credential")


class PostgresCredentials:
    """The table `noetl.credential`, through the login that appends."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        *,
        codec: Codec,
        take_ids: Callable[[int], Sequence[int]],
        producer: str,
        now: Callable[[], datetime],
    ) -> None:
        self._pool, self._codec, self._take_ids = pool, codec, take_ids
        self._producer, self._now = producer, now

    async def put(
        self, scope: Scope, name: str, kind: str, fields: Sequence[str], sealed: SealedFields
    ) -> CredentialEntry:
        """Store a credential; an existing one gets its next revision."""
        async with self._locked(scope, name) as connection:
            key = (scope.tenant_id, scope.organization_id, name)
            known = await connection.fetchrow(query("known"), *key)
            credential_id = self._take_ids(1)[0] if known is None else known["credential_id"]
            revision = 1 if known is None else known["revision"] + 1
            row = await connection.fetchrow(
                query("insert" if known is None else "update"),
                credential_id,
                *key,
                kind,
                revision,
                list(fields),
                sealed.key_id,
                sealed.nonce,
                sealed.ciphertext,
            )
            event = CredentialStored(name=name, kind=kind, revision=revision)
            await self._append(connection, scope, credential_id, event, str(revision))
            return _entry(row)

    async def list(self, scope: Scope) -> Sequence[CredentialEntry]:
        """Return the scope's credentials by name."""
        rows = await self._fetch(query("list"), scope.tenant_id, scope.organization_id)
        return [_entry(row) for row in rows]

    async def remove(self, scope: Scope, name: str) -> None:
        """Delete a credential."""
        async with self._locked(scope, name) as connection:
            key = (scope.tenant_id, scope.organization_id, name)
            known = await connection.fetchrow(query("known"), *key)
            if known is None:
                raise NoCredential(name)
            await connection.execute(query("remove"), known["credential_id"])
            event = CredentialRemoved(name=name)
            await self._append(connection, scope, known["credential_id"], event, "1")

    async def held(self, claim: Claim, name: str) -> Held:
        """Return the log's state of the claim, with its scope's credential of that name."""
        rows = await self._fetch(
            query("held"), claim.execution_id, claim.stream_id, claim.attempt, claim.worker, name
        )
        if not rows:
            raise claim.lost()
        row = rows[0]
        return Held(
            scope=Scope(row["tenant_id"], row["organization_id"]),
            catalog_id=row["catalog_id"] or 0,
            version=row["version"],
            step=row["step"] or "",
            seconds_left=row["seconds_left"],
            kind=row["kind"],
            sealed=_sealed(row) if row["key_id"] is not None else None,
        )

    async def of_subscription(self, catalog_id: int, name: str) -> SealedFields | None:
        """Return the credential that a subscription's newest version names; None: none."""
        rows = await self._fetch(query("of_subscription"), catalog_id, name)
        return _sealed(rows[0]) if rows else None

    async def _append(
        self,
        connection: asyncpg.Connection,
        scope: Scope,
        credential_id: int,
        event: CredentialStored | CredentialRemoved,
        key: str,
    ) -> None:
        new = NewEvent(
            root=Root("credential", credential_id),
            tenant_id=scope.tenant_id,
            organization_id=scope.organization_id,
            idempotency_key=f"{event.TYPE}/{key}",
            event_time=self._now(),
            causation_id=await connection.fetchval(query("last_event"), credential_id),
            **event.columns(),
        )
        sealed = seal_event(
            new,
            event_id=self._take_ids(1)[0],
            producer=self._producer,
            codec=self._codec,
            catalogue=catalogue(),
        )
        receipt([sealed], await connection.fetch(APPEND, [new_event_row(sealed, 0)]))

    @asynccontextmanager
    async def _locked(self, scope: Scope, name: str) -> AsyncIterator[asyncpg.Connection]:
        """Open a transaction that locks the name."""
        key = f"{scope.tenant_id}/{scope.organization_id}/{name}"
        with _translated():
            async with (
                self._pool.acquire(timeout=WAIT_S) as connection,
                connection.transaction(),
            ):
                await connection.execute(query("alone"), key, timeout=WAIT_S)
                yield connection

    async def _fetch(self, sql: str, *arguments: object) -> Sequence[asyncpg.Record]:
        with _translated():
            found: Sequence[asyncpg.Record] = await self._pool.fetch(sql, *arguments)
            return found


class PostgresVault:
    """The same table, as its owner: for re-encryption."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def rows(self) -> Sequence[Row]:
        """Return every credential, encrypted."""
        with _translated():
            found = await self._pool.fetch(query("rows"))
        return [
            Row(
                credential_id=row["credential_id"],
                scope=Scope(row["tenant_id"], row["organization_id"]),
                name=row["name"],
                revision=row["revision"],
                sealed=_sealed(row),
            )
            for row in found
        ]

    async def reseal(self, row: Row, sealed: SealedFields) -> bool:
        """Replace the row's `sealed`; False: it was changed or removed concurrently."""
        with _translated():
            done = await self._pool.execute(
                query("reseal"),
                row.credential_id,
                row.revision,
                row.sealed.key_id,
                sealed.key_id,
                sealed.nonce,
                sealed.ciphertext,
            )
        return bool(done == "UPDATE 1")


def _sealed(row: asyncpg.Record) -> SealedFields:
    return SealedFields(row["key_id"], row["nonce"], row["ciphertext"])


def _entry(row: asyncpg.Record) -> CredentialEntry:
    return CredentialEntry(**{**row, "fields": tuple(row["fields"])})


def _translated() -> AbstractContextManager[None]:
    return translated(LogUnavailable, "use the credentials", with_values=False)
