"""Payloads in a folder: forged lengths, and names that no folder can have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from streams.payload.content import describe
from streams.payload.errors import PayloadCorrupt, PayloadMissing
from streams.payload.objects.local import LocalObjects
from streams.payload.port import JSON
from streams.payload.store import ContentStore
from tests.support.payload.tiers import ACME


@pytest.mark.parametrize("forged", [2**40, 2**62, 2**70, -1, -5000, -(2**70)])
async def test_a_forged_length_takes_no_memory_and_is_named(tmp_path: Path, forged: int) -> None:
    store = ContentStore(LocalObjects(tmp_path))
    ref = await store.put(ACME, b"some bytes", media_type=JSON)
    with pytest.raises(PayloadCorrupt):
        await store.get(replace(ref, byte_length=forged))


async def test_a_name_that_no_folder_can_have_is_missing(tmp_path: Path) -> None:
    ref = describe(ACME, b"x", media_type=JSON)
    long = replace(ref, uri=ref.uri.replace("/care/", f"/{'x' * 300}/"))
    with pytest.raises(PayloadMissing):
        await ContentStore(LocalObjects(tmp_path)).get(long)
