"""Audit of the snapshots of one execution, while its log is folded."""

from __future__ import annotations

from dataclasses import dataclass

from streams.events.model import Event
from streams.projector.core import View, checksums
from streams.projector.digests import ALL
from streams.projector.rows import SnapshotRow
from streams.projector.snapshots import UnusableSnapshot, code_digest, view_of
from streams.replay.audit.port import ProjectedRows
from streams.replay.checks import Check, Status, failed, passed

SNAPSHOTS, FACTS = "snapshots", "snapshot facts"


@dataclass(slots=True)
class SnapshotAudit:
    """Compares each snapshot with the fold at its event."""

    stored: ProjectedRows
    execution_id: int
    coming: SnapshotRow | None = None
    """The next one; `start` reads the first."""
    count: int = 0
    other_code: int = 0
    first_wrong: str | None = None
    first_incomplete: str | None = None

    async def start(self) -> None:
        """Read the first snapshot."""
        self.coming = await self.stored.snapshot_after(self.execution_id, 0)

    async def add(self, view: View, event: Event) -> None:
        """Compare the snapshot of this event; the view is after it."""
        if (one := self.coming) is None or one.seq != event.seq:
            return
        self.count += 1
        name = f"snapshot at event {one.seq}"
        if missing := missing_facts(one):
            self.first_incomplete = self.first_incomplete or f"{name}: {', '.join(missing)}"
        if (wrong := self._difference(one, view, event)) is not None:
            self.first_wrong = self.first_wrong or f"{name}: {wrong}"
        self.coming = await self.stored.snapshot_after(self.execution_id, one.seq)

    def _difference(self, one: SnapshotRow, view: View, event: Event) -> str | None:
        if (one.position, one.chain) != (event.position, event.chain):
            return "its position or chain is not the log's"
        if one.code_digest != code_digest():
            self.other_code += 1
            return None
        found = checksums(view)[ALL]
        if one.checksum != found:
            return f"its checksum is {one.checksum}, the log's {found}"
        if one.payload_root != view.payloads.digest:
            return "its payload digest is not the log's"
        try:
            view_of(one)
        except UnusableSnapshot as error:
            return str(error)
        return None

    def checks(self, head_seq: int) -> list[Check]:
        """Return the outcome: their checksums, and the six facts each must record."""
        if self.coming is not None and self.coming.seq > head_seq:
            self.count += 1
            self.first_wrong = f"snapshot at event {self.coming.seq}: the log ends at {head_seq}"
        if not self.count:
            return [
                Check(name, Status.NOT_APPLICABLE, "it has none") for name in (SNAPSHOTS, FACTS)
            ]
        note = f", {self.other_code} made by other code not compared" if self.other_code else ""
        numbers = f"{self.count} snapshots"
        return [
            passed(SNAPSHOTS, f"{numbers} equal the fold{note}")
            if self.first_wrong is None
            else failed(SNAPSHOTS, numbers, self.first_wrong),
            passed(FACTS, f"{numbers} with all six")
            if self.first_incomplete is None
            else failed(FACTS, numbers, self.first_incomplete),
        ]


def missing_facts(one: SnapshotRow) -> list[str]:
    """Return which of the six recorded facts a snapshot lacks.

    A payload digest may be empty only where no event before it refers to a payload; then the
    chain of digests is empty too, which the comparison with the fold shows.
    """
    facts = {
        "event position": one.position > 0 and one.seq > 0,
        "projection code version": one.projection_version > 0 and bool(one.code_digest),
        "upcaster versions": isinstance(one.upcaster_versions, dict),
        "payload digest set": isinstance(one.payload_root, str),
        "tenant encryption context": bool(one.encryption_context.get("tenant_id")),
        "fold checksum": bool(one.checksum),
    }
    return [name for name, is_there in facts.items() if not is_there]
