"""Settings that are accepted but have no effect; `streams config show` and roles report them."""

from __future__ import annotations

from collections.abc import Iterator

from streams.settings.layers import LayerEntry, Path, lies_in
from streams.settings.load import Loaded
from streams.settings.model import Settings
from streams.settings.payload_store import EVENT_BYTES

NOT_USED_YET: tuple[Path, ...] = (
    ("runtime", "scheduler", "locality_preference"),
    ("projection_stores",),
    ("materializations",),
    ("frame_policy_defaults", "reduce"),
)
_ONLY_S3: tuple[Path, ...] = (
    ("payload_store", "encryption_at_rest"),
    ("payload_store", "connection", "region"),
)
_SNAPSHOTS: Path = ("snapshots", "backend")
_THRESHOLD: Path = ("payload_store", "threshold_bytes")


def why_unused(path: Path, settings: Settings) -> str | None:
    """Return why the setting at `path` has no effect; None: it has one."""
    if lies_in(path, NOT_USED_YET):
        return "not used yet"
    if path == _SNAPSHOTS and settings.snapshots.backend != "postgres":
        return "not available in this version; snapshots are stored in Postgres"
    backend = settings.payload_store.backend
    if lies_in(path, _ONLY_S3) and backend not in ("s3", "seaweedfs"):
        return f"not used by the backend {backend}"
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
