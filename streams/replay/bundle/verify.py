"""Verification of a bundle, without a server: its bytes, its chain, its fold and its payloads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streams.errors import Inconsistent
from streams.events.model import Event, Root
from streams.events.upcast import UPCASTERS
from streams.projector.core import View, checksums
from streams.projector.rows import PROJECTION_VERSION
from streams.projector.snapshots import code_digest
from streams.replay.bundle.archive import EntryPlace, content, entries, whole
from streams.replay.bundle.errors import DamagedBundle
from streams.replay.bundle.file import BundleFile, open_bundle
from streams.replay.bundle.log import BundleLog
from streams.replay.bundle.manifest import (
    DIGESTS,
    EVENTS,
    MANIFEST,
    PAYLOADS,
    BundledExecution,
    FoldCode,
    Manifest,
    unsealed_json,
)
from streams.replay.bundle.records import records
from streams.replay.checks import Check, Status, failed, has_failed, passed
from streams.replay.errors import TamperedLog
from streams.replay.payload_index import PayloadIndex
from streams.replay.state import folded
from streams.replay.verified import VerifiedLog

FILE, EVENT_CHAIN, FOLD, PAYLOAD = "file", "events", "fold", "payloads"
_LAST_SEQ = 2**62


@dataclass(slots=True)
class BundleReport:
    """The outcome of verifying a bundle."""

    manifest: Manifest | None = None
    checks: list[Check] = field(default_factory=list)

    @property
    def is_proven(self) -> bool:
        """Whether nothing failed."""
        return self.manifest is not None and not has_failed(self.checks)


async def verify_bundle(path: Path, *, chain: str | None = None) -> BundleReport:
    """Verify a bundle; `chain` is the head's, from a source that the reader trusts.

    Raises:
        Refused: the file cannot be read, is not a bundle, or is too new.
    """
    report = BundleReport()
    try:
        with open_bundle(path) as bundle, PayloadIndex() as index:
            report.manifest = bundle.manifest
            report.checks.append(_file(bundle))
            report.checks += await _events(bundle, index, chain)
            report.checks.append(_payloads(bundle, index))
    except DamagedBundle as error:
        report.checks.append(failed(FILE, error.what, error.entry))
    except TamperedLog as error:
        report.checks.append(failed(EVENT_CHAIN, error.what, f"{error.root} seq {error.seq}"))
    done = {one.name for one in report.checks}
    for name in (FILE, EVENT_CHAIN, FOLD, PAYLOAD):
        if name not in done:
            report.checks.append(Check(name, Status.NOT_RUN, "an earlier check failed"))
    return report


def _file(bundle: BundleFile) -> Check:
    """Read every byte, and compare it with the digests.

    Raises:
        DamagedBundle: one differs.
    """
    found: dict[str, tuple[str, EntryPlace]] = {}
    stated: Mapping[str, str] | None = None
    for place in entries(bundle.file, bundle.name, MANIFEST):
        if stated is not None:
            raise DamagedBundle(place.name, f"it follows {DIGESTS}, which is the last entry")
        if place.name == DIGESTS:
            stated = _stated(whole(bundle.file, place))
            continue
        digest = _digest(bundle, place)
        if place.name.startswith(PAYLOADS):
            if place.name.removeprefix(PAYLOADS) != digest:
                raise DamagedBundle(place.name, f"its content has the SHA-256 {digest}")
        else:
            found[place.name] = (digest, place)
    if stated is None:
        raise DamagedBundle(DIGESTS, "the entry is missing")
    for name, (digest, place) in found.items():
        if stated.get(name) != digest:
            _name_event(bundle, place)
            raise DamagedBundle(name, f"its content has the SHA-256 {digest}")
    for name in stated.keys() - found.keys():
        raise DamagedBundle(name, "the entry is missing")
    return passed(FILE, f"{bundle.file.seek(0, 2)} bytes, {len(found)} entries and their SHA-256")


def _stated(data: bytes) -> Mapping[str, str]:
    found = unsealed_json(data, DIGESTS)
    if not isinstance(found, dict):
        raise DamagedBundle(DIGESTS, "it is not a list of digests")
    return found


def _digest(bundle: BundleFile, place: EntryPlace) -> str:
    digest = hashlib.sha256()
    for piece in content(bundle.file, place):
        digest.update(piece)
    return digest.hexdigest()


def _name_event(bundle: BundleFile, place: EntryPlace) -> None:
    """Raise DamagedBundle with the event whose record was changed, if the CRCs show one."""
    for segment in bundle.segments.get(_execution_of(place), ()):
        if segment.place == place:
            for _ in records(whole(bundle.file, place), place.name, segment.first_seq):
                pass


def _execution_of(place: EntryPlace) -> int:
    text = place.name.removeprefix(EVENTS).partition("/")[0]
    return int(text) if text.isdigit() else 0


async def _events(bundle: BundleFile, index: PayloadIndex, chain: str | None) -> list[Check]:
    """Verify and fold every execution.

    Raises:
        TamperedLog: an event does not match its checksum, or breaks the chain.
    """
    known = {one.execution_id for one in bundle.manifest.executions}
    for execution_id in bundle.segments.keys() - known:
        raise DamagedBundle(f"{EVENTS}{execution_id}", "the manifest does not have this execution")
    first = bundle.manifest.executions[0]
    if chain is not None and chain.lower() != first.chain:
        why = f"the chain of execution {first.execution_id} is {first.chain}, not {chain}"
        return [failed(EVENT_CHAIN, why, f"execution/{first.execution_id} seq {first.seq}")]
    differing: list[str] = []
    count = 0
    for one in bundle.manifest.executions:
        differing += await _execution(bundle, one, index)
        count += one.seq
    of = len(bundle.manifest.executions)
    proven = passed(
        EVENT_CHAIN, f"{count} events of {of} executions: checksums and chains to the head"
    )
    return [proven, _fold_check(bundle.manifest, differing)]


async def _execution(bundle: BundleFile, one: BundledExecution, index: PayloadIndex) -> list[str]:
    """Return what differs from the manifest in the fold of an execution."""
    codec = bundle.codec()
    log = BundleLog(bundle, codec)
    root = Root("execution", one.execution_id)
    view: View | None = View()
    why, last = "", None
    async for events in VerifiedLog(log, codec).pages(root, through_seq=one.seq):
        index.add(events)
        last = events[-1]
        try:
            view = None if view is None else folded(view, events)
        except Inconsistent as error:
            view, why = None, f"execution {one.execution_id} does not fold: {error}"
    if last is None or last.chain != one.chain:
        raise TamperedLog(root, one.seq, None, "its chain is not the manifest's")
    if await log.page(root, after_seq=one.seq, through_seq=_LAST_SEQ, limit=1):
        raise TamperedLog(root, one.seq + 1, None, "the manifest ends before this event")
    return [why] if view is None else list(_differences(view, last, one))


def _differences(view: View, last: Event, one: BundledExecution) -> Iterator[str]:
    found = checksums(view)
    for name in one.checksums.keys() | found.keys():
        if found.get(name) != one.checksums.get(name):
            yield (
                f"execution {one.execution_id}, {name} as of event {last.seq}: "
                f"{found.get(name)}, in the manifest {one.checksums.get(name)}"
            )
    if (view.payloads.length, view.payloads.digest) != (one.payload_references, one.payload_root):
        yield f"execution {one.execution_id}: the digest of its payload references"


def _fold_check(manifest: Manifest, differing: list[str]) -> Check:
    ours = FoldCode(
        projection_version=PROJECTION_VERSION,
        code_digest=code_digest(),
        upcaster_versions=UPCASTERS.versions(),
    )
    first = min(differing, default=None)
    if manifest.fold != ours:
        result = "gives the same checksums" if first is None else f"differs: {first}"
        why = f"made by other code ({manifest.fold.code_digest[:12]}), this one {result}"
        return Check(FOLD, Status.PASSED if first is None else Status.NOT_APPLICABLE, why)
    if first is not None:
        return failed(FOLD, f"{len(differing)} checksums differ", first)
    return passed(FOLD, f"state of {len(manifest.executions)} executions equals the manifest's")


def _payloads(bundle: BundleFile, index: PayloadIndex) -> Check:
    """Compare the payloads of the file with those that the events refer to."""
    stated = bundle.manifest.payloads
    if not stated.included:
        return Check(PAYLOAD, Status.NOT_APPLICABLE, "exported without payloads")
    count = expired = 0
    for place in entries(bundle.file, bundle.name, MANIFEST):
        if not place.name.startswith(PAYLOADS):
            continue
        digest = place.name.removeprefix(PAYLOADS)
        payload = index.find(digest)
        if payload is None or payload.byte_length != place.size:
            return failed(PAYLOAD, "no event refers to an object like this", place.name)
        index.mark(digest)
        count += 1
    for payload in index.unseen():
        if not index.is_expired(payload):
            why = f"missing; {payload.event} refers to it"
            return failed(PAYLOAD, why, f"{PAYLOADS}{payload.sha256}")
        expired += 1
    if (count, expired) != (stated.count, stated.expired):
        why = f"{count} and {expired} expired, in the manifest {stated.count} and {stated.expired}"
        return failed(PAYLOAD, why, MANIFEST)
    return passed(PAYLOAD, f"{count} objects and their SHA-256, {expired} expired ones absent")
