"""Settings that are accepted but have no effect; `streams config show` and roles report them."""

from __future__ import annotations

from collections.abc import Iterator

from streams.settings.layers import LayerEntry, Path, lies_in
from streams.settings.load import Loaded
from streams.settings.model import Settings
from streams.settings.payload_store import EVENT_BYTES
from streams.settings.projections import DEFAULT_STORE

NOT_USED_YET: tuple[Path, ...] = (
    ("runtime", "scheduler", "locality_preference"),
    ("frame_policy_defaults", "reduce"),
)
_ONLY_S3: tuple[Path, ...] = (
    ("payload_store", "encryption_at_rest"),
    ("payload_store", "connection", "region"),
)
_EXTERNAL_ENGINE = ("include_payload_refs", "barrier_interval_ms")
_SNAPSHOTS: Path = ("snapshots", "backend")
_THRESHOLD: Path = ("payload_store", "threshold_bytes")


def why_unused(path: Path, settings: Settings) -> str | None:
    """Return why the setting at `path` has no effect; None: it has one."""
    if lies_in(path, NOT_USED_YET):
        return "not used yet"
    if path == _SNAPSHOTS and settings.snapshots.backend != "postgres":
        return "not available in this version; snapshots are stored in Postgres"
    if path[0] in ("projection_stores", "materializations"):
        return _why_no_projection(path, settings)
    backend = settings.payload_store.backend
    if lies_in(path, _ONLY_S3) and backend not in ("s3", "seaweedfs"):
        return f"not used by the backend {backend}"
    return None


def _why_no_projection(path: Path, settings: Settings) -> str | None:
    if len(path) == 1:
        return None  # an empty section
    section, name, *keys = path
    if section == "materializations":
        if settings.materializations[name].store is None:
            return "not used yet; name a `store` of `projection_stores`"
        return "not used yet" if keys[-1] in _EXTERNAL_ENGINE else None
    if name == DEFAULT_STORE:
        return "not used yet" if "connection" in keys else None
    if name not in settings.stores_of_projections.values():
        return "not used: no entry of `materializations` names this store"
    return None


def ineffective(loaded: Loaded) -> Iterator[tuple[LayerEntry, str]]:
    """Yield the settings that somebody gave and that have no effect, or another one."""
    for entry in loaded.given():
        if (why := why_unused(entry.path, loaded.settings)) is not None:
            yield entry, why
        elif entry.path == _THRESHOLD and _number(entry.value) > EVENT_BYTES:
            yield entry, f"reduced to {EVENT_BYTES}, the most that an event can carry"


def _number(value: object) -> int:
    text = str(value)
    return int(text) if text.isdecimal() else 0
