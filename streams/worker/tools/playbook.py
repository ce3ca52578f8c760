"""The tool that runs another playbook: it waits for its result, or in NoETL's spelling may not."""

from __future__ import annotations

import asyncio

from streams.errors import Refused
from streams.events.model import Event, Json
from streams.payload.errors import PayloadCorrupt, PayloadMissing
from streams.payload.port import PayloadStore, Scope
from streams.playbook.spelling import Spelling
from streams.results.envelope import Envelope
from streams.worker.attempt.children import Called, Children
from streams.worker.attempt.reading import handed
from streams.worker.await_executions import EndedExecutions
from streams.worker.errors import VALUE_BYTES, BadConfig, ValueTooLarge
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.task_config import failed, flag, mapping, seconds, text, whole

WAIT_S = 300.0
"""How long a call of NoETL's spelling waits for its child."""
_WELL = ("COMPLETED", "PARTIAL")


class PlaybookTool:
    """Runs the playbook at `path` (its `version`, or the newest) with `workload` or `args`.

    While it waits, its frame uses no slot of the worker: the child may need it. The child is
    cancelled if the calling execution ends, or after `spec.timeout_s`.

    In NoETL's spelling a call waits only with `return_step`, for the child's status record, or
    with `return_result` or `result_step`, for its data; it stops waiting after `timeout`. A
    child that nobody waits for is detached: it outlives its caller.
    """

    def __init__(
        self,
        children: Children,
        ended_executions: EndedExecutions,
        payloads: PayloadStore,
        *,
        value_bytes: int = VALUE_BYTES,
    ) -> None:
        self._children, self._ended_executions, self._payloads = (
            children,
            ended_executions,
            payloads,
        )
        self._value_bytes = value_bytes

    async def run(self, config: Config, call: Call) -> Outcome:
        """Start the playbook and wait for its end.

        Raises:
            Unavailable: the log, the catalog or the payload store is down.
        """
        is_noetl = call.spelling is Spelling.NOETL
        try:
            called = _noetl_called(config) if is_noetl else _called(config)
            limit_s = seconds(config, call, WAIT_S) if is_noetl else call.timeout_s
        except BadConfig as error:
            return failed("playbook.config", str(error))
        try:
            child = await self._children.start(call, called)
        except Refused as error:
            return failed("playbook.start", str(error))
        if called.detached:
            return _started(called, child)
        return await self._wait(called, child, call, config, limit_s)

    async def _wait(
        self, called: Called, child: int, call: Call, config: Config, limit_s: float | None
    ) -> Outcome:
        is_noetl = call.spelling is Spelling.NOETL
        with call.released_slot():
            try:
                async with asyncio.timeout(limit_s):
                    end = await self._ended_executions.first_of(child, call.execution_id)
            except TimeoutError:
                if is_noetl and not _wants_data(config):
                    return _record(called, child, "RUNNING", f"it took longer than {limit_s:g} s")
                why = f"it took longer than {limit_s:g} s"
                await self._children.cancel(child, call, why)
                message = f"{_described(called, child)} is cancelled: {why}"
                return failed("playbook.timeout", message, detail=_detail(child, "CANCELLED"))
        if end.root.id != child:
            why = f"execution {call.execution_id}, which called it, ended {end.status}"
            await self._children.cancel(child, call, why)
            return failed("playbook.caller", why)
        if not is_noetl:
            return await self._outcome(called, end, end)
        if not _wants_data(config):
            return _record(called, child, str(end.status), end.error)
        return await self._data(called, end, config.get("result_step"))

    async def close(self) -> None:
        """Stop waiting for executions."""
        await self._ended_executions.close()

    async def _data(self, called: Called, end: Event, step: Json) -> Outcome:
        """Return the child's result, or that of one of its steps."""
        if step is None or str(end.status) not in _WELL:
            return await self._outcome(called, end, end)
        found = await self._children.step_end(end.root.id, str(step))
        if found is None:
            why = f"{_described(called, end.root.id)}: its step {step!r} has no result of its own"
            return failed("playbook.result", why, detail=_detail(end.root.id, str(end.status)))
        return await self._outcome(called, end, found)

    async def _outcome(self, called: Called, end: Event, source: Event) -> Outcome:
        """Return the result that `source` has, of an execution that ended."""
        child, status = end.root.id, str(end.status)
        if status not in _WELL:
            why = f"{_described(called, child)} ended {status}: {end.error or 'no reason given'}"
            return failed(f"playbook.{status.lower()}", why, detail=_detail(child, status))
        result = Envelope.parse(source.result)
        data = result.data
        ref = source.payload_ref or result.data_payload(Scope(end.tenant_id, end.organization_id))
        if ref is not None:
            try:
                data = await handed(self._payloads, ref, self._value_bytes)
            except (PayloadMissing, PayloadCorrupt, ValueTooLarge) as error:
                return failed("playbook.result", str(error), detail=_detail(child, status))
        meta: dict[str, Json] = {"execution_id": str(child), "status": status}
        return Outcome(status="success", data=data, meta=meta, detail=_detail(child, status))


def _called(config: Config) -> Called:
    name = "workload" if "workload" in config else "args"
    return Called(text(config, "path"), whole(config, "version"), mapping(config, name))


def _noetl_called(config: Config) -> Called:
    version = None if config.get("version") == "latest" else whole(config, "version")
    inputs: dict[str, Json] = {}
    for name in ("workload", "args", "payload", "input"):
        inputs |= mapping(config, name)
    waits = config.get("return_step") is not None or _wants_data(config)
    return Called(text(config, "path"), version, inputs, detached=not waits)


def _wants_data(config: Config) -> bool:
    is_asked = flag(config, "return_result", default=False)
    return is_asked or config.get("result_step") is not None


def _started(called: Called, child: int) -> Outcome:
    data: dict[str, Json] = {"status": "started", "execution_id": str(child)}
    data |= {"path": called.path, "async": True}
    return Outcome(status="success", data=data, detail=_detail(child, "RUNNING"))


def _record(called: Called, child: int, status: str, why: str | None) -> Outcome:
    """Return the status record of a child; a failed one is no error of the call."""
    data: dict[str, Json] = {"execution_id": str(child), "status": status, "path": called.path}
    data |= {"completed": status in _WELL, "failed": status not in (*_WELL, "RUNNING")}
    data |= {"error": None if status in _WELL else why}
    return Outcome(status="success", data=data, detail=_detail(child, status))


def _described(called: Called, child: int) -> str:
    return f"playbook {called.path} (execution {child})"


def _detail(child: int, status: str) -> dict[str, Json]:
    return {"playbook": {"execution_id": str(child), "status": status}}
