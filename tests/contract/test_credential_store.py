"""What a store of credentials promises, in memory and in Postgres alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Protocol

import asyncpg
import pytest

from streams.app import Log, credentials_of, open_log
from streams.credential.errors import NoCredential, NotHeld
from streams.credential.keys import new_key, read_keys
from streams.credential.memory import MemoryCredentials
from streams.credential.port import Claim, CredentialStore, Held, Vault
from streams.credential.postgres import PostgresVault
from streams.credential.seal import seal, unseal
from streams.events.model import NewEvent, Root
from streams.payload.port import Scope
from streams.settings import Settings
from tests.support.log.databases import dsn, event

SCOPE, OTHER = Scope("acme", "care"), Scope("acme", "labs")
KEYS = read_keys(new_key(), "test")


class Claims(Protocol):
    """Makes and ends claims on the step `load` of catalog entry 7, version 3."""

    async def claim(self, *, entity: str = "frame", lease_s: int = 60) -> Claim: ...
    async def end(self, claim: Claim) -> None: ...


@dataclass(frozen=True)
class Subject:
    store: CredentialStore
    vault: Vault
    claims: Claims

    async def put(self, scope: Scope, name: str, **fields: str):
        sealed = seal(KEYS, scope, name, fields)
        return await self.store.put(scope, name, "postgres", sorted(fields), sealed)


class MemoryClaims:
    def __init__(self, store: MemoryCredentials) -> None:
        self._store, self._number = store, 0

    async def claim(self, *, entity: str = "frame", lease_s: int = 60) -> Claim:
        self._number += 1
        claim = Claim(
            execution_id=self._number, entity=entity, entity_id=5, attempt=1, worker="w/1"
        )
        if lease_s > 0:
            held = Held(scope=SCOPE, catalog_id=7, version=3, step="load", seconds_left=lease_s)
            self._store.hold(claim, held)
        return claim

    async def end(self, claim: Claim) -> None:
        self._store.release(claim)


class LoggedClaims:
    """Claims as workers make them: by events."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def claim(self, *, entity: str = "frame", lease_s: int = 60) -> Claim:
        execution_id, entity_id = self._log.ids.take(2)
        claim = Claim(
            execution_id=execution_id,
            entity=entity,
            entity_id=entity_id,
            attempt=1,
            worker="w/1",
        )
        meta = {"path": "p", "version": 3}
        first = self._event(claim, "playbook.initialized", meta, catalog_id=7)
        given = "frame.dispatched" if entity == "frame" else "command.issued"
        await self._log.store.append([first, self._event(claim, given, {"attempt": 1})])
        meta = {"attempt": 1, "worker": "w/1", "lease_seconds": lease_s}
        await self._log.store.append([self._event(claim, f"{entity}.claimed", meta)])
        return claim

    async def end(self, claim: Claim) -> None:
        what = "committed" if claim.entity == "frame" else "completed"
        meta = {"attempt": 1, "worker": "w/1"}
        await self._log.store.append([self._event(claim, f"{claim.entity}.{what}", meta)])

    def _event(self, claim: Claim, type: str, meta: dict, **fields) -> NewEvent:
        if type.startswith(("frame.", "command.")):
            meta = {**meta, f"{claim.entity}_id": str(claim.entity_id)}
            fields = {"node_name": "load", "expected_version": None, **fields}
        whose = {"tenant_id": SCOPE.tenant_id, "organization_id": SCOPE.organization_id}
        return event(claim.execution_id, type, meta=meta, payload_ref=None, **whose, **fields)


@pytest.fixture
async def subject(place: Settings | None) -> AsyncIterator[Subject]:
    if place is None:
        memory = MemoryCredentials()
        yield Subject(memory, memory, MemoryClaims(memory))
        return
    settings = place
    async with (
        asyncpg.create_pool(dsn(settings), min_size=1, max_size=2) as pool,
        open_log(settings, role="test", lanes=1) as log,
    ):
        await pool.execute("DELETE FROM noetl.credential")
        yield Subject(credentials_of(log, settings), PostgresVault(pool), LoggedClaims(log))


async def test_what_is_listed_has_no_secret(subject: Subject) -> None:
    await subject.put(SCOPE, "pg", dsn="c4nary", note="x")
    (entry,) = await subject.store.list(SCOPE)
    assert (entry.name, entry.kind, entry.revision, entry.fields) == (
        "pg",
        "postgres",
        1,
        ("dsn", "note"),
    )
    assert entry.key_id == KEYS.current.id
    assert "c4nary" not in repr(entry)


