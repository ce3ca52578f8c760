"""A process of a node that writes and reads rows on request.

It opens the tiers as the roles do. It receives `{"put": rows}` or `{"read": reference}` and
answers with the reference, or with what the reader saw.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from streams.app import open_tiers
from streams.events.model import IpcHint, PayloadRef
from streams.local.settings import load_settings
from streams.payload.arrow.rows import encode_rows, rows_of
from streams.payload.port import ARROW, Scope
from streams.payload.tiers.tiered_store import TieredPayloads

SCOPE = Scope("acme", "care")


def run(config: Path, mouth: Connection) -> None:
    """Do what each message says until there are no more; the whole of a process."""
    asyncio.run(_serve(config, mouth))


async def _serve(config: Path, mouth: Connection) -> None:
    settings = load_settings(config, None).settings
    tables: list[pa.Table] = []  # what was read stays in use
    async with open_tiers(settings, consumer="test") as payloads:
        mouth.send({"ready": os.getpid()})
        with suppress(EOFError):
            while True:
                words = await asyncio.to_thread(mouth.recv)
                mouth.send(await _answer(words, payloads, tables))


async def _answer(
    words: dict[str, Any], payloads: TieredPayloads, tables: list[pa.Table]
) -> dict[str, Any]:
    if "put" in words:
        ref = asdict(await _put(payloads, words["put"]))
        if ref["ipc"] is not None:  # as JSON has it
            ref["ipc"]["valid_until"] = ref["ipc"]["valid_until"].isoformat()
        return ref
    if "again" in words:
        return _seen(tables[-1])
    if "read" not in words:
        return {"counts": payloads.snapshot()}
    tables.append(await payloads.table(reference(words["read"])))
    return _seen(tables[-1]) | {"counts": payloads.snapshot()}


def rows(count: int) -> list[Any]:
    """Return rows that are others for every count; a thousand of them take about 100 KB."""
    return [{"id": number, "of": count, "text": f"{number:080d}"} for number in range(count)]


def digest(found: Any) -> str:
    """Return what tells rows from other rows."""
    return sha256(orjson.dumps(found)).hexdigest()


def reference(words: dict[str, Any]) -> PayloadRef:
    """Read a reference with its hint, as an event would carry it."""
    ref, hint = PayloadRef(**{**words, "ipc": None}), words["ipc"]
    if hint is None:
        return ref
    until = datetime.fromisoformat(hint["valid_until"])
    return replace(ref, ipc=IpcHint(**{**hint, "valid_until": until}))


async def _put(payloads: TieredPayloads, count: int) -> PayloadRef:
    made = encode_rows(rows(count))
    return await payloads.put(
        SCOPE,
        made.data,
        media_type=ARROW,
        row_count=made.row_count,
        schema_digest=made.schema_digest,
    )


def _seen(table: pa.Table) -> dict[str, Any]:
    address = table.column("id").chunk(0).buffers()[1].address
    return {"digest": digest(rows_of(table)), "mapped": _mapped(address)}


def _mapped(address: int) -> str:
    """Return the name of the file whose pages are mapped at an address."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        places, *_, name = line.split(maxsplit=5)
        start, end = (int(place, 16) for place in places.split("-"))
        if start <= address < end:
            return name.strip() if name.startswith("/") else ""
    return ""
