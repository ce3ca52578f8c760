"""Run NoETL's public playbooks on a running stack, and print how each ended.

    git clone https://github.com/noetl/e2e
    pip install fastapi uvicorn psycopg psycopg2-binary     # what their server and scripts import
    (cd e2e && streams up --detach --data /tmp/stack)       # scripts are files of the collection
    python -m examples.noetl.run e2e --api http://127.0.0.1:… --dsn postgresql://…

The playbooks run unchanged; addresses are given as workload, the database as credentials. On an
embedded stack give the database for authors, as its own user `noetl_author`: its settings fix the
credential `pg_local` to that, and all credentials of one database share one table of fences.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import asyncpg
from aiohttp import web

from examples.noetl.corpus import CASES, CREDENTIALS, REFUSED, Case
from examples.noetl.stand_in import application

ENDED = frozenset({"COMPLETED", "FAILED", "PARTIAL", "CANCELLED"})


@dataclass(frozen=True, slots=True)
class Ran:
    """How one playbook ended."""

    case: Case
    status: str
    seconds: float
    why: str = ""

    @property
    def is_expected(self) -> bool:
        """Whether it ended as the collection says."""
        return self.status in self.case.expected and self.case.why in self.why


class Runner:
    """Registers and runs playbooks through the HTTP API."""

    def __init__(
        self, session: aiohttp.ClientSession, api: str, folder: Path, values: Mapping[str, str]
    ) -> None:
        self._session, self._api, self._folder, self._values = session, api, folder, values

    async def register_all(self) -> None:
        """Register every playbook, so that calls find theirs; what is refused is reported later."""
        for file in sorted((self._folder / "fixtures").rglob("*.yaml")):
            text = file.read_text("utf-8")
            if "kind: Playbook" in text:
                await self._post("/api/catalog", {"content": text})

    async def run(self, case: Case) -> Ran:
        """Run one playbook to its end."""
        began = time.monotonic()
        text = (self._folder / "fixtures" / case.path).read_text("utf-8")
        status, entry = await self._post("/api/catalog", {"content": text})
        if status >= 300:
            return Ran(case, REFUSED, 0.0, _reason(entry))
        if case.resets:
            await self._session.post(f"{self._values['api']}/api/v1/flaky/reset")
        workload = {name: self._filled(value) for name, value in case.workload.items()}
        body = {"path": entry["path"], "version": entry["version"], "workload": workload}
        status, execution = await self._post("/api/executions", body)
        if status >= 300:
            return Ran(case, REFUSED, 0.0, _reason(execution))
        return await self._ended(case, str(execution["execution_id"]), began)

    async def _ended(self, case: Case, execution_id: str, began: float) -> Ran:
        url = f"{self._api}/api/executions/{execution_id}"
        while True:
            async with self._session.get(url) as response:
                found = await response.json()
            seconds, status = time.monotonic() - began, str(found.get("status"))
            if status in ENDED:
                return Ran(case, status, seconds, str(found.get("error") or ""))
            if seconds > case.timeout_s:
                reason = {"by": "examples/noetl", "reason": "timeout"}
                await self._session.post(f"{url}/cancel", json=reason)
                return Ran(case, "TIMEOUT", seconds, f"execution {execution_id}")
            await asyncio.sleep(0.1)

    async def _post(self, path: str, body: Mapping[str, object]) -> tuple[int, dict[str, object]]:
        async with self._session.post(f"{self._api}{path}", json=body) as response:
            return response.status, await response.json()

    def _filled(self, value: object) -> object:
        if not isinstance(value, str) or "{" not in value:
            return value
        filled = value.format(**self._values)
        return int(filled) if value == "{port}" else filled


def _reason(answer: Mapping[str, object]) -> str:
    problems = answer.get("problems")
    listed = problems if isinstance(problems, list) else []
    errors = [str(one) for one in listed if "error" in str(one)]
    return "; ".join(errors[:2]) or str(answer.get("detail"))


@asynccontextmanager
async def servers(
    folder: Path, python: str, *, limit: int = 100_000
) -> AsyncIterator[dict[str, str]]:
    """Run the collection's own server and the stand-in; yield their addresses."""
    port = _free_port()
    script = folder / "fixtures" / "servers" / "paginated_api.py"
    limits = {"PFT_RATE_LIMIT": str(limit), "PATIENT_RECORDS_RATE_LIMIT": str(limit)}
    process = await asyncio.create_subprocess_exec(
        *(python, "-c", _SERVE.format(folder=str(script.parent), port=port)),
        env={**os.environ, **limits},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    scripts = folder / "fixtures" / "playbooks" / "script_execution" / "scripts"
    site = web.AppRunner(application(scripts))
    await site.setup()
    own = _free_port()
    await web.TCPSite(site, "127.0.0.1", own).start()
    try:
        await _answers(f"http://127.0.0.1:{port}/health", process)
        yield {
            "api": f"http://127.0.0.1:{port}",
            "stand_in": f"http://127.0.0.1:{own}",
            "stand_in_host": f"127.0.0.1:{own}",
        }
    finally:
        process.terminate()
        await process.wait()
        await site.cleanup()


_SERVE = (
    "import sys; sys.path.insert(0, {folder!r}); import uvicorn, paginated_api; "
    "uvicorn.run(paginated_api.app, host='127.0.0.1', port={port}, log_level='warning')"
)


async def _answers(url: str, process: asyncio.subprocess.Process) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(150):
            if process.returncode is not None:
                raise SystemExit(
                    "the collection's server ended; are fastapi and uvicorn installed?"
                )
            try:
                async with session.get(url):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)
    raise SystemExit(f"{url} does not answer")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def run(arguments: argparse.Namespace) -> list[Ran]:
    """Run the chosen playbooks, one after the other."""
    dsn = urlsplit(arguments.dsn)
    values = {
        "host": dsn.hostname or "127.0.0.1",
        "port": str(dsn.port or 5432),
        "user": dsn.username or "",
        "password": dsn.password or "",
        "database": dsn.path.lstrip("/"),
    }
    chosen = [case for case in CASES if not arguments.only or case.number in arguments.only]
    ran: list[Ran] = []
    async with (
        servers(arguments.folder, arguments.server_python) as addresses,
        aiohttp.ClientSession() as session,
    ):
        for name in CREDENTIALS:
            body = {"kind": "postgres", "fields": {"dsn": arguments.dsn}}
            url = f"{arguments.api}/api/credentials/{name}"
            async with session.put(url, json=body) as response:
                if (await response.json()).get("overridden_by"):
                    sys.stderr.write(f"{name} stays as the stack's settings have it\n")
        runner = Runner(session, arguments.api, arguments.folder, {**values, **addresses})
        await runner.register_all()
        for case in chosen:
            if case.prepare:
                await _execute(arguments.dsn, case.prepare)
            ran.append(await runner.run(case))
            _print(ran[-1])
    return ran


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _print(one: Ran) -> None:
    mark = "ok " if one.is_expected else "BAD"
    why = f"  {one.why[:300]}" if one.why and not one.is_expected else ""
    case = one.case
    line = f"{mark} {case.number:>3} {case.file:<70} {one.status:<9} {one.seconds:6.1f} s{why}"
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the collection (noetl/e2e)")
    parser.add_argument("--api", required=True, help="address of the stack's HTTP API")
    parser.add_argument("--dsn", required=True, help="database of the playbooks' credentials")
    parser.add_argument("--server-python", default=sys.executable, help="Python that has fastapi")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of playbooks")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    ran = asyncio.run(run(arguments))
    if arguments.json is not None:
        rows = [
            {"number": one.case.number, "file": one.case.file, "status": one.status,
             "seconds": round(one.seconds, 1), "expected": list(one.case.expected), "why": one.why}
            for one in ran
        ]  # fmt: skip
        arguments.json.write_text(json.dumps(rows, indent=1))
    bad = [one for one in ran if not one.is_expected]
    sys.stdout.write(f"{len(ran) - len(bad)} of {len(ran)} as expected\n")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
