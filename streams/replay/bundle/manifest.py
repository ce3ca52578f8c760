"""The manifest of a bundle: what is in it, and the checksums that its events must give."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import orjson
from blake3 import blake3
from pydantic import TypeAdapter, ValidationError

from streams.payload.port import Scope
from streams.replay.bundle.errors import DamagedBundle, NewerBundle, NotABundle

FORMAT, VERSION = "noetl execution bundle", 1
MANIFEST, DIGESTS = "manifest.json", "digests.json"
SCHEMAS, EVENTS, PAYLOADS = "schemas/", "events/", "payloads/sha256/"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledExecution:
    """An execution in a bundle; all numbers are as of its last event there."""

    execution_id: int
    parent_execution_id: int | None
    seq: int
    """Its last event; the first is 1."""
    chain: str
    checksums: dict[str, str]
    payload_references: int
    payload_root: str
    """The chained digest of the payloads that its events refer to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldCode:
    """The code that made the checksums."""

    projection_version: int
    code_digest: str
    upcaster_versions: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledPayloads:
    """The payloads of a bundle; `expired` ones existed once and are not in it."""

    included: bool
    count: int
    byte_length: int
    expired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is in a bundle."""

    scope: Scope
    executions: tuple[BundledExecution, ...]
    """The execution asked for, then its children."""
    fold: FoldCode
    schema_ids: tuple[int, ...]
    payloads: BundledPayloads


_MANIFEST = TypeAdapter(Manifest)


def sealed_json(value: object) -> bytes:
    """Return JSON that has its own checksum, as one line."""
    body = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    checksum = blake3(body).hexdigest()
    return b'{"checksum":"%s","content":%s}\n' % (checksum.encode(), body)


def unsealed_json(data: bytes, entry: str) -> object:
    """Return the content of sealed JSON.

    Raises:
        DamagedBundle: it does not match its checksum.
    """
    try:
        found = orjson.loads(data)["content"]
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedBundle(entry, "it is not JSON with a checksum") from error
    if sealed_json(found) != data:
        raise DamagedBundle(entry, "it does not match its checksum")
    return found


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return the manifest as an entry's content; 64-bit ids are text."""
    fields = asdict(manifest)
    for one in fields["executions"]:
        for name in ("execution_id", "parent_execution_id"):
            one[name] = None if one[name] is None else str(one[name])
    return sealed_json({"format": FORMAT, "version": VERSION, **fields})


def manifest_of(data: bytes, file: str) -> Manifest:
    """Return the manifest in an entry's content.

    Raises:
        NotABundle: it is that of something else.
        NewerBundle: this program does not know its format.
        DamagedBundle: it does not match its checksum.
    """
    found = unsealed_json(data, MANIFEST)
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise NotABundle(file, f"its {MANIFEST} has another format")
    version = found.pop("version", None)
    if not isinstance(version, int) or version > VERSION:
        raise NewerBundle(file, version if isinstance(version, int) else 0, VERSION)
    try:
        return _MANIFEST.validate_python(found)
    except ValidationError as error:
        raise DamagedBundle(MANIFEST, f"its fields cannot be read: {error}") from error


def segment_name(execution_id: int, first_seq: int) -> str:
    """Return the name of the entry with the events from `first_seq` on."""
    return f"{EVENTS}{execution_id}/{first_seq:012d}.events"


def schema_name(schema_id: int) -> str:
    """Return the name of a schema's entry."""
    return f"{SCHEMAS}{schema_id}.avsc"


def payload_name(sha256: str) -> str:
    """Return the name of a payload's entry."""
    return f"{PAYLOADS}{sha256}"
