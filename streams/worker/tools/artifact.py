"""The tool that puts a value into the payload store, and gets one by its name or reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from streams.envelope.locator import BadLocator, Locator
from streams.envelope.model import Json, PayloadRef
from streams.errors import Refused
from streams.execution.lookup import ForeignResult, NoSuchResult, ResultExpired, Results
from streams.payload.content import reference_json
from streams.payload.errors import PayloadCorrupt, PayloadMissing
from streams.payload.port import JSON, PayloadStore, Scope
from streams.payload.reading import read_value
from streams.payload.results import is_reference
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.failure import failed

TEXT = "text/plain; charset=utf-8"
ACTIONS = ("get", "put", "list")
_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (BadConfig, "artifact.config"),
    (BadLocator, "artifact.config"),
    (NoSuchResult, "artifact.missing"),
    (PayloadMissing, "artifact.missing"),
    (ResultExpired, "artifact.expired"),
    (ForeignResult, "artifact.refused"),
    (PayloadCorrupt, "artifact.corrupt"),
)


class ArtifactTool:
    """`get` wants a `ref`, `put` stores `data`, `list` names an execution's stored results.

    A `ref` is the name of a result (`_ref`), a result reference, or what a put answered; one
    of another tenant or organization is refused. Keys may be given below `args`, too.
    """

    def __init__(self, payloads: PayloadStore, results: Results | None = None) -> None:
        self._payloads, self._known = payloads, results

    async def run(self, config: Config, call: Call) -> Outcome:
        """Get, put or list.

        Raises:
            Unavailable: the store or the log is down.
        """
        given = _given(config)
        scope, action = Scope(call.tenant_id, call.organization_id), given.get("action", "get")
        try:
            if action == "put":
                return await self._put(given, scope)
            if action == "get":
                return await self._get(await self._payload(given, scope))
            if action == "list":
                return await self._list(given, scope, call.execution_id)
            raise BadConfig(f"'action' must be {', '.join(ACTIONS)}, not {action!r}")
        except (Refused, PayloadMissing, PayloadCorrupt) as error:
            kind = next((name for known, name in _KINDS if isinstance(error, known)), None)
            if kind is None:
                raise
            return failed(kind, str(error))

    async def close(self) -> None:
        """Leave the store open: it is not this tool's own."""

    @property
    def _results(self) -> Results:
        if self._known is None:
            raise BadConfig("names of results cannot be looked up here: there is no log")
        return self._known

    async def _put(self, given: Mapping[str, Any], scope: Scope) -> Outcome:
        if "data" not in given:
            raise BadConfig("'data' is missing: the value to put")
        value = given["data"]
        if isinstance(value, str):
            ref = await self._payloads.put(scope, value.encode(), media_type=TEXT)
        else:
            ref = await self._payloads.put(scope, orjson.dumps(value), media_type=JSON)
        # As a sink's answer, it says where the data is.
        told: dict[str, Any] = {"store": "object", "key": ref.uri, "ref": reference_json(ref)}
        return Outcome(status="success", data=told)

    async def _get(self, ref: PayloadRef) -> Outcome:
        meta: dict[str, Json] = {"media_type": ref.media_type, "byte_length": ref.byte_length}
        value = await read_value(self._payloads, ref)
        return Outcome(status="success", data=value, meta=meta)

    async def _list(self, given: Mapping[str, Any], scope: Scope, own: int) -> Outcome:
        execution = str(given.get("execution_id") or own)
        if not (execution.isascii() and execution.isdigit()):
            raise BadConfig(f"'execution_id' is {execution!r}, not a number")
        found = await self._results.of_execution(
            int(execution), scope, step=given.get("step"), task=given.get("task")
        )
        return Outcome(status="success", data=[dict(one) for one in found])

    async def _payload(self, given: Mapping[str, Any], scope: Scope) -> PayloadRef:
        ref = given.get("ref")
        if ref is None:
            raise BadConfig("'ref' is missing or null: a small result is in its event, not stored")
        if isinstance(ref, dict) and is_reference(ref):
            ref = ref.get("ref")
        if isinstance(ref, str):
            return (await self._results.find(ref, scope)).payload
        if isinstance(ref, dict):
            return _reference(ref, scope)
        raise BadConfig(f"'ref' is {type(ref).__name__}, not the name of a result")


def _given(config: Config) -> dict[str, Any]:
    inner = config.get("args")
    return {**(inner if isinstance(inner, dict) else {}), **config}


def _reference(fields: Mapping[str, Any], scope: Scope) -> PayloadRef:
    names = ("uri", "sha256", "media_type", "byte_length")
    if missing := [name for name in names if name not in fields]:
        raise BadConfig(
            f"'ref' has no {missing[0]!r}; give the whole reference that a put answered"
        )
    ref = PayloadRef(**{name: fields[name] for name in names})
    try:
        ours = Locator.payload(scope.tenant_id, scope.organization_id, str(ref.sha256))
    except BadLocator as error:
        raise BadConfig(f"'ref' names no payload: {error}") from error
    if ref.uri != str(ours):
        raise BadConfig(f"{ref.uri} does not belong to this tenant and organization")
    return ref
