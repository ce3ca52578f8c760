"""JSON of replayed business projections."""

from __future__ import annotations

import orjson

from streams.events.upcast import UPCASTERS
from streams.projector.business.core import state_checksum
from streams.replay.business import ReplayedBusiness, ReplayedProjection
from streams.replay.state import BUSINESS
from streams.replay.state_json import subject_json


def business_json(state: ReplayedBusiness) -> dict[str, object]:
    """Return the business projections of an execution."""
    return {
        **subject_json(state, BUSINESS),
        "checksum": state.checksum,
        "checksums": {_name(one, state): one.checksum for one in state.projections},
        "state": {"projections": [_projection(one) for one in state.projections]},
        "snapshot": None,
        "payloads": {"count": state.payloads.length, "digest": state.payloads.digest},
        "upcasters": UPCASTERS.versions(),
        "events_read": state.events_read,
    }


def _name(one: ReplayedProjection, state: ReplayedBusiness) -> str:
    """Return the name of a projection, with its version if there are several."""
    name = one.fold.fold.name
    same = [other for other in state.projections if other.fold.fold.name == name]
    return name if len(same) == 1 else f"{name} v{one.fold.fold.version}"


def _projection(one: ReplayedProjection) -> dict[str, object]:
    fold, states = one.fold.fold, one.fold.states
    return {
        "name": fold.name,
        "version": fold.version,
        "declaration": fold.describe(),
        "problems": one.fold.progress.problems,
        "rows": [
            {
                "key": dict(zip(fold.key, state.key_values, strict=True)),
                "values": fold.result(orjson.loads(state.state)),
                "row_count": state.row_count,
                "first_position": state.first_position,
                "last_position": state.last_position,
                "checksum": state_checksum(state),
            }
            for state in sorted(states.values(), key=lambda state: state.key_digest)
        ],
    }
