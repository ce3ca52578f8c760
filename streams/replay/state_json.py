"""JSON of a replayed state: 64-bit ids as strings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from streams.events.model import PayloadRef
from streams.events.upcast import UPCASTERS
from streams.payload.content import reference_json
from streams.projector.digests import ALL, PARTS, row_checksum
from streams.projector.rows import Row
from streams.replay.business import ReplayedBusiness
from streams.replay.organization import OrganizationDigest, OrganizationPage
from streams.replay.state import ReplayedState, known_projection

_LISTS = {"stage": "stages", "frame": "frames", "command": "commands", "result_ref": "results"}


def state_json(state: ReplayedState, projection: str) -> dict[str, object]:
    """Return a state, or one of its projections."""
    kind = known_projection(projection)
    return {
        **subject_json(state, projection),
        "checksum": state.checksum_of(projection),
        "checksums": state.checksums if kind == ALL else {kind: state.checksums[kind]},
        "state": _parts(state, kind),
        "snapshot": state.snapshot,
        "payloads": {"count": state.payloads.length, "digest": state.payloads.digest},
        "upcasters": _upcasters(state),
        "events_read": state.events_read,
        "read_from": state.source,
    }


def subject_json(state: ReplayedState | ReplayedBusiness, projection: str) -> dict[str, object]:
    """Return what a state is the state of: an execution, a projection, and a moment."""
    at = state.as_of
    return {
        "tenant_id": state.scope.tenant_id,
        "organization_id": state.scope.organization_id,
        "execution_id": str(state.execution_id),
        "projection": projection,
        "as_of": {
            "position": at.seq,
            "log_position": at.position,
            "event_id": str(at.event_id),
            "event_type": at.event_type,
            "time": at.time,
            "chain": at.chain,
        },
    }


def organization_json(page: OrganizationPage) -> dict[str, object]:
    """Return a page of an organization's executions."""
    digest = OrganizationDigest()
    digest.add(page.executions)
    return {
        "tenant_id": page.scope.tenant_id,
        "organization_id": page.scope.organization_id,
        "as_of": {"log_position": page.cutoff.seq, "time": page.cutoff.time},
        "executions": [
            {
                "execution_id": str(one.execution_id),
                "path": one.path,
                "status": one.status,
                "position": one.seq,
                "checksum": one.checksum,
            }
            for one in page.executions
        ],
        "by_status": digest.by_status,
        "checksum": digest.checksum,
        "next": None if page.next_id is None else str(page.next_id),
    }


def _upcasters(state: ReplayedState) -> list[dict[str, object]]:
    """Return the steps that were applied; to how many of the events read, and their code."""
    digests = UPCASTERS.versions()
    return [
        {"upcaster": name, "events": count, "digest": digests[name]}
        for name, count in sorted(state.upcasts.items())
    ]


def _parts(state: ReplayedState, kind: str) -> dict[str, object]:
    found: dict[str, object] = {}
    if kind in ("execution", ALL):
        found["execution"] = row_json(state.execution)
    for part in PARTS:
        if kind not in (part, ALL):
            continue
        chain = getattr(state.ended, part)
        found[_LISTS[part]] = {
            "open": [
                {**row_json(row), "checksum": row_checksum(row)} for row in state.rows_of(part)
            ],
            "ended": {"count": chain.length, "digest": chain.digest},
        }
    return found


def row_json(row: Row) -> Mapping[str, object]:
    """Return a row's fields."""
    return {one.name: _value(one.name, getattr(row, one.name)) for one in fields(row)}


def _value(name: str, value: object) -> object:
    if isinstance(value, PayloadRef):
        return reference_json(value)
    if name.endswith("_id") and isinstance(value, int):
        return str(value)
    return value
