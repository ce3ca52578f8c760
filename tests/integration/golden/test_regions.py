"""Shared memory of two languages: what Python writes the reader reads, and the other way round."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import orjson
import pytest

from streams.events.model import Json
from streams.payload.arrow.rows import decode_rows, encode_rows
from streams.payload.content import describe
from streams.payload.port import ARROW
from streams.payload.shm.header import SIZE, VERSION, Header
from streams.payload.shm.region import NotHere, attach
from tests.golden.payloads import rows_digest
from tests.support.golden.reader import answer, run
from tests.support.payload.tiers import ACME, shared_memory, space

pytestmark = pytest.mark.timeout(900)  # the first build
FLAT: list[Json] = [
    {"id": 1, "score": 0.5, "name": "Zoë", "ok": True, "none": None},
    {"id": 2, "score": 2, "name": 'a "quote"', "ok": None, "none": None},
]
NESTED: list[Json] = [
    {"id": n, "at": {"x": [n, None], "y": f"{n}"}, "many": {}, **({"late": 1.0} if n else {})}
    for n in range(3)
]


def shared(folder: Path, rows: list[Json]) -> tuple[Path, str, str]:
    """Share rows as a worker does; return the file, and the digests of bytes and schema."""
    made = encode_rows(rows)
    ref = describe(ACME, made.data, media_type=ARROW, schema_digest=made.schema_digest)
    hint = shared_memory(folder).offer(ref, made.data)
    assert hint is not None
    return folder / hint.shm_name[1:], ref.sha256, made.schema_digest


@pytest.mark.parametrize("rows", [FLAT, NESTED, [1, "two", None]])
def test_the_reader_reads_a_region_that_python_wrote(tmp_path: Path, rows: list[Json]) -> None:
    path, sha256, schema_digest = shared(tmp_path, rows)
    assert answer("shm", "read", path) == {
        "path": str(path),
        "version": VERSION,
        "payload_bytes": path.stat().st_size - SIZE,
        "sha256": sha256,
        "row_count": len(rows),
        "schema_digest": schema_digest,
        "rows": rows_digest(rows),
    }


def test_python_reads_a_region_that_the_reader_wrote(tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    rows.write_bytes(orjson.dumps(FLAT))
    name = f"/{space(tmp_path).prefix}rust"
    done = answer("shm", "write", f"{tmp_path}{name}", "--rows", rows)
    wanted = Header(int(str(done["payload_bytes"])), bytes.fromhex(str(done["sha256"])))
    assert decode_rows(attach(tmp_path, name, wanted)) == FLAT
    assert answer("shm", "read", f"{tmp_path}{name}")["rows"] == rows_digest(FLAT)
    with pytest.raises(NotHere, match="digest"):
        attach(tmp_path, name, Header(wanted.length, bytes(32)))


def test_a_region_is_found_by_its_name(tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    rows.write_bytes(orjson.dumps(FLAT))
    name = f"/noetl-test-{uuid4().hex}"
    path = Path(f"/dev/shm{name}")
    try:
        answer("shm", "write", name, "--rows", rows)
        assert answer("shm", "read", name)["path"] == str(path)
    finally:
        path.unlink(missing_ok=True)


def test_a_damaged_region_is_refused(tmp_path: Path) -> None:
    path, _, _ = shared(tmp_path, FLAT)
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(data)
    done = run("shm", "read", path)
    assert done.returncode == 1
    assert "does not match the digest in the header" in done.stderr
    path.write_bytes(data[: SIZE // 2])
    assert "are not a header" in run("shm", "read", path).stderr


def test_rows_that_the_reader_cannot_write_are_refused(tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    rows.write_bytes(orjson.dumps(NESTED))
    done = run("shm", "write", tmp_path / "region", "--rows", rows)
    assert done.returncode == 1
    assert "every row must be an object with the same keys" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["rows.json"]
