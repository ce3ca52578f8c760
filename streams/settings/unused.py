"""Settings that are accepted but have no effect yet; `streams config show` marks them."""

from __future__ import annotations

from streams.settings.layers import Path, lies_in

NOT_USED_YET: tuple[Path, ...] = (
    ("runtime", "scheduler", "locality_preference"),
    ("event_store", "replay"),
    ("projection_stores",),
    ("materializations",),
    ("snapshots",),
)


def is_used(path: Path) -> bool:
    """Return whether the setting at `path` has an effect."""
    return not lies_in(path, NOT_USED_YET)
