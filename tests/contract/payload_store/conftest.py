"""Which payload store: in memory, in files, in buckets, or wherever the environment says."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import uuid4

import orjson
import pytest
from obstore.store import LocalStore, MemoryStore

from streams.app import open_shelves
from streams.payload.objects.blocks import BLOCK_BYTES
from streams.payload.objects.cloud import CloudObjects
from streams.payload.objects.local import LocalObjects
from streams.payload.objects.memory import MemoryObjects
from streams.payload.objects.port import Shelves
from streams.payload.port import PayloadStore
from streams.payload.store import ContentStore
from streams.payload.tiers.counts import TierCounts
from streams.payload.tiers.tiered_store import TieredPayloads
from streams.settings import Settings
from tests.support.payload.buckets import open_bucket
from tests.support.payload.stores import Shifted, Subject
from tests.support.payload.tiers import node_caches

HERE = ("memory", "sealed", "tiers", "local", "obstore-memory", "obstore-local")

ELSEWHERE = os.environ.get("STREAMS_TEST_PAYLOAD_STORE")
"""A `payload_store` section as JSON: the suite then runs on that store, too (docs/payloads.md)."""


@pytest.fixture(scope="module")
async def google(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Settings]:
    """Settings by which Google's client speaks to a server of its protocol."""
    async with open_bucket(tmp_path_factory.mktemp("served")) as made:
        place = {"endpoint": made.endpoint, "bucket": made.name, "secret_key": made.google_key}
        chosen = {"backend": "gcs", "encryption_at_rest": False, "connection": place}
        yield Settings.model_validate({"payload_store": chosen})


@pytest.fixture(
    params=[
        *HERE,
        pytest.param("s3", marks=pytest.mark.stack),
        pytest.param("gcs", marks=pytest.mark.stack),
        *(["elsewhere"] if ELSEWHERE else []),
    ]
)
def place(request: pytest.FixtureRequest) -> str | Settings:
    """Which adapter; the servers are started only where they are needed."""
    if request.param == "elsewhere":
        return Settings.model_validate({"payload_store": orjson.loads(ELSEWHERE or "{}")})
    served = {"s3": "settings", "gcs": "google"}.get(request.param)
    found: str | Settings = request.getfixturevalue(served) if served else request.param
    return found


@pytest.fixture
async def shelves(place: str | Settings, tmp_path: Path) -> AsyncIterator[Shelves]:
    if isinstance(place, Settings):
        async with open_shelves(place) as opened:
            yield opened
    else:
        made: dict[str, Callable[[], Shelves]] = {
            "memory": MemoryObjects,
            "sealed": MemoryObjects,
            "tiers": MemoryObjects,
            "local": lambda: LocalObjects(tmp_path),
            "obstore-memory": lambda: CloudObjects(MemoryStore()),
            "obstore-local": lambda: CloudObjects(LocalStore(tmp_path, mkdir=True)),
        }
        yield made[place]()


@pytest.fixture
def subject(place: str | Settings, shelves: Shelves, tmp_path: Path) -> Subject:
    cipher = Shifted() if place == "sealed" else None
    store: PayloadStore = ContentStore(shelves, compression="zstd", cipher=cipher, known_s=0)
    if place == "tiers":
        # Without tier 1, or nobody would notice a damaged store.
        store = TieredPayloads(store, node_caches(tmp_path), TierCounts())
    return Subject(store, shelves)


@pytest.fixture
def store(subject: Subject) -> PayloadStore:
    return subject.store


@pytest.fixture
def data() -> bytes:
    """Bytes that no other test has stored."""
    return b"payload " + uuid4().bytes


@pytest.fixture
def large() -> bytes:
    """A block and a quarter, of which half can be packed."""
    return (os.urandom(2048) + bytes(2048)) * (BLOCK_BYTES // 4096 * 5 // 4)
