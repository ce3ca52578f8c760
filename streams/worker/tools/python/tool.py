"""The tool that runs authors' Python, in child processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.python.child import execute
from streams.worker.tools.python.pool import ChildDied, PythonPool, answer_of
from streams.worker.tools.task_config import failed, mapping, seconds, text

TIMEOUT_S = 30.0
MEMORY_BYTES = 1024 * 1024 * 1024
CPU_S = 60


class PythonTool:
    """Runs `code`, which defines `main`, with `args` (or `input`) as its arguments.

    The return value of `main` is the data, unless it is an envelope with `status` and `data`.
    Its output is `meta.log`. The processes limit memory and time; they are not a sandbox: code
    in them can read files and open connections.

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
    ) -> None:
        size = processes or os.cpu_count() or 2
        self._pool = PythonPool(size, memory_bytes=memory_bytes, cpu_s=cpu_s)
        self._timeout_s = timeout_s
        self._alone = asyncio.Lock() if in_process else None

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the code once."""
        limit = self._timeout_s
        try:
            code = text(config, "code")
            args = {**mapping(config, "input"), **mapping(config, "args")}
            limit = seconds(config, call, self._timeout_s) or limit
            answer = await self._execute(code, args, limit)
        except BadConfig as error:
            return failed("python.config", str(error))
        except TimeoutError:
            return failed("python.timeout", f"the code ran for more than {limit} s and was killed")
        except ChildDied as error:
            why = f"the process died ({error}); did the code run out of memory?"
            return failed("python.died", why)
        return _outcome(answer)

    async def close(self) -> None:
        """End the processes."""
        await self._pool.close()

    async def _execute(self, code: str, args: dict[str, Json], limit: float) -> dict[str, Json]:
        if self._alone is None:
            return await self._pool.call(code, args, limit)
        async with self._alone, asyncio.timeout(limit):
            return answer_of(await asyncio.to_thread(execute, code, args))


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