async def test_a_second_of_the_same_name_is_the_next_revision(subject: Subject) -> None:
    first = await subject.put(SCOPE, "pg", dsn="a")
    second = await subject.put(SCOPE, "pg", token="b")
    assert (second.credential_id, second.revision) == (first.credential_id, 2)
    assert second.fields == ("token",)
    assert second.created_at == first.created_at
    assert [one.revision for one in await subject.store.list(SCOPE)] == [2]


async def test_one_name_set_by_many_at_once_gets_a_revision_for_each(subject: Subject) -> None:
    made = await asyncio.gather(*(subject.put(SCOPE, "pg", dsn=str(n)) for n in range(6)))
    assert sorted(one.revision for one in made) == [1, 2, 3, 4, 5, 6]
    assert len({one.credential_id for one in made}) == 1


async def test_scopes_do_not_see_each_other(subject: Subject) -> None:
    await subject.put(SCOPE, "pg", dsn="a")
    assert await subject.store.list(OTHER) == []
    with pytest.raises(NoCredential):
        await subject.store.remove(OTHER, "pg")


async def test_what_is_removed_is_gone_and_can_be_set_again(subject: Subject) -> None:
    first = await subject.put(SCOPE, "pg", dsn="a")
    await subject.store.remove(SCOPE, "pg")
    assert await subject.store.list(SCOPE) == []
    with pytest.raises(NoCredential, match="streams credential set"):
        await subject.store.remove(SCOPE, "pg")
    again = await subject.put(SCOPE, "pg", dsn="a")
    assert again.revision == 1
    assert again.credential_id != first.credential_id


@pytest.mark.parametrize("entity", ["frame", "command"])
async def test_who_holds_a_task_reads_its_scopes_credential(subject: Subject, entity: str) -> None:
    await subject.put(SCOPE, "pg", dsn="c4nary")
    await subject.put(OTHER, "theirs", dsn="other")
    claim = await subject.claims.claim(entity=entity)
    held = await subject.store.held(claim, "pg")
    assert (held.scope, held.catalog_id, held.version, held.step) == (SCOPE, 7, 3, "load")
    assert 0 < held.seconds_left <= 60
    assert held.sealed is not None
    assert unseal(KEYS, SCOPE, "pg", held.sealed) == {"dsn": "c4nary"}
    assert (await subject.store.held(claim, "theirs")).sealed is None
    assert (await subject.store.held(claim, "none")).sealed is None


@pytest.mark.parametrize("change", [{"worker": "w/2"}, {"attempt": 2}, {"entity_id": 99}])
async def test_who_does_not_hold_it_reads_nothing(subject: Subject, change: dict) -> None:
    await subject.put(SCOPE, "pg", dsn="c4nary")
    claim = await subject.claims.claim()
    with pytest.raises(NotHeld, match="claim anew"):
        await subject.store.held(replace(claim, **change), "pg")


async def test_what_has_ended_or_run_out_is_not_held(subject: Subject) -> None:
    await subject.put(SCOPE, "pg", dsn="c4nary")
    claim = await subject.claims.claim()
    await subject.claims.end(claim)
    over = await subject.claims.claim(lease_s=0)
    for one in (claim, over):
        with pytest.raises(NotHeld):
            await subject.store.held(one, "pg")


async def test_a_row_is_sealed_anew_unless_it_was_set_meanwhile(subject: Subject) -> None:
    new = read_keys(new_key(), "new")
    await subject.put(SCOPE, "pg", dsn="a")
    (row,) = await subject.vault.rows()
    assert await subject.vault.reseal(row, seal(new, SCOPE, "pg", {"dsn": "a"}))
    (row,) = await subject.vault.rows()
    assert unseal(new, row.scope, row.name, row.sealed) == {"dsn": "a"}
    await subject.put(SCOPE, "pg", dsn="b")
    assert not await subject.vault.reseal(row, seal(new, SCOPE, "pg", {"dsn": "a"}))
    (row,) = await subject.vault.rows()
    assert unseal(KEYS, row.scope, row.name, row.sealed) == {"dsn": "b"}


@pytest.mark.stack
async def test_the_log_tells_of_it_without_the_secret(database: Settings) -> None:
    async with open_log(database, role="test", lanes=1) as log:
        store = credentials_of(log, database)
        sealed = seal(KEYS, SCOPE, "stored", {"dsn": "c4nary"})
        made = await store.put(SCOPE, "stored", "postgres", ["dsn"], sealed)
        await store.remove(SCOPE, "stored")
        root = Root("credential", made.credential_id)
        events = [one async for one in log.store.read_root(root)]
    assert [one.type for one in events] == ["credential.stored", "credential.removed"]
    assert dict(events[0].meta) == {"name": "stored", "kind": "postgres", "revision": 1}
    assert "c4nary" not in repr(events)
