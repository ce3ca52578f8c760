"""The tool that runs authors' Python, in child processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from streams.events.model import Json
from streams.playbook.spelling import Spelling
from streams.worker.errors import BadConfig, UnknownCredential
from streams.worker.port import Call, Config, Outcome
from streams.worker.sinks.port import SinkRefused
from streams.worker.tools.download import SourceUnavailable
from streams.worker.tools.python.child import ModuleGlobals, PythonRequest, execute
from streams.worker.tools.python.pool import ChildDied, PythonPool, answer_of
from streams.worker.tools.script import Scripts
from streams.worker.tools.task_config import failed, mapping, seconds, text

TIMEOUT_S = 30.0
MEMORY_BYTES = 1024 * 1024 * 1024
CPU_S = 60
NOETL_TIMEOUT_S = 300.0
"""How long code in NoETL's spelling may run: its authors knew no limit."""
_LIST_OF_LIBS = "'libs' is a list, which imports nothing; write {alias: module}"


class PythonTool:
    """Runs `code` (or a `script`), which defines `main`, with `args` or `input` as arguments.

    The return value of `main` is the data, unless it is an envelope with `status` and `data`.
    Its output is `meta.log`. The processes limit memory and time; they are not a sandbox: code
    in them can read files and open connections.

    In NoETL's spelling the code runs as a module: `input` and `libs` are its globals, `result`
    or what `main` returns is the data, and it has NOETL_TIMEOUT_S.

    `in_process` runs the code inside the worker instead: fast, one call at a time, and a call
    that hangs cannot be ended. Only for deployments that trust every author.
    """

    def __init__(
        self,
        *,
        processes: int | None = None,
        memory_bytes: int = MEMORY_BYTES,
        cpu_s: int = CPU_S,
        timeout_s: float = TIMEOUT_S,
        in_process: bool = False,
        scripts: Scripts | None = None,
    ) -> None:
        size = processes or os.cpu_count() or 2
        self._pool = PythonPool(size, memory_bytes=memory_bytes, cpu_s=cpu_s)
        self._timeout_s = timeout_s
        self._alone = asyncio.Lock() if in_process else None
        self._scripts = scripts

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the code once."""
        is_module = call.spelling is Spelling.NOETL
        limit = max(self._timeout_s, NOETL_TIMEOUT_S) if is_module else self._timeout_s
        try:
            limit = seconds(config, call, limit) or limit
            request = _request(await self._code(config, call), config, is_module)
            answer = await self._execute(request, limit)
        except (BadConfig, UnknownCredential, SourceUnavailable, SinkRefused) as error:
            return failed("python.config", str(error))
        except TimeoutError:
            return failed("python.timeout", f"the code ran for more than {limit} s and was killed")
        except ChildDied as error:
            why = f"the process died ({error}); did the code run out of memory?"
            return failed("python.died", why)
        return _plain(answer, config) if is_module else _outcome(answer)

    async def close(self) -> None:
        """End the processes."""
        await self._pool.close()
        if self._scripts is not None:
            await self._scripts.close()

    async def _code(self, config: Config, call: Call) -> str:
        if config.get("script") is None:
            return text(config, "code")
        if config.get("code") is not None:
            raise BadConfig("'code' and 'script' are given; give one")
        if self._scripts is None:
            raise BadConfig("'script' is not supported here; give 'code'")
        return await self._scripts.read(config, call)

    async def _execute(self, request: PythonRequest, limit: float) -> dict[str, Json]:
        if self._alone is None:
            return await self._pool.call(request, limit)
        async with self._alone, asyncio.timeout(limit):
            return answer_of(await asyncio.to_thread(execute, request))


def _request(code: str, config: Config, is_module: bool) -> PythonRequest:
    inputs, args = mapping(config, "input"), mapping(config, "args")
    if not is_module:
        return {"code": code, "args": {**inputs, **args}, "module": None}
    is_list = isinstance(config.get("libs"), list)
    libs: dict[str, object] = {} if is_list else {**mapping(config, "libs")}
    module: ModuleGlobals = {"context": dict(mapping(config, "context")), "libs": libs}
    return {"code": code, "args": {**args, **inputs}, "module": module}


def _plain(answer: Mapping[str, Json], config: Config) -> Outcome:
    """Return the outcome of a module: its result is data, whatever keys it has."""
    log = str(answer["log"] or "")
    if isinstance(config.get("libs"), list) and config["libs"]:
        log = f"{_LIST_OF_LIBS}\n{log}"
    meta: dict[str, Json] = {"log": log} if log else {}
    if isinstance(error := answer.get("error"), dict):
        return Outcome(status="error", error={**error, "retryable": False}, meta=meta)
    return Outcome(status="success", data=answer["result"], meta=meta)


def _outcome(answer: Mapping[str, Json]) -> Outcome:
    """Return the outcome of an answer; a plain result becomes its data."""
    meta: dict[str, Json] = {"log": answer["log"]} if answer["log"] else {}
    if isinstance(error := answer.get("error"), dict):
        return Outcome(status="error", error=error, meta=meta)
    result = answer["result"]
    if not isinstance(result, dict) or not _is_envelope(result):
        return Outcome(status="success", data=result, meta=meta)
    given = result.get("meta")
    meta = {**(given if isinstance(given, dict) else {}), **meta}
    if result["status"] == "success":
        return Outcome(status="success", data=result.get("data"), meta=meta)
    why = result.get("error")
    problem: dict[str, Json] = {"kind": "python.failed", "message": str(why)}
    if isinstance(why, dict):
        problem |= why
    return Outcome(status="error", data=result.get("data"), meta=meta, error=problem)


def _is_envelope(result: Mapping[str, Json]) -> bool:
    has_status = result.get("status") in ("success", "error")
    return has_status and not result.keys().isdisjoint(("data", "error"))
