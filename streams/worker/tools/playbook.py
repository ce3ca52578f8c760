"""The tool that runs another playbook and waits for its result."""

from __future__ import annotations

import asyncio

from streams.errors import Refused
from streams.events.model import Event, Json
from streams.payload.errors import PayloadCorrupt, PayloadMissing
from streams.payload.port import PayloadStore, Scope
from streams.results.envelope import Envelope
from streams.worker.attempt.children import Called, Children
from streams.worker.attempt.reading import handed
from streams.worker.await_executions import Endings
from streams.worker.errors import VALUE_BYTES, BadConfig, ValueTooLarge
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.task_config import failed, mapping, text, whole

_WELL = ("COMPLETED", "PARTIAL")


class PlaybookTool:
    """Runs the playbook at `path` (its `version`, or the newest) with `workload` or `args`.

    While it waits, its frame uses no slot of the worker: the child may need it. The child is
    cancelled if the calling execution ends, or after `spec.timeout_s`.
    """

    def __init__(
        self,
        children: Children,
        endings: Endings,
        payloads: PayloadStore,
        *,
        value_bytes: int = VALUE_BYTES,
    ) -> None:
        self._children, self._endings, self._payloads = children, endings, payloads
        self._value_bytes = value_bytes

    async def run(self, config: Config, call: Call) -> Outcome:
        """Start the playbook and wait for its end.

        Raises:
            Unavailable: the log, the catalog or the payload store is down.
        """
        try:
            called = _called(config)
        except BadConfig as error:
            return failed("playbook.config", str(error))
        try:
            child = await self._children.start(call, called)
        except Refused as error:
            return failed("playbook.start", str(error))
        with call.released_slot():
            try:
                async with asyncio.timeout(call.timeout_s):
                    end = await self._endings.first_of(child, call.execution_id)
            except TimeoutError:
                why = f"it took longer than {call.timeout_s:g} s"
                await self._children.cancel(child, call, why)
                message = f"{_described(called, child)} is cancelled: {why}"
                return failed("playbook.timeout", message, detail=_detail(child, "CANCELLED"))
        if end.root.id != child:
            why = f"execution {call.execution_id}, which called it, ended {end.status}"
            await self._children.cancel(child, call, why)
            return failed("playbook.caller", why)
        return await self._outcome(called, end)

    async def close(self) -> None:
        """Stop waiting for executions."""
        await self._endings.close()

    async def _outcome(self, called: Called, end: Event) -> Outcome:
        child, status = end.root.id, str(end.status)
        if status not in _WELL:
            why = f"{_described(called, child)} ended {status}: {end.error or 'no reason given'}"
            return failed(f"playbook.{status.lower()}", why, detail=_detail(child, status))
        result = Envelope.parse(end.result)
        data = result.data
        ref = end.payload_ref or result.data_payload(Scope(end.tenant_id, end.organization_id))
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


def _described(called: Called, child: int) -> str:
    return f"playbook {called.path} (execution {child})"


def _detail(child: int, status: str) -> dict[str, Json]:
    return {"playbook": {"execution_id": str(child), "status": status}}
