"""Stored credentials on a whole runtime: used by playbooks, and written nowhere."""

from __future__ import annotations

import asyncio
import stat
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import aiohttp
import asyncpg
import orjson
import pytest
from aiohttp import web

from streams.credential.keys import read_keys
from streams.local.layout import layout_of
from streams.local.state import find_stack
from tests.runtime import Runtime, playbook
from tests.written import written

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

RIGHT, WRONG, TOKEN = (f"c4nary-{what}-{uuid4().hex}" for what in ("right", "wrong", "token"))
CANARIES = (RIGHT, WRONG, TOKEN)
MARKER = f"m4rker-{uuid4().hex}"
"""No secret: it must be found wherever secrets are looked for, or the search is blind."""


@dataclass(frozen=True)
class Stage:
    runtime: Runtime
    echo: str
    """A server that answers with what it was sent, the login included."""
    user: str
    table: str

    async def cli(self, *words: str, stdin: str = "") -> Any:
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
        assert not any(one.encode() in out + err for one in CANARIES)
        assert running.returncode == 0, err.decode()
        return orjson.loads(out)


@pytest.fixture(scope="module")
async def stage(runtime: Runtime) -> AsyncIterator[Stage]:
    async with echoing() as echo:
        user, table = f"canary_{uuid4().hex}", f"kept_{uuid4().hex}"
        await _let_in(runtime, user, table)
        made = Stage(runtime, echo, user, table)
        await _store_credentials(made)
        yield made


class echoing:  # noqa: N801 - it is used as a function
    """Answers 200, or what `status` asks for, with the headers and the body it was sent."""

    async def __aenter__(self) -> str:
        async def answer(request: web.Request) -> web.Response:
            sent = {"headers": dict(request.headers), "marker": MARKER}
            login = request.headers.get("Authorization", "none")
            status = int(request.query.get("status", "200"))
            return web.json_response(sent, status=status, headers={"X-Login": login})

        app = web.Application()
        app.router.add_route("*", "/", answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


async def _let_in(runtime: Runtime, user: str, table: str) -> None:
    """Make a database user whose password is the canary, and a table it may write."""
    state = find_stack(runtime.data)
    assert state is not None
    owner = await asyncpg.connect(state.postgres.dsn(state.postgres.superuser, database="author"))
    try:
        await owner.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{RIGHT}'")
        # Whoever saved here first owns the fences, which every user of the database needs.
        await owner.execute(f"GRANT noetl_author TO {user}")
        await owner.execute(f"GRANT ALL ON SCHEMA public TO {user}")
        await owner.execute(f"CREATE TABLE {table} (said text)")
        await owner.execute(f"ALTER TABLE {table} OWNER TO {user}")
        await owner.execute(f"GRANT SELECT ON {table} TO noetl_author")
    finally:
        await owner.close()


async def _store_credentials(stage: Stage) -> None:
    address = urlsplit(stage.runtime.settings.credentials["pg_local"]["dsn"].get_secret_value())
    where = f"{address.hostname}:{address.port}/author"
    fields = {
        "canary_pg": {"dsn": f"postgresql://{stage.user}:{RIGHT}@{where}"},
        "canary_undeclared": {"dsn": f"postgresql://{stage.user}:{RIGHT}@{where}"},
        "canary_wrong": {"dsn": f"postgresql://{stage.user}:{WRONG}@{where}"},
        "canary_closed": {"dsn": f"postgresql://{stage.user}:{WRONG}@127.0.0.1:1/author"},
        "canary_broken": {"dsn": f"postgresql://{stage.user}:{WRONG}@127.0.0.1:no{WRONG}/author"},
        "canary_bearer": {"token": TOKEN},
        "canary_basic": {"username": "ada", "password": TOKEN},
    }
    given = fields.pop("canary_pg")
    told = await stage.cli(
        "set", "canary_pg", "--type", "postgres", stdin=orjson.dumps(given).decode()
    )
    assert told["fields"] == ["dsn"]
    async with aiohttp.ClientSession(stage.runtime.api()) as session:
        for name, given in fields.items():
            body = {"kind": "test", "fields": given}
            async with session.put(f"/api/credentials/{name}", json=body) as answer:
                assert answer.status == 201
                text = await answer.text()
                assert not any(one in text for one in CANARIES)


def insert(table: str, auth: str, said: str = "{{ iter.n }}") -> dict[str, Any]:
    command = f"INSERT INTO {table} (said) VALUES (:said)"
    return {"kind": "postgres", "auth": auth, "command": command, "params": {"said": said}}


def ask(url: str, auth: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "http", "url": url, "auth": auth, "timeout": 10, **more}


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
            {"told": {"kind": "noop", "args": {"all": "{{ asked }}"}}},
        ],
        "next": "read",
    }
    select = f"SELECT repeat(said || ' {MARKER}', 3000) AS large FROM {stage.table}"
    read = {
        "step": "read",
        "tool": {"kind": "postgres", "credentialRef": "canary_pg", "command": select},
        "next": "basic",
    }
    basic = {
        "step": "basic",
        "tool": ask(stage.echo, {"type": "basic", "credential": "canary_basic"}),
    }
    made = playbook(loop, read, basic)
    return {**made, "credentials": [{"name": "canary_pg", "as": "pg"}], "workload": {"m": MARKER}}


