"""The results of one attempt: kept as payloads, copied to their tiers, told as events."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any

import orjson

from streams.clock import Clock
from streams.errors import Refused
from streams.events.model import Json, NewEvent, PayloadRef, Root, Routing
from streams.ids import derive_id
from streams.kafka.work.item import WorkItem
from streams.log.port import EventStore
from streams.payload.port import JSON, PayloadStore, Scope
from streams.playbook.model import Task
from streams.playbook.result_policy import INLINE_BYTES, LARGE, USUAL, ResultPolicy
from streams.results.copies.port import Copies, Copy
from streams.results.inline import is_for_events, is_inline
from streams.results.references import payload_of, preview_of, result_reference, result_uri
from streams.results.spilled import Group, group_of
from streams.worker.attempt.views import Kept

_log = logging.getLogger(__name__)
EXTRACTED_BYTES = 8 * 1024
IN_A_THREAD_BYTES = 1 << 20
"""From here on, following paths into a result would keep leases and other rows waiting."""
_AT_ONCE = 256
_IDS = re.compile(rb"[0-9]+")
_ASKING, _KEY = ("artifact", "result"), "/payloads/sha256/"


class NotInEvents(Refused):
    """What an event should carry of a result cannot be in one."""


class Keeper:
    """Keeps results: the payload store first, always, then a copy in the tier that was asked for.

    The events are gathered until `tell`, before the one that ends the attempt or a task that is
    given one of their names: a reference in a committed result, or in anybody's hands, can
    always be resolved. Those of an attempt that is lost are told by nobody, or stay as history;
    their ids are this attempt's own.
    """

    def __init__(
        self,
        item: WorkItem,
        payloads: PayloadStore,
        copies: Copies,
        log: EventStore,
        clock: Clock,
        insist: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]],
        inline_bytes: int = INLINE_BYTES,
        large: str = LARGE,
    ) -> None:
        self._item, self._payloads, self._copies = item, payloads, copies
        self._log, self._clock, self._insist = log, clock, insist
        self._inline_bytes, self._large = inline_bytes, large
        self._untold: dict[str, NewEvent] = {}
        self._telling = asyncio.Lock()

    async def keep(self, task: Task, data: Json, partition: str) -> Kept:
        """Do with a result what the task's `spec.result` says."""
        assert task.result is not None
        return await self.store(task.label, task.result, data, partition)

    async def store(self, task: str, policy: ResultPolicy, data: Json, partition: str) -> Kept:
        """Store a result where its policy says so, or where it does not fit its event.

        Raises:
            NotInEvents: its selected fields cannot be in an event.
        """
        encoded = encode(data)
        extracted = _small(await _selected(policy, data, len(encoded)))
        kind = policy.store_of(len(encoded), self._inline_bytes, self._large)
        if kind is None:
            if is_inline(encoded, self._inline_bytes):
                return Kept(extracted)
            kind = "object"
        elif policy.kind == "kv" and kind != "kv":
            told = (self._item.step, task, len(encoded), kind)
            _log.info("%s.%s: %s bytes are too large for kv and go to %s", *told)
        scope = Scope(self._item.tenant_id, self._item.organization_id)
        payload: PayloadRef = await self._insist(
            lambda: self._payloads.put(
                scope, encoded, media_type=JSON, compression=policy.compression
            )
        )
        result_id, uri = self._name(task, partition)
        expires_at = self._end(policy)
        ref = result_reference(
            uri,
            payload,
            store=kind,
            scope=policy.scope,
            expires_at=expires_at,
            extracted=extracted,
            preview=_look(data, policy.preview_max_bytes),
        )
        self._untold[str(result_id)] = self._event(result_id, task, ref, payload)
        if kind == "db":
            await self.tell()  # its rows go with the event's end: none may be without one
        await self._copies.put(
            kind,
            Copy(
                uri=uri,
                execution_id=self._item.execution_id,
                step=self._item.step,
                task=task,
                payload=payload,
                data=encoded,
                expires_at=expires_at,
            ),
        )
        return Kept(extracted, ref)

    async def group(self, name: str, values: Mapping[str, Json]) -> Group:
        """Store values that their event cannot carry as one result, and say where they are."""
        # Told anew after some of it was dropped, it is another result: its content names it.
        partition = f"{name}/{sha256(encode(values)).hexdigest()}"
        kept = await self.store(name, USUAL, dict(values), partition)
        assert kept.ref is not None
        scope = Scope(self._item.tenant_id, self._item.organization_id)
        return group_of(values, payload_of(kept.ref, scope))

    def note(self, task: Task, payload: PayloadRef, partition: str) -> Mapping[str, Any]:
        """Make a result of a payload that a tool has stored; its data is in no copy and no event.

        It lives as the task's `spec.result` says.
        """
        policy = task.result or USUAL
        result_id, uri = self._name(task.label, partition)
        ref = result_reference(
            uri,
            payload,
            store=policy.place_of(payload.byte_length, self._large),
            scope=policy.scope,
            expires_at=self._end(policy),
        )
        self._untold[str(result_id)] = self._event(result_id, task.label, ref, payload)
        return ref

    async def tell(self) -> None:
        """Append what was kept and is not told yet."""
        async with self._telling:  # rows of a frame may tell at the same time
            while self._untold:
                ids = list(islice(self._untold, _AT_ONCE))
                batch = [self._untold[one] for one in ids]
                await self._insist(lambda batch=batch: self._log.append(batch))  # type: ignore[misc]
                for one in ids:
                    del self._untold[one]

    async def tell_before(self, kind: str, config: Mapping[str, Any]) -> None:
        """Append what was kept if a task of this kind could ask for it: by a name, or by listing.

        Most tasks do neither, and thousands of rows tell what they kept all at once.
        """
        if self._untold and (_asks(kind, config) or self._is_named(config)):
            await self.tell()

    def _is_named(self, config: Mapping[str, Any]) -> bool:
        """Say whether a name that nobody else knows yet is in there, quoted or not."""
        text = _text(config)
        if str(self._item.execution_id).encode() not in text:
            return False
        return any(one.decode() in self._untold for one in _IDS.findall(text))

    def _name(self, task: str, partition: str) -> tuple[int, str]:
        """Return a result's id, which is this attempt's own, and its name."""
        item = self._item
        result_id = derive_id(item.entity_id, item.attempt, f"result/{task}/{partition}")
        return result_id, result_uri(item.execution_id, item.step, task, result_id)

    def _end(self, policy: ResultPolicy) -> datetime | None:
        return None if policy.ttl is None else self._clock.now() + policy.ttl

    def _event(
        self, result_id: int, task: str, ref: dict[str, Any], payload: PayloadRef
    ) -> NewEvent:
        meta: dict[str, Routing] = {
            "result_id": str(result_id),
            "store": ref["store"],
            "scope": ref["scope"],
            "task": task,
        }
        if ref["expires_at"] is not None:
            meta["expires_at"] = ref["expires_at"]
        return NewEvent(
            type="result.stored",
            root=Root("execution", self._item.execution_id),
            tenant_id=self._item.tenant_id,
            organization_id=self._item.organization_id,
            idempotency_key=f"result.stored/{result_id}",
            event_time=self._clock.now(),
            catalog_id=self._item.catalog_id,
            node_name=self._item.step,
            meta=meta,
            result=ref,
            payload_ref=payload,
        )


