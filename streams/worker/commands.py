"""One command by the protocol: claim, run the pipeline once, say what came of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import orjson

from streams.envelope.model import Json
from streams.errors import Refused, StreamsError, Unavailable
from streams.playbook.model import Playbook, Step
from streams.work.item import BadWorkItem, WorkItem
from streams.worker.cursors import plan
from streams.worker.facts import fit
from streams.worker.lease import Lease, LeaseLost
from streams.worker.options import Options, Ports
from streams.worker.output import store_json
from streams.worker.patience import patiently
from streams.worker.pipeline import Caller, Pipeline, Ran, Row
from streams.worker.views import extract

INLINE_BYTES = 32 * 1024
PREVIEW_BYTES = 1024
_log = logging.getLogger(__name__)


class CommandRunner:
    """Runs commands, each to its end or until it is somebody else's."""

    def __init__(self, ports: Ports, options: Options) -> None:
        self._ports, self._options = ports, options

    async def run(self, item: WorkItem) -> None:
        """Run one attempt. What another worker has, or has ended, is silently dropped."""
        lease = Lease(item, self._ports, self._options)
        if not await lease.claim():
            return
        try:
            async with lease:
                await self._attempt(lease)
        except LeaseLost as lost:
            _log.info("command %s: attempt %s dropped: %s", item.entity_id, item.attempt, lost)

    async def _attempt(self, lease: Lease) -> None:
        try:
            what, fields = await self._work(lease)
            await lease.end(what, **fields)
        except (LeaseLost, asyncio.CancelledError):
            raise
        except Unavailable as error:
            # Not the command's fault: its lease runs out, and somebody tries again.
            _log.warning("command %s: given up for now: %s", lease.item.entity_id, error)
        except StreamsError as error:
            await lease.end("failed", **_failure("refused", str(error)))
        except Exception as error:  # noqa: BLE001 - a bug ends the attempt, never the waiting
            _log.exception("command %s failed", lease.item.entity_id)
            await lease.end("failed", **_failure("internal", f"{type(error).__name__}: {error}"))

    async def _work(self, lease: Lease) -> tuple[str, dict[str, Any]]:
        item, ports = lease.item, self._ports
        until = lease.last_moment
        playbook, document = await patiently(
            lambda: self._read(item), clock=ports.clock, until=until
        )
        step = _step(playbook, item)
        scope = await patiently(
            lambda: ports.documents.scope(item, document, step.reads),
            clock=ports.clock,
            until=until,
        )
        row = Row(0, scope)
        if item.tool == "cursor.plan":
            ran = await self._plan(item, step, document, scope, until)
        else:
            ran = await self._pipeline(item, step).run(row)
        if ran.status == "error":
            return "failed", _failed(ran)
        return "completed", await patiently(
            lambda: self._completed(item, step, ran, row.ctx), clock=ports.clock, until=until
        )

    async def _read(self, item: WorkItem) -> tuple[Playbook, Mapping[str, Any]]:
        playbook = await self._ports.playbooks.get(item.catalog_id, item.catalog_version)
        return playbook, await self._ports.documents.document(item)

    async def _plan(
        self,
        item: WorkItem,
        step: Step,
        document: Mapping[str, Any],
        scope: Mapping[str, Any],
        until: float,
    ) -> Ran:
        if step.loop is None or step.loop.cursor is None:
            raise BadWorkItem(f"step {step.name} has no cursor whose frames could be found")
        cursor, size = step.loop.cursor, max(1, int(document.get("size") or 1))
        data = await patiently(
            lambda: plan(item, cursor, size, scope, self._ports),
            clock=self._ports.clock,
            until=until,
        )
        return Ran("success", data, {})

    def _pipeline(self, item: WorkItem, step: Step) -> Pipeline:
        caller = Caller(
            tenant_id=item.tenant_id,
            organization_id=item.organization_id,
            execution_id=item.execution_id,
            step=item.step,
            entity_id=item.entity_id,
            attempt=item.attempt,
            stage_id=item.stage_id,
        )
        clock, patience_s = self._ports.clock, self._options.patience_s
        return Pipeline(step.tasks, self._ports.tools, caller, clock=clock, patience_s=patience_s)

    async def _completed(
        self, item: WorkItem, step: Step, ran: Ran, ctx: Mapping[str, Json]
    ) -> dict[str, Any]:
        """Return what the event carries: the data itself, or a reference and a first look."""
        data = _encoded(ran.data)
        result: dict[str, Any] = {"status": "success", "meta": _plain(ran.meta)}
        if ctx:
            result["ctx"] = _plain(ctx)
        spec = step.tasks[-1].spec if step.tasks else {}
        if extracted := extract(spec, ran.data):
            result["extracted"] = _plain(extracted)
        ref = None
        if len(data) <= INLINE_BYTES and b"\\u0000" not in data:
            result["data"] = orjson.loads(data)
        else:
            ref = await store_json(self._ports.payloads, item, data)
            result["preview"] = fit(data[:PREVIEW_BYTES].decode("utf-8", "ignore"))
        return {"status": "success", "result": result, "payload_ref": ref}


def _step(playbook: Playbook, item: WorkItem) -> Step:
    step = playbook.steps.get(item.step)
    if step is None:
        raise BadWorkItem(f"{playbook.path} has no step {item.step!r}")
    return step


def _encoded(data: Json) -> bytes:
    try:
        return orjson.dumps(data, default=str)
    except TypeError as error:
        raise Refused(f"the result is not JSON: {error}; return text for what is not") from error


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: no NaN, no tuples."""
    return orjson.loads(_encoded(value))


def _failed(ran: Ran) -> dict[str, Any]:
    error = ran.error or {}
    return _failure(str(error.get("kind")), str(error.get("message")), str(error.get("task") or ""))


def _failure(kind: str, message: str, task: str = "") -> dict[str, Any]:
    said = fit(message)
    error = {"kind": fit(kind, 100), "message": said, "task": task}
    text = f"{task}: {error['kind']}: {said}" if task else said
    result = {"status": "error", "error": error, "meta": {}}
    return {"status": "error", "error": fit(text), "result": result}
