"""Snapshots of executions: a view, and everything it was made with.

They make replay faster and are never the authority: one that was made by other code, or does
not match its checksum or the log, is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from blake3 import blake3
from pydantic import TypeAdapter, ValidationError

from streams import execution, projector
from streams.errors import Inconsistent
from streams.events.model import Event
from streams.events.upcast import UPCASTERS
from streams.projector.core import View, checksums
from streams.projector.digests import ALL
from streams.projector.rows import PROJECTION_VERSION, SnapshotRow

PROJECTION = ALL
_VIEW = TypeAdapter(View)
_FOLD = ("core.py", "digests.py", "results.py", "rows.py", "shapes.py")
"""The files of this package that determine a view."""
NO_ENCRYPTION = "none"


class UnusableSnapshot(Inconsistent):
    """A snapshot cannot be used: the message says why."""


def snapshot_of(view: View, event: Event) -> SnapshotRow:
    """Return a snapshot of the view after `event`."""
    return SnapshotRow(
        aggregate_type="execution",
        aggregate_id=str(event.root.id),
        projection=PROJECTION,
        seq=event.seq,
        position=event.position,
        chain=event.chain,
        tenant_id=event.tenant_id,
        organization_id=event.organization_id,
        projection_version=PROJECTION_VERSION,
        code_digest=code_digest(),
        upcaster_versions=UPCASTERS.versions(),
        payload_root=view.payloads.digest,
        encryption_context={"scheme": NO_ENCRYPTION, "tenant_id": event.tenant_id},
        state=_VIEW.dump_json(view).decode(),
        checksum=checksums(view)[ALL],
    )


def view_of(snapshot: SnapshotRow) -> View:
    """Return the view in a snapshot.

    Raises:
        UnusableSnapshot: other code made it, or it does not match its checksum.
    """
    if snapshot.projection_version != PROJECTION_VERSION:
        raise UnusableSnapshot(f"it is of version {snapshot.projection_version} of the projection")
    if snapshot.code_digest != code_digest():
        raise UnusableSnapshot("other code made it")
    if snapshot.upcaster_versions != UPCASTERS.versions():
        raise UnusableSnapshot("it was made with other upcasters")
    try:
        view = _VIEW.validate_json(snapshot.state)
    except ValidationError as error:
        raise UnusableSnapshot("its state cannot be read") from error
    if view.seq != snapshot.seq or checksums(view)[ALL] != snapshot.checksum:
        raise UnusableSnapshot("its state does not match its checksum")
    if view.payloads.digest != snapshot.payload_root:
        raise UnusableSnapshot("its payloads do not match their digest")
    return view


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return the digest of the code that folds: the files of the fold and of its rows."""
    digest = blake3()
    for path in _files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return str(digest.hexdigest())


def _files() -> Iterable[Path]:
    yield from sorted(Path(execution.__path__[0]).glob("*.py"))
    home = Path(projector.__path__[0])
    yield from (home / name for name in _FOLD)
