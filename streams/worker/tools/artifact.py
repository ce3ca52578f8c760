"""The tool that puts, gets and lists payloads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streams.errors import Refused
from streams.events.locator import BadLocator
from streams.events.model import Json, PayloadRef
from streams.payload.content import reference_json
from streams.payload.errors import PayloadCorrupt, PayloadForeign, PayloadMissing
from streams.payload.media import is_json, text_of
from streams.payload.port import ARROW, JSON, Compression, PayloadStore, Scope
from streams.playbook.spelling import Spelling
from streams.results.lookup import ExpiredResult, ForeignResult, NoSuchResult, Results
from streams.results.reading import MANIFEST, RowCheck, TooManyRows
from streams.worker.attempt.reading import handed
from streams.worker.errors import VALUE_BYTES, BadConfig, UnknownCredential, ValueTooLarge
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.artifact_config import (
    codec_of,
    content_type_of,
    encoded,
    execution_id_of,
    find_reference,
    is_value,
    plain_type,
    reference_of,
    with_args,
    with_input,
)
from streams.worker.tools.byte_range import parse_range, read_range
from streams.worker.tools.download import ByteSource, Downloads, SourceUnavailable, from_file
from streams.worker.tools.task_config import failed

TEXT = "text/plain; charset=utf-8"
ACTIONS = ("get", "put", "list")
SOURCES = ("data", "url", "file")
_REQUEST = ("url", "headers", "auth", "timeout")
_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (BadConfig, "artifact.config"),
    (UnknownCredential, "artifact.config"),
    (BadLocator, "artifact.config"),
    (SourceUnavailable, "artifact.source"),
    (ValueTooLarge, "artifact.too_large"),
    (TooManyRows, "artifact.too_large"),
    (NoSuchResult, "artifact.missing"),
    (PayloadMissing, "artifact.missing"),
    (ExpiredResult, "artifact.expired"),
    (ForeignResult, "artifact.refused"),
    (PayloadForeign, "artifact.refused"),
    (PayloadCorrupt, "artifact.corrupt"),
)


class ArtifactTool:
    """`get` reads a `ref`, `put` stores bytes, `list` returns an execution's stored results.

    `put` stores `data`, or streams a `url` or a `file` below the sink folder. A `ref` is the
    name of a result (`_ref`), a result reference, the answer of a put, or the `key` in it, of
    the same execution; one of another tenant or organization is refused. `range` selects some
    of its bytes. Bytes that are not text are base64, and `meta.encoding` says so. Fields may
    also be given in `args`. NoETL's spelling has `input.result_ref`, which may be a result that
    was too small to be stored: it is returned as it is.
    """

    def __init__(
        self,
        payloads: PayloadStore,
        results: Results | None = None,
        *,
        downloads: Downloads | None = None,
        folder: Path | None = None,
        value_bytes: int = VALUE_BYTES,
    ) -> None:
        self._payloads, self._known, self._downloads = payloads, results, downloads
        self._folder, self._value_bytes = folder, value_bytes

    async def run(self, config: Config, call: Call) -> Outcome:
        """Get, put or list.

        Raises:
            Unavailable: the store or the log is down.
        """
        is_noetl = call.spelling is Spelling.NOETL
        given = with_input(config) if is_noetl else with_args(config)
        scope, action = Scope(call.tenant_id, call.organization_id), given.get("action", "get")
        try:
            if action == "put":
                return await self._put(given, scope, call)
            if action == "get":
                if is_noetl and is_value(given.get("ref")):
                    return Outcome(status="success", data=given["ref"])
                check = None if self._known is None else self._known.ends(scope)
                ref = await self._payload(given, scope, call)
                return await self._get(ref, given.get("range"), check)
            if action == "list":
                return await self._list(given, scope, call.execution_id)
            raise BadConfig(f"'action' must be {', '.join(ACTIONS)}, not {action!r}")
        except (Refused, PayloadMissing, PayloadCorrupt) as error:
            kind = next((name for known, name in _KINDS if isinstance(error, known)), None)
            if kind is None:
                raise
            return failed(kind, str(error))

    async def close(self) -> None:
        """Close the client, but not the store, which is shared."""
        if self._downloads is not None:
            await self._downloads.close()

    @property
    def _results(self) -> Results:
        if self._known is None:
            raise BadConfig("results cannot be looked up by name: there is no log")
        return self._known

    async def _put(self, given: Mapping[str, Json], scope: Scope, call: Call) -> Outcome:
        named = [name for name in SOURCES if name in given]
        if len(named) != 1:
            raise BadConfig(f"'put' needs one of {', '.join(map(repr, SOURCES))}, not {named}")
        kind, codec = content_type_of(given), codec_of(given)
        if named == ["url"]:
            if self._downloads is None:
                raise BadConfig("'url' is not supported here")
            config = {name: given[name] for name in _REQUEST if name in given}
            async with self._downloads.open(config, call) as source:
                ref = await self._store(scope, source, kind, codec)
        elif named == ["file"]:
            ref = await self._store(scope, from_file(self._folder, given), kind, codec)
        else:
            value = given["data"]
            kind = kind or (TEXT if isinstance(value, str) else JSON)
            ref = await self._payloads.put(
                scope, encoded(value, kind), media_type=kind, compression=codec
            )
        # As a sink's answer, it locates the data.
        data: dict[str, Json] = {"store": "object", "key": ref.uri, "ref": reference_json(ref)}
        return Outcome(status="success", data=data, stored=ref)

    async def _store(
        self, scope: Scope, source: ByteSource, kind: str | None, codec: Compression | None
    ) -> PayloadRef:
        media_type = kind or plain_type(source.media_type)
        return await self._payloads.store(
            scope, source.pieces, media_type=media_type, compression=codec
        )

    async def _get(self, ref: PayloadRef, asked: Json, check: RowCheck | None = None) -> Outcome:
        meta: dict[str, Json] = {"media_type": ref.media_type, "byte_length": ref.byte_length}
        if asked is not None:
            if ref.media_type == MANIFEST:
                raise BadConfig("'range' counts bytes, and a loop has rows; omit it")
            first, last = parse_range(asked, ref.byte_length)
            part = await read_range(self._payloads, ref, first, last, self._value_bytes)
            value, notes = text_of(part, ref.media_type)
            meta |= {"range": f"{first}-{last}", **notes}
            return Outcome(status="success", data=value, meta=meta)
        if ref.media_type in (MANIFEST, ARROW) or is_json(ref.media_type):
            data = await handed(self._payloads, ref, self._value_bytes, check=check)
            return Outcome(status="success", data=data, meta=meta)
        if ref.byte_length > self._value_bytes:
            raise ValueTooLarge(ref.uri, ref.byte_length, self._value_bytes)
        value, notes = text_of(await self._payloads.get(ref), ref.media_type)
        return Outcome(status="success", data=value, meta={**meta, **notes})

    async def _list(self, given: Mapping[str, Json], scope: Scope, own: int) -> Outcome:
        execution_id = execution_id_of(given.get("execution_id") or own)
        found = await self._results.of_execution(
            execution_id, scope, step=_name(given, "step"), task=_name(given, "task")
        )
        return Outcome(status="success", data=[one.to_json() for one in found])

    async def _payload(self, given: Mapping[str, Json], scope: Scope, call: Call) -> PayloadRef:
        ref = find_reference(given.get("ref"))
        if ref is None:
            raise BadConfig("'ref' is missing or null: a small result is in its event, not stored")
        if isinstance(ref, str):
            return (await self._results.find(ref, scope, call.execution_id)).payload
        if isinstance(ref, dict):
            return reference_of(ref, scope)
        raise BadConfig(f"'ref' is {type(ref).__name__}, not the name of a result")


def _name(given: Mapping[str, Json], key: str) -> str | None:
    value = given.get(key)
    return None if value is None else str(value)
