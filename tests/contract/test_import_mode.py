"""Publishing through Confluent's IMPORT mode, against a stand-in for such a registry.

Confluent's own registry comes from no package index we use; the stand-in keeps to what its
documentation says of modes: ids are accepted in IMPORT mode only, and a mode may be locked.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from streams.errors import Refused
from streams.schema.publish import CannotPublish, PublishIncomplete, publish_to
from streams.schema.released import PinnedSchema, fingerprint

SUBJECTS = {"Event": ["noetl.events.execution-value", "noetl.events.tenant-value"]}


def pin(version: int, *extra: dict[str, Any]) -> PinnedSchema:
    schema = json.dumps(
        {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}, *extra]}
    )
    file = f"released/Event.{version}.avsc"
    return PinnedSchema(100_000 + version, "Event", version, file, fingerprint(schema), schema)


PINS = (pin(1), pin(2, {"name": "note", "type": "string", "default": ""}))


@dataclass
class Registry:
    """Subjects, ids and modes as a registry of Confluent's kind keeps them."""

    mode: str = "READWRITE"
    mode_is_locked: bool = False
    ignores_ids: bool = False
    modes: dict[str, str] = field(default_factory=dict)
    schemas: dict[int, str] = field(default_factory=dict)
    subjects: dict[str, dict[int, int]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    async def get_mode(self, request: web.Request) -> web.Response:
        subject = request.match_info.get("subject")
        mode = self.modes.get(subject) if subject else self.mode
        if mode is None:
            return _error(404, 40409, "no mode of its own")
        return web.json_response({"mode": mode})

    async def put_mode(self, request: web.Request) -> web.Response:
        if self.mode_is_locked:
            return _error(422, 42205, "Mutable mode is disabled")
        self.modes[request.match_info["subject"]] = (await request.json())["mode"]
        return web.json_response({})

    async def delete_mode(self, request: web.Request) -> web.Response:
        return web.json_response({"mode": self.modes.pop(request.match_info["subject"])})

    async def get_schema(self, request: web.Request) -> web.Response:
        schema = self.schemas.get(int(request.match_info["id"]))
        if schema is None:
            return _error(404, 40403, "Schema not found")
        return web.json_response({"schema": schema})

    async def get_versions(self, request: web.Request) -> web.Response:
        versions = self.subjects.get(request.match_info["subject"])
        if versions is None:
            return _error(404, 40401, "Subject not found")
        return web.json_response(sorted(versions))

    async def get_version(self, request: web.Request) -> web.Response:
        schema_id = self.subjects[request.match_info["subject"]][int(request.match_info["version"])]
        return web.json_response({"id": schema_id, "schema": self.schemas[schema_id]})

    async def register(self, request: web.Request) -> web.Response:
        subject, body = request.match_info["subject"], await request.json()
        if self.modes.get(subject, self.mode) != "IMPORT":
            return _error(422, 42205, f"Subject {subject} is not in import mode")
        schema_id = 1 if self.ignores_ids else body["id"]
        self.schemas[schema_id] = _respelt(body["schema"])
        self.subjects.setdefault(subject, {})[body["version"]] = schema_id
        return web.json_response({"id": schema_id})

    def app(self) -> web.Application:
        @web.middleware
        async def remember(request: web.Request, handler: Any) -> web.StreamResponse:
            self.requests.append(f"{request.method} {request.path}")
            response: web.StreamResponse = await handler(request)
            return response

        app = web.Application(middlewares=[remember])
        app.router.add_get("/mode", self.get_mode)
        app.router.add_get("/mode/{subject}", self.get_mode)
        app.router.add_put("/mode/{subject}", self.put_mode)
        app.router.add_delete("/mode/{subject}", self.delete_mode)
        app.router.add_get("/schemas/ids/{id}", self.get_schema)
        app.router.add_get("/subjects/{subject}/versions", self.get_versions)
        app.router.add_get("/subjects/{subject}/versions/{version}", self.get_version)
        app.router.add_post("/subjects/{subject}/versions", self.register)
        return app

    @property
    def changes(self) -> list[str]:
        return [one for one in self.requests if not one.startswith("GET")]


def _error(status: int, code: int, message: str) -> web.Response:
    return web.json_response({"error_code": code, "message": message}, status=status)


def _respelt(schema: str) -> str:
    """Confluent's registry prints schemas in its own way."""
    return json.dumps(dict(reversed(json.loads(schema).items())), indent=1)


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
async def url(registry: Registry) -> AsyncIterator[str]:
    async with TestServer(registry.app()) as server:
        yield str(server.make_url(""))


async def test_every_version_gets_its_pinned_id(registry: Registry, url: str) -> None:
    done = await publish_to(url, PINS, SUBJECTS)
    assert len(done.added) == 4
    assert registry.subjects == {one: {1: 100_001, 2: 100_002} for one in SUBJECTS["Event"]}


async def test_import_mode_ends_with_the_import(registry: Registry, url: str) -> None:
    registry.modes[SUBJECTS["Event"][0]] = "READWRITE"
    await publish_to(url, PINS, SUBJECTS)
    assert registry.modes == {SUBJECTS["Event"][0]: "READWRITE"}


async def test_publishing_again_asks_and_changes_nothing(registry: Registry, url: str) -> None:
    await publish_to(url, PINS, SUBJECTS)
    registry.requests.clear()
    done = await publish_to(url, PINS, SUBJECTS)
    assert (len(done.added), len(done.present)) == (0, 4)
    assert registry.changes == []


async def test_a_taken_id_is_refused_before_any_change(registry: Registry, url: str) -> None:
    registry.schemas[100_002] = '{"type": "record", "name": "Other", "fields": []}'
    with pytest.raises(CannotPublish, match="id 100002 is taken"):
        await publish_to(url, PINS, SUBJECTS)
    assert registry.changes == []


async def test_a_read_only_registry_is_refused_before_any_change(
    registry: Registry, url: str
) -> None:
    registry.mode = "READONLY"
    with pytest.raises(CannotPublish, match="READONLY"):
        await publish_to(url, PINS, SUBJECTS)
    assert registry.changes == []


async def test_a_locked_mode_is_refused_and_nothing_is_registered(
    registry: Registry, url: str
) -> None:
    registry.mode_is_locked = True
    with pytest.raises(Refused, match=r"mode\.mutability"):
        await publish_to(url, PINS, SUBJECTS)
    assert registry.subjects == {}


async def test_a_registry_that_gives_other_ids_all_the_same_is_found_out(
    registry: Registry, url: str
) -> None:
    registry.ignores_ids = True
    with pytest.raises(PublishIncomplete, match="has id 1, not 100001"):
        await publish_to(url, PINS, SUBJECTS)
    assert registry.modes == {}


async def test_a_registry_without_modes_is_refused(registry: Registry) -> None:
    app = web.Application()
    app.router.add_get("/schemas/ids/{id}", registry.get_schema)
    app.router.add_get("/subjects/{subject}/versions", registry.get_versions)
    async with TestServer(app) as server:
        with pytest.raises(CannotPublish, match="neither Confluent's modes nor Apicurio's"):
            await publish_to(str(server.make_url("")), PINS, SUBJECTS)
