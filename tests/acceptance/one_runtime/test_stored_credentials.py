"""Stored credentials on a whole runtime: used by playbooks, and written nowhere."""

from __future__ import annotations

import asyncio
import stat
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import aiohttp
import asyncpg
import orjson
import pytest

from streams.credential.keys import read_keys
from streams.data_folder import layout_of
from streams.local.state import find_stack
from tests.support.secrets.canaries import (
    KEY,
    MARKER,
    PASSWORD,
    RIGHT,
    TOKEN,
    WRONG,
    echoing,
    leaks,
)
from tests.support.secrets.written import shared, written
from tests.support.servers.runtime import Runtime, playbook

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Stage:
    runtime: Runtime
    echo: str
    """A server that answers with what it was sent, the login included."""
    user: str
    table: str

    async def cli(self, *words: str, stdin: str = "", succeeds: bool = True) -> Any:
        """Run `streams credential`; return what it tells."""
        command = (sys.executable, "-m", "streams", "credential", *words)
        where = ("--data", str(self.runtime.data), "--json")
        running = await asyncio.create_subprocess_exec(
            *command,
            *where,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await running.communicate(stdin.encode())
        assert leaks(out + err) == []
        assert (running.returncode == 0) is succeeds, err.decode()
        return orjson.loads(out) if succeeds else err.decode()


@pytest.fixture(scope="module")
async def stage(runtime: Runtime) -> AsyncIterator[Stage]:
    async with echoing() as echo:
        user, table = f"canary_{uuid4().hex}", f"kept_{uuid4().hex}"
        await _let_in(runtime, user, table)
        made = Stage(runtime, echo, user, table)
        await _store_credentials(made)
        yield made


async def _let_in(runtime: Runtime, user: str, table: str) -> None:
    """Make a database user whose password is the canary, and tables it may write."""
    async with _owner(runtime, "author") as owner:
        literal = RIGHT.replace("'", "''")
        await owner.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{literal}'")
        # Whoever saved here first owns the fences, which every user of the database needs.
        await owner.execute(f"GRANT noetl_author TO {user}")
        await owner.execute(f"GRANT ALL ON SCHEMA public TO {user}")
        for name in (table, f"{table}_sunk"):
            await owner.execute(f"CREATE TABLE {name} (said text)")
            await owner.execute(f"ALTER TABLE {name} OWNER TO {user}")
            await owner.execute(f"GRANT SELECT ON {name} TO noetl_author")


@asynccontextmanager
async def _owner(runtime: Runtime, database: str) -> AsyncIterator[asyncpg.Connection]:
    state = find_stack(runtime.data)
    assert state is not None
    owner = await asyncpg.connect(state.postgres.dsn(state.postgres.superuser, database=database))
    try:
        yield owner
    finally:
        await owner.close()


async def _store_credentials(stage: Stage) -> None:
    address = urlsplit(stage.runtime.settings.credentials["pg_local"]["dsn"].get_secret_value())
    place, store = f"{address.hostname}:{address.port}", stage.runtime.settings.payload_store
    right, wrong = (f"{stage.user}:{quote(one, safe='')}" for one in (RIGHT, WRONG))
    parts = {"host": address.hostname, "port": address.port, "user": stage.user}
    fields = {
        "canary_pg": {"dsn": f"postgresql://{right}@{place}/author"},
        "canary_undeclared": {"dsn": f"postgresql://{right}@{place}/author"},
        "canary_parts": {**parts, "password": RIGHT, "database": "author"},
        "canary_wrong": {"dsn": f"postgresql://{wrong}@{place}/author"},
        "canary_closed": {"dsn": f"postgresql://{wrong}@127.0.0.1:1/author"},
        "canary_broken": {"dsn": f"postgresql://{wrong}@127.0.0.1:no{WRONG}/author"},
        "canary_bearer": {"token": TOKEN},
        "canary_basic": {"username": "ada", "password": PASSWORD},
        "canary_key": {"header": "X-Key", "value": KEY},
        "canary_word": {"username": "demo", "password": "demo", "tls": "true"},
        "canary_kv": {"url": f"redis://:{WRONG}@127.0.0.1:1/0"},
        "canary_s3": {
            "endpoint": str(store.connection.endpoint),
            "bucket": store.connection.bucket,
            "access_key": "nobody",
            "secret_key": WRONG,
        },
    }
    given = fields.pop("canary_pg")
    report = await stage.cli(
        "set", "canary_pg", "--type", "postgres", stdin=orjson.dumps(given).decode()
    )
    assert report["fields"] == ["dsn"]
    async with aiohttp.ClientSession(stage.runtime.api()) as session:
        for name, given in fields.items():
            body = {"kind": "test", "fields": given}
            async with session.put(f"/api/credentials/{name}", json=body) as answer:
                assert answer.status in (200, 201)
                assert leaks(await answer.text()) == []
        bad = {"kind": "test", "fields": {"token": [TOKEN]}}
        async with session.put("/api/credentials/canary_bad", json=bad) as answer:
            assert (answer.status, leaks(await answer.text())) == (422, [])
        async with session.put("/api/credentials/canary_bad", data=f"{{{TOKEN}") as answer:
            assert (answer.status, leaks(await answer.text())) == (422, [])


def insert(table: str, auth: str, said: str = "{{ iter.n }}") -> dict[str, Any]:
    command = f"INSERT INTO {table} (said) VALUES (:said)"
    return {"kind": "postgres", "auth": auth, "command": command, "params": {"said": said}}


def ask(url: str, auth: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "http", "url": url, "auth": auth, "timeout": 10, **more}


WORDS = '{"active":"true","who":"demo user","demo":1}'


def uses_all(stage: Stage) -> dict[str, Any]:
    """Return a playbook that ends well: saves, answers that quote the login, and a large one."""
    loop = {
        "step": "save",
        "loop": {
            "in": "{{ range(40) | list }}",
            "iterator": "n",
            "spec": {"mode": "parallel"},
            "frame_policy": {"size": 10, "row_concurrency": 4},
        },
        "tool": [
            {"asked": ask(f"{stage.echo}/?row={{{{ iter.n }}}}", "canary_bearer")},
            {"kept": insert(stage.table, "pg")},
            {"answers": {"kind": "noop", "data": {"all": "{{ asked }}"}}},
        ],
    }
    select = f"SELECT repeat(said || ' {MARKER}', 3000) AS large FROM {stage.table}"
    cursor = {"kind": "postgres", "auth": "pg", "query": f"SELECT said FROM {stage.table}"}
    sink = {"storage": "postgres", "auth": "canary_parts", "table": f"{stage.table}_sunk"}
    put = {"kind": "artifact", "action": "put", "url": f"{stage.echo}/?as=plain"}
    steps = [
        loop,
        {
            "step": "read",
            "tool": {"kind": "postgres", "credentialRef": "canary_pg", "command": select},
        },
        {
            "step": "basic",
            "tool": ask(stage.echo, {"type": "basic", "credential": "canary_basic"}),
        },
        {"step": "key", "tool": ask(f"{stage.echo}/?as=text", "canary_key")},
        {"step": "word", "tool": ask(stage.echo, "canary_word", body=WORDS)},
        {"step": "put", "tool": {**put, "auth": "canary_key"}},
        {
            "step": "again",
            "loop": {"cursor": {**cursor, "key": "said"}, "iterator": "row"},
            "tool": [{"seen": {"kind": "noop", "data": {"said": "{{ iter.row.said }}"}}}],
            "sink": {**sink, "data": {"said": MARKER}},
        },
    ]
    for step, following in pairwise(steps):
        step["next"] = following["step"]
    made = playbook(*steps)
    return {**made, "credentials": [{"name": "canary_pg", "as": "pg"}], "workload": {"m": MARKER}}


def fails(stage: Stage) -> dict[str, dict[str, Any]]:
    """Return steps that fail in every way that could quote a secret."""
    select = {"kind": "postgres", "command": "SELECT 1"}
    cursor = {"kind": "postgres", "auth": "canary_wrong", "query": "SELECT 1 AS k", "key": "k"}
    put = {"kind": "artifact", "action": "put", "url": f"{stage.echo}/?status=401"}
    tasks: dict[str, dict[str, Any]] = {
        "login": {**select, "auth": "canary_wrong"},
        "broken": {**select, "auth": "canary_broken"},
        "sql": {"kind": "postgres", "auth": "canary_pg", "command": "SELECT no_such_column"},
        "refused": ask(f"{stage.echo}/?status=401", "canary_bearer"),
        "slashed": ask(f"{stage.echo}/?status=401&as=slashed", "canary_bearer"),
        "escaped": ask(f"{stage.echo}/?status=401", "canary_basic"),
        "shortened": ask(f"{stage.echo}/?status=401&before=150", "canary_key"),
        "cut": ask(f"{stage.echo}/?status=401&before=195&as=text", "canary_key"),
        "nobody": ask("http://127.0.0.1:1/", "canary_basic"),
        "misfit": ask(stage.echo, {"type": "header", "credential": "canary_bearer"}),
        "undeclared": {**select, "auth": "{{ 'canary_' ~ 'undeclared' }}"},
        "unknown": {**select, "auth": "canary_nowhere"},
        "put": {**put, "auth": "canary_key"},
    }
    steps: dict[str, dict[str, Any]] = {name: {"tool": task} for name, task in tasks.items()}
    for name, storage in (("s3", "s3"), ("kv", "kv")):
        sink = {"storage": storage, "auth": f"canary_{name}", "data": {"key": "a", "value": 1}}
        steps[name] = {"tool": {"kind": "noop"}, "sink": sink}
    steps["cursor"] = {"loop": {"cursor": cursor, "iterator": "row"}, "tool": {"kind": "noop"}}
    return steps


async def test_a_credential_that_the_settings_override_is_reported(stage: Stage) -> None:
    words = ("set", "pg_local", "--type", "postgres", "--dry-run")
    assert (await stage.cli(*words, stdin=RIGHT))["overridden_by"] == "settings"
    url = f"{stage.runtime.api()}/api/credentials/pg_local"
    body = {"kind": "postgres", "fields": {"dsn": "postgresql://127.0.0.1/x"}}
    async with aiohttp.ClientSession() as session, session.put(url, json=body) as response:
        assert (await response.json())["overridden_by"] == "settings"


async def test_the_keys_of_the_stack_are_for_their_owner_only(stage: Stage) -> None:
    layout = layout_of(stage.runtime.data)
    for path in (layout.credential_key, layout.worker_token):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_what_is_stored_is_used_and_written_nowhere(stage: Stage) -> None:
    runtime = stage.runtime
    closed = await runtime.start(_rows(stage, "canary_closed"))
    ended = await runtime.run(uses_all(stage))
    assert (ended.status, ended.error) == ("COMPLETED", None)
    memory = shared(runtime.settings)
    rows = await runtime.author(
        f"SELECT (SELECT count(*) FROM {stage.table}), (SELECT count(*) FROM {stage.table}_sunk)"
    )
    assert tuple(rows[0]) == (40, 1)
    await _words_are_kept(stage, ended.execution_id)

    failing = {
        name: await runtime.start(playbook({"step": "start", **step}))
        for name, step in fails(stage).items()
    }
    failing["rows"] = await runtime.start(_rows(stage, "canary_wrong"))
    errors = {}
    for name, execution_id in failing.items():
        single = await runtime.finish(execution_id)
        assert single.status == "FAILED", name
        errors[name] = single.error or ""
    assert "password authentication failed" in errors["login"]
    assert "no_such_column" in errors["sql"]
    assert "does not name" in errors["undeclared"]
    assert "streams credential set" in errors["unknown"]
    for name in ("refused", "slashed", "escaped", "shortened", "cut"):
        assert "401" in errors[name], name
        assert "**" in errors[name], name
    await runtime.until(FAILED, closed)  # its database is asked until the lease would end
    await _cancel(stage, closed)

    await _search({"memory": memory, **await written(runtime, closed)})


async def _words_are_kept(stage: Stage, execution_id: int) -> None:
    """Assert that words which are also in a credential are in the data as they were sent."""
    (done,) = (
        event
        for event in await stage.runtime.events(execution_id, "command.completed")
        if event.node_name == "word"
    )
    result: Any = done.result
    assert result["data"]["body"] == WORDS
    assert result["data"]["headers"]["Authorization"] == "Basic ***"


FAILED = (
    "SELECT EXISTS (SELECT FROM noetl.event WHERE root_id = $1 AND event_type = 'frame.failed')"
)


def _rows(stage: Stage, auth: str) -> dict[str, Any]:
    """Return a playbook that saves two rows with this credential."""
    loop = {"in": [1, 2], "iterator": "n", "frame_policy": {"size": 2}}
    return playbook({"step": "save", "loop": loop, "tool": [{"kept": insert(stage.table, auth)}]})


async def _cancel(stage: Stage, execution_id: int) -> None:
    async with (
        aiohttp.ClientSession(stage.runtime.api()) as session,
        session.post(f"/api/executions/{execution_id}/cancel") as answer,
    ):
        assert answer.status == 200


async def test_keys_can_be_changed_while_the_runtime_goes_on(stage: Stage) -> None:
    key_file = layout_of(stage.runtime.data).credential_key
    before = read_keys(key_file.read_text(), "the file").current.id
    stored = len((await stage.cli("list"))["credentials"])
    async with _tampered(stage.runtime):
        keys_before = key_file.read_bytes()
        assert "canary_basic" in await stage.cli("rekey", "--new-key", succeeds=False)
        assert key_file.read_bytes() == keys_before
    done = await stage.cli("rekey", "--new-key")
    assert (done["unused"], done["resealed"]) == ([before], stored)
    key_file.write_text(key_file.read_text().splitlines()[0])
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    read = {"kind": "postgres", "auth": "canary_pg", "command": "SELECT 1 AS one"}
    ended = await stage.runtime.run(playbook({"step": "start", "tool": read}))
    assert (ended.status, ended.error) == ("COMPLETED", None)


@asynccontextmanager
async def _tampered(runtime: Runtime) -> AsyncIterator[None]:
    """Let one row be such that no key opens it."""
    change = "UPDATE noetl.credential SET nonce = $2 WHERE name = 'canary_basic' AND nonce = $1"
    database = runtime.settings.event_store.canonical_connection.dsn("owner")
    owner = await asyncpg.connect(database)
    try:
        nonce = await owner.fetchval(
            "SELECT nonce FROM noetl.credential WHERE name = 'canary_basic'"
        )
        await owner.execute(change, nonce, bytes(len(nonce)))
        yield
        await owner.execute(change, bytes(len(nonce)), nonce)
    finally:
        await owner.close()


async def test_a_removed_credential_is_gone(stage: Stage) -> None:
    await stage.cli("rm", "canary_undeclared")
    names = {one["name"] for one in (await stage.cli("list"))["credentials"]}
    assert "canary_undeclared" not in names
    assert "canary_pg" in names


async def _search(places: Mapping[str, Sequence[tuple[str, bytes]]]) -> None:
    """Look through everything that was written, for the secrets and for the marker."""
    for place, texts in places.items():
        assert any(MARKER.encode() in text for _, text in texts), f"{place}: the search is blind"
        assert [(where, found) for where, text in texts if (found := leaks(text))] == [], place
    for place in ("schema", "topics", "answers"):  # what servers gave back was there to be hidden
        assert any(b"Bearer ***" in text for _, text in places[place]), place
