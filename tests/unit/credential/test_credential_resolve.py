"""Handing out: only to who holds the task, only what its step names, only of its scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from streams.catalog.memory import MemoryPlaybooks
from streams.credential.errors import BadCredential, NoCredential, NotHeld, NotNamed, NotOpened
from streams.credential.keys import keys_from, new_key
from streams.credential.memory import MemoryCredentials
from streams.credential.port import Claim, Held
from streams.credential.rekey import rekey
from streams.credential.resolve import Resolver
from streams.credential.seal import seal
from streams.payload.port import Scope
from streams.playbook.parse import parse

SCOPE = Scope("acme", "care")
KEYS = keys_from(new_key(), None)
CLAIM = Claim(execution_id=1, entity="command", entity_id=2, attempt=1, worker="w/1")
PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {path: p}
credentials:
  - {name: pg_main, as: pg}
  - declared
workload: {which: declared}
workflow:
  - step: start
    tool: {kind: postgres, auth: pg, command: SELECT 1}
    next: ask
  - step: ask
    tool: {kind: http, url: "http://h", auth: {type: bearer, credential: token}}
    next: free
  - step: free
    tool: {kind: postgres, auth: "{{ workload.which }}", command: SELECT 1}
    next: rows
  - step: rows
    loop: {cursor: {kind: postgres, credentialRef: "env:ROWS", query: SELECT 1 AS k, key: k}}
    tool: {kind: noop}
"""


class Outside:
    async def find(self, scope: Scope, name: str) -> Mapping[str, str] | None:
        return {"dsn": f"{scope.tenant_id}/{name}"} if name == "ROWS" else None


@pytest.fixture
async def store() -> MemoryCredentials:
    made = MemoryCredentials()
    for name in ("pg_main", "declared", "token", "secret_of_others"):
        sealed = seal(KEYS(), SCOPE, name, {"dsn": name})
        await made.put(SCOPE, name, "postgres", ["dsn"], sealed)
    return made


def resolver(store: MemoryCredentials) -> Resolver:
    playbooks = MemoryPlaybooks({(7, 1): parse(PLAYBOOK)})
    return Resolver(store, KEYS, playbooks, {"env": Outside()})


def held(step: str) -> Held:
    return Held(scope=SCOPE, catalog_id=7, version=1, step=step, seconds_left=50.0)


@pytest.mark.parametrize(
    ("step", "name"),
    [("start", "pg_main"), ("ask", "token"), ("free", "declared"), ("free", "pg_main")],
)
async def test_a_step_gets_what_it_names(store, step, name):
    store.hold(CLAIM, held(step))
    secret = await resolver(store).resolve(CLAIM, name)
    assert secret.fields == {"dsn": name}
    assert secret.seconds_left == 50.0
    assert name not in repr(secret)


@pytest.mark.parametrize(
    ("step", "name"),
    [
        ("start", "token"),
        ("start", "declared"),
        ("ask", "pg_main"),
        ("free", "secret_of_others"),
        ("nowhere", "pg_main"),
        ("start", "env:ROWS"),
    ],
)
async def test_a_step_does_not_get_what_it_does_not_name(store, step, name):
    store.hold(CLAIM, held(step))
    with pytest.raises(NotNamed, match=name):
        await resolver(store).resolve(CLAIM, name)


async def test_only_the_holder_of_the_attempt_is_answered(store):
    store.hold(CLAIM, held("start"))
    for other in (replace(CLAIM, worker="w/2"), replace(CLAIM, attempt=2)):
        with pytest.raises(NotHeld):
            await resolver(store).resolve(other, "pg_main")
    store.release(CLAIM)
    with pytest.raises(NotHeld):
        await resolver(store).resolve(CLAIM, "pg_main")


async def test_another_tenants_credential_is_not_found(store):
    store.hold(CLAIM, replace(held("start"), scope=Scope("other", "care")))
    with pytest.raises(NoCredential, match="pg_main"):
        await resolver(store).resolve(CLAIM, "pg_main")


async def test_a_provider_is_asked_by_the_prefix(store):
    store.hold(CLAIM, held("rows"))
    assert (await resolver(store).resolve(CLAIM, "env:ROWS")).fields == {"dsn": "acme/ROWS"}
    without = Resolver(store, KEYS, MemoryPlaybooks({(7, 1): parse(PLAYBOOK)}), {})
    with pytest.raises(BadCredential, match="no provider 'env'"):
        await without.resolve(CLAIM, "env:ROWS")


async def test_after_a_rotation_the_old_key_is_not_needed(store):
    old = KEYS().keys[0]
    both = replace(KEYS(), keys=(keys_from(new_key(), None)().current, old))
    assert (await rekey(store, both, dry_run=True)).resealed == 4
    assert {row.sealed.key_id for row in await store.rows()} == {old.id}
    done = await rekey(store, both)
    assert (done.resealed, done.current, done.changed, done.unused) == (4, 0, 0, (old.id,))
    assert (await rekey(store, both)).current == 4
    store.hold(CLAIM, held("start"))
    with pytest.raises(NotOpened):
        await resolver(store).resolve(CLAIM, "pg_main")


async def test_a_rotation_without_the_old_key_changes_nothing(store):
    before = list(await store.rows())
    with pytest.raises(NotOpened):
        await rekey(store, keys_from(new_key(), None)())
    assert list(await store.rows()) == before


async def test_a_new_key_is_kept_when_all_is_opened_and_before_it_seals(store):
    old, new = KEYS().current, keys_from(new_key(), None)().current
    both, kept = replace(KEYS(), keys=(new, old)), []

    def save_key() -> None:
        kept.append({one.sealed.key_id for one in store._stored.values()})

    await rekey(store, both, dry_run=True, save_key=save_key)
    with pytest.raises(NotOpened):
        await rekey(store, replace(KEYS(), keys=(new,)), save_key=save_key)
    assert kept == []
    await rekey(store, both, save_key=save_key)
    assert kept == [{old.id}]
