"""Inputs of a decision besides the plan: payloads, results, playbooks and manifests.

The pure core raises `NeedsInput` for a missing input; the shell loads it and decides again.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from cachetools import FIFOCache

from streams.errors import PoisonRecord, Refused
from streams.events.model import PayloadRef
from streams.execution.plan import Plan
from streams.payload.port import Scope
from streams.planner.limits import LARGEST_EXPRESSION_PAYLOAD_BYTES
from streams.planner.port import PlannerPorts
from streams.results.manifest import EVENTS, parts_of
from streams.results.reading import MANIFEST, TooLargeToRead, encode_manifest, read_value

CACHED_PAYLOADS = 64


class NeedsInput(Exception):
    """A decision needs an input that was not loaded yet."""


class NeedsPayload(NeedsInput):
    """The value of this payload."""

    def __init__(self, ref: PayloadRef) -> None:
        super().__init__(ref.uri)
        self.ref = ref


class NeedsResult(NeedsPayload):
    """The data of a result that a template reads, or why it cannot be read."""


class NeedsPlaybook(NeedsInput):
    """The catalog id of a playbook that a step calls."""

    def __init__(self, path: str, version: int | None) -> None:
        super().__init__(path)
        self.path, self.version = path, version


class NeedsManifest(NeedsInput):
    """The manifest of this stage's rows."""

    def __init__(self, stage_id: int) -> None:
        super().__init__(str(stage_id))
        self.stage_id = stage_id


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Placeholder of a result's data that cannot be read or is too large."""

    why: str


def name_of(ref: PayloadRef) -> str:
    """Return the key of a value: owner, content and media type."""
    return f"{ref.media_type} {ref.uri}"


@dataclass(frozen=True, slots=True)
class Known:
    """The inputs loaded so far: payloads by `name_of`, playbooks by path and version.

    A playbook that does not exist is the text of an error.
    """

    payloads: Mapping[str, Any] = field(default_factory=dict)
    playbooks: Mapping[tuple[str, int | None], tuple[int, int] | str] = field(default_factory=dict)
    manifests: Mapping[int, bytes] = field(default_factory=dict)

    def payload(self, ref: PayloadRef) -> Any:
        """Return the value behind `ref`.

        Raises:
            NeedsPayload: it was not loaded yet.
        """
        if (name := name_of(ref)) not in self.payloads:
            raise NeedsPayload(ref)
        return self.payloads[name]

    def having(self, ref: PayloadRef, value: Any) -> Known:
        """Return the inputs with a value that is stored only with the decision."""
        return replace(self, payloads={**self.payloads, name_of(ref): value})

    def result(self, ref: PayloadRef) -> Any:
        """Return the data of a result, or `Unreadable`.

        Raises:
            NeedsResult: it was not loaded yet.
        """
        if (name := name_of(ref)) not in self.payloads:
            raise NeedsResult(ref)
        return self.payloads[name]

    def manifest(self, stage_id: int) -> bytes:
        """Return the manifest of a stage whose frames have all ended.

        Raises:
            NeedsManifest: it was not loaded yet.
        """
        if stage_id not in self.manifests:
            raise NeedsManifest(stage_id)
        return self.manifests[stage_id]

    def playbook(self, path: str, version: int | None) -> tuple[int, int] | str:
        """Return the catalog id and version, or why it does not exist.

        Raises:
            NeedsPlaybook: it was not looked up yet.
        """
        if (path, version) not in self.playbooks:
            raise NeedsPlaybook(path, version)
        return self.playbooks[(path, version)]


class DecisionInputs:
    """Loads inputs, and caches payloads: later decisions often need them again."""

    def __init__(self, ports: PlannerPorts) -> None:
        self._ports = ports
        self._payloads: FIFOCache[str, Any] = FIFOCache(CACHED_PAYLOADS)

    def known(self) -> Known:
        """Return the inputs of a new decision.

        Inputs it loads itself are retained until it is made, whatever their size.
        """
        return Known(ChainMap({}, self._payloads))

    async def load(self, plan: Plan, need: NeedsInput, known: Known) -> Known:
        """Load one more input.

        Raises:
            Unavailable: the log, the catalog or the payload store is down.
        """
        match need:
            case NeedsPlaybook():
                asked = (need.path, need.version)
                found = await self._playbook(plan, need)
                return replace(known, playbooks={**known.playbooks, asked: found})
            case NeedsManifest():
                made = await manifest_of(self._ports, plan, need.stage_id)
                return replace(known, manifests={**known.manifests, need.stage_id: made})
            case NeedsResult():
                value = await result_of(self._ports, need.ref)
            case NeedsPayload():
                value = orjson.loads(await self._ports.payloads.get(need.ref))
            case _:
                raise need
        self._payloads[name_of(need.ref)] = value
        mine = {**_own(known), name_of(need.ref): value}
        return replace(known, payloads=ChainMap(mine, self._payloads))

    async def _playbook(self, plan: Plan, need: NeedsPlaybook) -> tuple[int, int] | str:
        try:
            return await self._ports.playbooks.resolve(
                plan.tenant_id, plan.organization_id, need.path, need.version
            )
        except Refused as error:
            return str(error)


def _own(known: Known) -> Mapping[str, Any]:
    return known.payloads.maps[0] if isinstance(known.payloads, ChainMap) else known.payloads


async def result_of(ports: PlannerPorts, ref: PayloadRef) -> Any:
    """Return the data of a result, or why an expression cannot read it.

    Raises:
        Unavailable: the payload store is down.
    """
    try:
        return await read_value(ports.payloads, ref, LARGEST_EXPRESSION_PAYLOAD_BYTES)
    except TooLargeToRead as error:
        why = f"has {error.found} bytes, too many to be read between steps"
        hint = "select the fields you need, or name the result in the task that needs it"
        return Unreadable(f"{why}; {hint}")
    except (PoisonRecord, Refused) as error:
        return Unreadable(f"cannot be read: {error}")


async def manifest_of(ports: PlannerPorts, plan: Plan, stage_id: int) -> bytes:
    """Build the manifest of a stage from the log, and store it.

    Raises:
        Unavailable: the log or the payload store is down.
    """
    events = ports.store.read_root(plan.root)
    parts = parts_of([one async for one in events if one.type in EVENTS], stage_id)
    data = encode_manifest(parts)
    # Stored now: the same decision may read the rows.
    scope = Scope(plan.tenant_id, plan.organization_id)
    await ports.payloads.put(scope, data, media_type=MANIFEST)
    return data
