"""What a worker's templates can see: the document of a frame or command, made into a scope."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from streams.envelope.model import PayloadRef
from streams.payload.content import reference_from
from streams.payload.port import ARROW, PayloadStore
from streams.payload.rows import decode_rows
from streams.playbook.views import result_view
from streams.work.item import BadWorkItem, WorkItem

CACHE_BYTES = 128 * 1024 * 1024


class Documents:
    """Reads payloads as values, and keeps the last ones: the frames of a stage share theirs.

    What it returns is shared; nobody may change it.
    """

    def __init__(self, payloads: PayloadStore, *, cache_bytes: int = CACHE_BYTES) -> None:
        self._payloads, self._room = payloads, cache_bytes
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    async def read(self, ref: PayloadRef) -> Any:
        """Return the value behind `ref`.

        Raises:
            PayloadMissing: there is no such object.
            PayloadUnavailable: the store is down.
        """
        if (kept := self._kept.get(ref.uri)) is not None:
            self._kept.move_to_end(ref.uri)
            return kept[0]
        data = await self._payloads.get(ref)
        value = decode_rows(data) if ref.media_type == ARROW else orjson.loads(data)
        self._keep(ref.uri, value, len(data))
        return value

    def _keep(self, uri: str, value: Any, size: int) -> None:
        if size > self._room or uri in self._kept:
            return
        self._kept[uri] = (value, size)
        self._bytes += size
        while self._bytes > self._room:
            _, (_, freed) = self._kept.popitem(last=False)
            self._bytes -= freed

    async def document(self, item: WorkItem) -> Mapping[str, Any]:
        """Return the document of a work item, wherever it is.

        Raises:
            BadWorkItem: it has none.
        """
        if item.document is not None:
            return item.document
        if item.document_ref is None:
            return {}
        document = await self.read(item.document_ref)
        if not isinstance(document, dict):
            raise BadWorkItem(f"{item.document_ref.uri}: is no document of a work item")
        return document

    async def scope(
        self, item: WorkItem, document: Mapping[str, Any], reads: Collection[str]
    ) -> dict[str, Any]:
        """Return the names that all rows of the item share.

        The results of earlier steps that are payloads are read here, those that the step's
        templates mention (`reads`), so that they look as if they had always been at hand.
        """
        given = document.get("input") or {}
        args = given.get("args") or {}
        scope: dict[str, Any] = dict(args)
        for name, envelope in (given.get("steps") or {}).items():
            if isinstance(envelope, dict):
                scope[name] = await self._step(name, envelope, reads)
        scope["workload"] = given.get("workload") or {}
        scope["ctx"] = given.get("ctx") or {}
        scope["args"] = args
        scope["vars"] = {}
        scope["iter"] = {}
        scope["execution_id"] = str(item.execution_id)
        return scope

    async def _step(
        self, name: str, envelope: Mapping[str, Any], reads: Collection[str]
    ) -> dict[str, Any]:
        ref = envelope.get("_ref")
        if ref is None or "data" in envelope or name not in reads:
            return result_view(envelope)
        data = await self.read(reference_from(ref))
        return result_view({**envelope, "data": data})
