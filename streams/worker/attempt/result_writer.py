"""Writer of one attempt's results: payloads, copies in tiers, `result.stored` events."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from itertools import islice

import orjson

from streams.clock import Clock
from streams.events.model import Json, NewEvent, PayloadRef, Root
from streams.ids import derive_id
from streams.kafka.work.item import WorkItem
from streams.log.port import EventStore
from streams.payload.port import JSON, PayloadStore, Scope
from streams.playbook.model import Task
from streams.playbook.result_policy import INLINE_BYTES, LARGE, USUAL, ResultPolicy
from streams.results.copies.port import Copies, Copy
from streams.results.reference import ResultRef, result_uri, stored_result
from streams.results.spill import Group, encode_result, group_of, is_inline
from streams.worker.attempt.result_fields import event_preview, selected_fields
from streams.worker.attempt.views import Placement
from streams.worker.port import Config, Retry

_log = logging.getLogger(__name__)
_BATCH = 256
_IDS = re.compile(rb"[0-9]+")
_READERS, _KEY = ("artifact", "result"), "/payloads/sha256/"


class ResultWriter:
    """Stores results: always in the payload store first, then a copy in the requested tier.

    Events are buffered until `publish`, which precedes the attempt's last event and any task
    that gets one of their names, so that a visible reference can always be resolved. Events of a
    lost attempt are harmless: their ids are unique to the attempt.
    """

    def __init__(
        self,
        item: WorkItem,
        payloads: PayloadStore,
        copies: Copies,
        log: EventStore,
        clock: Clock,
        retry: Retry,
        inline_bytes: int = INLINE_BYTES,
        large: str = LARGE,
        *,
        cause_id: int | None = None,
    ) -> None:
        self._item, self._payloads, self._copies = item, payloads, copies
        self._log, self._clock, self._retry = log, clock, retry
        self._inline_bytes, self._large, self._cause_id = inline_bytes, large, cause_id
        self._scope = Scope(item.tenant_id, item.organization_id)
        self._unpublished: dict[str, NewEvent] = {}
        self._publishing = asyncio.Lock()

    async def place(self, task: Task, data: Json, partition: str) -> Placement:
        """Store a result as the task's `spec.result` asks for."""
        assert task.result is not None
        return await self.store(task.label, task.result, data, partition)

    async def store(self, task: str, policy: ResultPolicy, data: Json, partition: str) -> Placement:
        """Store a result if its policy asks for it, or if it does not fit into its event.

        Raises:
            NotInEvents: an event cannot carry its selected fields.
        """
        encoded = encode_result(data)
        extracted = await selected_fields(policy, data, len(encoded))
        if (kind := self._store_of(task, policy, encoded)) is None:
            return Placement(extracted)
        payload = await self._put(encoded, policy)
        result_id, uri = self._name(task, partition)
        expires_at = self._end(policy)
        ref = ResultRef.to_payload(
            uri,
            payload,
            store=kind,
            scope=policy.scope,
            expires_at=expires_at,
            extracted=extracted,
            preview=event_preview(data, policy.preview_max_bytes),
        )
        self._unpublished[str(result_id)] = self._event(result_id, task, ref, payload)
        if kind == "db":
            await self.publish()  # kv rows are deleted through their event: each needs one
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
        return Placement(extracted, ref)

    async def _put(self, encoded: bytes, policy: ResultPolicy) -> PayloadRef:
        packing = policy.compression
        return await self._retry(
            lambda: self._payloads.put(self._scope, encoded, media_type=JSON, compression=packing)
        )

    def _store_of(self, task: str, policy: ResultPolicy, encoded: bytes) -> str | None:
        """Return the tier of a result; None where its event carries it."""
        kind = policy.store_of(len(encoded), self._inline_bytes, self._large)
        if kind is None:
            return None if is_inline(encoded, self._inline_bytes) else "object"
        if policy.kind == "kv" and kind != "kv":
            details = (self._item.step, task, len(encoded), kind)
            _log.info("%s.%s: %s bytes are too large for kv, stored in %s", *details)
        return kind

    async def spill(self, name: str, values: Mapping[str, Json]) -> Group:
        """Store values that do not fit into their event as one result, and return its group."""
        # Named by content: stored again after some values were dropped, it is another result.
        partition = f"{name}/{sha256(encode_result(values)).hexdigest()}"
        placed = await self.store(name, USUAL, dict(values), partition)
        assert placed.reference is not None
        return group_of(values, placed.reference.payload(self._scope))

    def register(self, task: Task, payload: PayloadRef, partition: str) -> ResultRef:
        """Register a payload that a tool has stored as a result; it has no copy and no inline data.

        Its retention is that of the task's `spec.result`.
        """
        policy = task.result or USUAL
        result_id, uri = self._name(task.label, partition)
        ref = ResultRef.to_payload(
            uri,
            payload,
            store=policy.place_of(payload.byte_length, self._large),
            scope=policy.scope,
            expires_at=self._end(policy),
        )
        self._unpublished[str(result_id)] = self._event(result_id, task.label, ref, payload)
        return ref

    async def publish(self) -> None:
        """Append the buffered events."""
        async with self._publishing:  # rows of a frame may publish at the same time
            while self._unpublished:
                ids = list(islice(self._unpublished, _BATCH))
                batch = [self._unpublished[one] for one in ids]
                await self._retry(lambda batch=batch: self._log.append(batch))  # type: ignore[misc]
                for one in ids:
                    del self._unpublished[one]

    async def publish_before(self, kind: str, config: Config) -> None:
        """Publish if the task could read a stored result, by its name or by listing.

        Most tasks cannot, so thousands of rows publish their results in one batch.
        """
        if self._unpublished and (_reads_results(kind, config) or self._names_unpublished(config)):
            await self.publish()

    def _names_unpublished(self, config: Config) -> bool:
        """Return whether the configuration holds the name of an unpublished result."""
        text = _text(config)
        if str(self._item.execution_id).encode() not in text:
            return False
        return any(one.decode() in self._unpublished for one in _IDS.findall(text))

    def _name(self, task: str, partition: str) -> tuple[int, str]:
        """Return a result's id, unique to this attempt, and its name."""
        item = self._item
        result_id = derive_id(item.entity_id, item.attempt, f"result/{task}/{partition}")
        return result_id, result_uri(item.execution_id, item.step, task, result_id)

    def _end(self, policy: ResultPolicy) -> datetime | None:
        return None if policy.ttl is None else self._clock.now() + policy.ttl

    def _event(self, result_id: int, task: str, ref: ResultRef, payload: PayloadRef) -> NewEvent:
        event = stored_result(result_id, self._item.step, task, ref, payload)
        return NewEvent(
            root=Root("execution", self._item.execution_id),
            tenant_id=self._item.tenant_id,
            organization_id=self._item.organization_id,
            idempotency_key=f"result.stored/{result_id}",
            event_time=self._clock.now(),
            causation_id=self._cause_id,
            catalog_id=self._item.catalog_id,
            **event.columns(),
        )


def _text(config: Config) -> bytes:
    try:
        return orjson.dumps(config, default=str, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # the tool rejects such a value
        return repr(config).encode(errors="replace")


def _reads_results(kind: str, config: Config) -> bool:
    """Return whether a task reads results without their names: it lists them, or has a key."""
    if kind not in _READERS:
        return False
    inner = config.get("args")
    given = {**(inner if isinstance(inner, dict) else {}), **config}
    ref = given.get("ref")
    return given.get("action") == "list" or (isinstance(ref, str) and _KEY in ref)