def encode(data: Any) -> bytes:
    """Return a result as JSON.

    Raises:
        Refused: it is none.
    """
    try:
        return orjson.dumps(data, default=str)
    except TypeError as error:
        raise Refused(f"the result is not JSON: {error}; return text for what is not") from error


def _text(config: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(config, default=str, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # whether a tool can use such a value is for the tool to say
        return repr(config).encode(errors="replace")


def _asks(kind: str, config: Mapping[str, Any]) -> bool:
    """Say whether a task looks for results without their names: it lists them, or has a key."""
    if kind not in _ASKING:
        return False
    inner = config.get("args")
    given = {**(inner if isinstance(inner, dict) else {}), **config}
    ref = given.get("ref")
    return given.get("action") == "list" or (isinstance(ref, str) and _KEY in ref)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: no NaN, no tuples."""
    return orjson.loads(encode(value))


async def _selected(policy: ResultPolicy, data: Json, size: int) -> dict[str, Json]:
    if not policy.select or size < IN_A_THREAD_BYTES:
        return policy.extract(data)
    return await asyncio.to_thread(policy.extract, data)


def _look(data: Json, limit: int) -> Json:
    look = encode(preview_of(data, limit))
    found: Json = orjson.loads(look) if is_for_events(look) else None
    return found


def _small(extracted: dict[str, Json]) -> dict[str, Json]:
    if not extracted:
        return {}
    data = encode(extracted)
    if len(data) > EXTRACTED_BYTES:
        why = f"the selected fields have {len(data)} bytes, {EXTRACTED_BYTES} are allowed"
        raise NotInEvents(f"{why}; select less of the result")
    if not is_for_events(data):
        why = "a selected field holds a NUL character or is nested too deep"
        raise NotInEvents(f"{why}, and no event can carry it")
    found: dict[str, Json] = orjson.loads(data)
    return found