def fails(stage: Stage) -> dict[str, dict[str, Any]]:
    """Return tasks that fail in every way that could quote a secret."""
    command = "SELECT 1"
    return {
        "login": {"kind": "postgres", "auth": "canary_wrong", "command": command},
        "broken": {"kind": "postgres", "auth": "canary_broken", "command": command},
        "sql": {"kind": "postgres", "auth": "canary_pg", "command": "SELECT no_such_column"},
        "refused": ask(f"{stage.echo}/?status=401", "canary_bearer"),
        "nobody": ask("http://127.0.0.1:1/", "canary_basic"),
        "misfit": ask(stage.echo, {"type": "header", "credential": "canary_bearer"}),
        "undeclared": {
            "kind": "postgres",
            "auth": "{{ 'canary_' ~ 'undeclared' }}",
            "command": command,
        },
        "unknown": {"kind": "postgres", "auth": "canary_nowhere", "command": command},
    }


async def test_the_keys_of_the_stack_are_for_their_owner_only(stage: Stage) -> None:
    layout = layout_of(stage.runtime.data)
    for path in (layout.credential_key, layout.worker_token):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_what_is_stored_is_used_and_written_nowhere(stage: Stage) -> None:
    runtime = stage.runtime
    closed = await runtime.start(_rows(stage, "canary_closed"))
    ended = await runtime.run(uses_all(stage))
    assert (ended.status, ended.error) == ("COMPLETED", None)
    rows = await runtime.author(f"SELECT count(*) FROM {stage.table}")
    assert rows[0]["count"] == 40

    errors = {}
    for name, task in fails(stage).items():
        single = await runtime.run(playbook({"step": "start", "tool": task}))
        assert single.status == "FAILED", name
        errors[name] = single.error or ""
    assert "password authentication failed" in errors["login"]
    assert "no_such_column" in errors["sql"]
    assert "401" in errors["refused"]
    assert "does not name" in errors["undeclared"]
    assert "streams credential set" in errors["unknown"]
    assert (await runtime.run(_rows(stage, "canary_wrong"))).status == "FAILED"
    await runtime.until(FAILED, closed)  # its database is asked until the lease would end
    await _cancel(stage, closed)

    await _search(stage)


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
    done = await stage.cli("rekey", "--new-key")
    assert (done["unused"], done["resealed"]) == ([before], stored)
    key_file.write_text(key_file.read_text().splitlines()[0])
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    read = {"kind": "postgres", "auth": "canary_pg", "command": "SELECT 1 AS one"}
    ended = await stage.runtime.run(playbook({"step": "start", "tool": read}))
    assert (ended.status, ended.error) == ("COMPLETED", None)


async def test_a_removed_credential_is_gone(stage: Stage) -> None:
    await stage.cli("rm", "canary_undeclared")
    names = {one["name"] for one in (await stage.cli("list"))["credentials"]}
    assert "canary_undeclared" not in names
    assert "canary_pg" in names


async def _search(stage: Stage) -> None:
    """Look through everything that was written, for the secrets and for the marker."""
    places = await written(stage.runtime)
    needles = list(_forms(stage.user))
    for place, texts in places.items():
        assert any(MARKER.encode() in text for _, text in texts), f"{place}: the search is blind"
        found = [(where, what) for where, text in texts for what in needles if what in text]
        assert found == [], place
    for place in ("schema", "topics"):  # what the servers gave back was there to be concealed
        assert any(b"Bearer ***" in text for _, text in places[place]), place


def _forms(user: str) -> Iterator[bytes]:
    """Yield the secrets in every form in which they could be written."""
    logins = [f"{user}:{RIGHT}", f"{user}:{WRONG}", f"ada:{TOKEN}"]
    for text in (*CANARIES, *(b64encode(one.encode()).decode() for one in logins)):
        yield text.encode()
        yield text.encode().hex().encode()
        yield b64encode(text.encode()).rstrip(b"=")[:-2]
