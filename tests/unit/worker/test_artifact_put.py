"""What `artifact put` stores is a result: from a value, an address or a file, and never half."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from streams.events.types import ResultStored, typed
from streams.payload.content import key_of, reference_from
from streams.payload.objects.blocks import NoCipher, pack
from streams.payload.port import Scope
from streams.playbook.model import Step
from streams.projector.results import result_row
from streams.results.lookup import ExpiredResult, NoSuchResult, Results
from streams.results.reading import MANIFEST
from streams.worker.attempt.command import CommandRunner
from streams.worker.attempt.frame import FrameRunner
from streams.worker.port import Call, Outcome
from streams.worker.tools.artifact import ArtifactTool
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.download import Downloads
from tests.support.worker.memory import EXECUTION_ID, World, loop_step, task

ACME = Scope("acme", "care")
PAGES = os.urandom(3 << 20) + b"the end"


async def serve(request: web.Request) -> web.StreamResponse:
    if request.path == "/none":
        raise web.HTTPNotFound
    answer = web.StreamResponse(headers={"Content-Type": "application/pdf"})
    if request.path == "/broken":
        answer.headers["Content-Length"] = str(len(PAGES))
    await answer.prepare(request)
    await answer.write(PAGES[:-7])
    if request.path == "/broken":
        assert request.transport is not None
        request.transport.close()
        return answer
    await answer.write(PAGES[-7:])
    return answer


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    app = web.Application()
    app.router.add_get("/{name}", serve)
    async with TestServer(app) as opened:
        yield opened


class Shop:
    """A tool over stores in memory, and a world in which a command uses it."""

    def __init__(self, folder: Path, spec: Any = None, **config: Any) -> None:
        put = task("save", "artifact", {"action": "put", **config}, spec=spec or {})
        self.world = World(Step(name="once", tasks=(put,)), {})
        self.results = Results(self.world.log, self.world.clock)
        downloads = Downloads(ConfiguredCredentials({}, {}))
        self.tool = ArtifactTool(
            self.world.payloads, self.results, downloads=downloads, folder=folder
        )
        self.world.tools["artifact"] = self.tool

    async def run(self) -> Any:
        world = self.world
        await CommandRunner(world.ports, world.options()).run(await world.command())
        (ended,) = [one for one in await world.events("command.") if "issued" not in one.type][-1:]
        return ended

    async def ask(self, **config: Any) -> Outcome:
        call = Call(
            tenant_id="acme",
            organization_id="care",
            execution_id=EXECUTION_ID,
            step="later",
            task="x",
            entity_id=1,
            attempt=1,
        )
        return await self.tool.run(config, call)

    async def refused(self, **config: Any) -> str:
        outcome = await self.ask(**config)
        assert outcome.error is not None
        return f"{outcome.error['kind']}: {outcome.error['message']}"


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    opened = Shop(tmp_path)
    yield opened
    await opened.tool.close()


async def test_what_is_put_is_a_result_that_is_listed_resolved_and_expires(
    tmp_path: Path,
) -> None:
    spec = {"result": {"store": {"kind": "auto", "ttl": "30m", "scope": "execution"}}}
    shop = Shop(tmp_path, spec, data={"page": [1, 2]})
    ended = await shop.run()
    (stored,) = await shop.world.events("result.stored")
    data = ended.result["data"]

    assert data["_ref"] == stored.result["ref"]
    assert (data["store"], stored.meta["scope"]) == ("object", "execution")
    assert stored.payload_ref is not None
    assert stored.payload_ref.uri == data["key"]
    assert (await shop.ask(ref=data["_ref"])).data == {"page": [1, 2]}
    assert (await shop.ask(ref=data["ref"])).data == {"page": [1, 2]}
    assert (await shop.ask(action="list", execution_id=EXECUTION_ID)).data == [stored.result]
    known = typed(stored)
    assert isinstance(known, ResultStored)
    row = result_row(stored, known)
    assert (row.ref, row.task_label) == (data["_ref"], "save")  # type: ignore[union-attr]
    shop.world.clock.advance(1801)
    with pytest.raises(ExpiredResult):
        await shop.results.find(data["_ref"], ACME)


async def test_a_download_goes_into_the_store(tmp_path: Path, server: TestServer) -> None:
    shop = Shop(tmp_path, url=str(server.make_url("/pages")))
    ended = await shop.run()
    await shop.tool.close()
    (stored,) = await shop.world.events("result.stored")
    assert stored.payload_ref is not None
    assert stored.payload_ref.media_type == "application/pdf"
    assert await shop.world.payloads.get(stored.payload_ref) == PAGES
    assert len(orjson.dumps(ended.result)) < 2000


async def test_a_file_goes_into_the_store(tmp_path: Path) -> None:
    (tmp_path / "pages.csv").write_bytes(PAGES)
    shop = Shop(tmp_path, file="pages.csv")
    await shop.run()
    (stored,) = await shop.world.events("result.stored")
    assert stored.payload_ref is not None
    assert stored.payload_ref.media_type == "text/csv"
    assert await shop.world.payloads.get(stored.payload_ref) == PAGES


async def test_bytes_that_are_no_text_are_got_as_base64_whole_and_in_part(tmp_path: Path) -> None:
    (tmp_path / "scan.png").write_bytes(PAGES)
    shop = Shop(tmp_path)
    put: Any = (await shop.ask(action="put", file="scan.png")).data
    whole = await shop.ask(ref=put["ref"])
    assert (whole.meta["media_type"], whole.meta["encoding"]) == ("image/png", "base64")
    assert b64decode(str(whole.data)) == PAGES
    part = await shop.ask(ref=put["ref"], range="100-199")
    assert part.meta["encoding"] == "base64"
    assert b64decode(str(part.data)) == PAGES[100:200]
    end = await shop.ask(ref=put["ref"], range="-7")
    assert (end.data, "encoding" in end.meta) == ("the end", False)


async def test_a_part_that_cuts_a_letter_in_two_loses_neither_half(shop: Shop) -> None:
    put: Any = (await shop.ask(action="put", data="aé")).data
    halves = [await shop.ask(ref=put["ref"], range=asked) for asked in ("0-1", "2-2")]
    assert b"".join(b64decode(str(one.data)) for one in halves) == "aé".encode()


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("application/json; charset=utf-8", '{"a": 1}', {"a": 1}),
        ("Application/JSON", '{"a": 1}', {"a": 1}),
        ("application/geo+json", '{"a": 1}', {"a": 1}),
        ("text/plain; charset=utf-8", '{"a": 1}', '{"a": 1}'),
        ("application/json", '"not json"', "not json"),
        ("application/json", {"a": "é"}, {"a": "é"}),
        ("application/json; charset=latin-1", '{"a": "é"}', {"a": "é"}),
        ("text/plain; charset=latin-1", "héllo", "héllo"),
        ("text/plain; charset=utf-16", "héllo", "héllo"),
        ("text/csv; charset=cp1252", "10 €", "10 €"),
        ("text/plain; charset=latin-1", {"a": "é"}, '{"a":"é"}'),
    ],
)
async def test_a_content_type_says_how_it_is_read(
    shop: Shop, kind: str, data: Any, expected: Any
) -> None:
    put: Any = (await shop.ask(action="put", data=data, content_type=kind)).data
    assert (await shop.ask(ref=put["ref"])).data == expected


async def test_text_is_written_as_its_content_type_says(shop: Shop) -> None:
    kind = "text/plain; charset=latin-1"
    put: Any = (await shop.ask(action="put", data="héllo", content_type=kind)).data
    stored = await shop.world.payloads.get(reference_from(put["ref"]))
    assert stored == "héllo".encode("latin-1")


async def test_bytes_in_a_charset_that_nobody_knows_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "pages").write_bytes(b"a")
    kind = "text/plain; charset=no-such"
    shop = Shop(tmp_path)
    put: Any = (await shop.ask(action="put", file="pages", content_type=kind)).data
    assert (await shop.ask(ref=put["ref"])).data == "YQ=="


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "artifact.config: 'put' needs one of"),
        ({"data": 1, "url": "http://127.0.0.1"}, "artifact.config: 'put' needs one of"),
        ({"file": "../passwd"}, "artifact.config: '../passwd' is not a valid file name"),
        ({"file": "/etc/passwd"}, "artifact.config: '/etc/passwd' leads out"),
        ({"file": "a\0b"}, "artifact.config: 'a\\x00b' is not a valid file name"),
        ({"file": "none"}, "artifact.config: 'none' does not exist"),
        ({"url": "nowhere"}, "artifact.config: 'url' must begin with"),
        ({"url": "file:///etc/passwd"}, "artifact.config: 'url' must begin with"),
        ({"url": "http://[::1"}, "artifact.config: 'url'"),
        ({"url": "http://127.0.0.1:1/x"}, "artifact.source"),
        ({"data": 1, "content_type": "a\r\nb"}, "artifact.config: 'content_type'"),
        ({"data": 1, "compression": "rar"}, "artifact.config: 'compression'"),
        ({"data": {"n": 2**70}}, "artifact.config: 'data' is not JSON"),
        ({"data": Decimal("1.5")}, "artifact.config: 'data' is not JSON"),
        ({"data": b"bytes"}, "artifact.config: 'data' is not JSON"),
        ({"data": "\ud800"}, "artifact.config: 'data' cannot be written in utf-8"),
        (
            {"data": "10 €", "content_type": "text/plain; charset=latin-1"},
            "artifact.config: 'data' cannot be written in latin-1",
        ),
        (
            {"data": "a", "content_type": "text/plain; charset=no-such"},
            "artifact.config: 'content_type' names the charset 'no-such', which is unknown",
        ),
        (
            {"data": "not json", "content_type": "application/json"},
            "artifact.config: 'data' is text that is not JSON",
        ),
        (
            {"data": "not json", "content_type": "application/geo+json"},
            "artifact.config: 'data' is text that is not JSON",
        ),
        (
            {"data": [1], "content_type": "application/vnd.apache.arrow.stream"},
            "artifact.config: 'data' is not an Arrow stream",
        ),
        ({"data": ["\ud800"]}, "artifact.config: 'data' is not JSON"),
    ],
)
async def test_what_cannot_be_put_says_why(shop: Shop, config: Any, said: str) -> None:
    assert (await shop.refused(action="put", **config)).startswith(said)
    assert shop.world.payloads.objects == {}


@pytest.mark.parametrize("path", ["/none", "/broken"])
async def test_a_download_that_fails_stores_nothing(
    shop: Shop, server: TestServer, path: str
) -> None:
    said = await shop.refused(action="put", url=str(server.make_url(path)))
    assert said.startswith("artifact.source")
    assert "nothing was stored" in said
    assert shop.world.payloads.objects == {}


async def test_what_is_too_large_for_a_task_is_not_handed_to_it(tmp_path: Path) -> None:
    world = Shop(tmp_path).world
    tool = ArtifactTool(world.payloads, value_bytes=100)
    shop = Shop(tmp_path)
    shop.tool = tool
    ref = (await shop.ask(action="put", data="x" * 101)).data
    assert isinstance(ref, dict)
    said = await shop.refused(ref=ref["ref"])
    assert said.startswith("artifact.too_large")
    assert "GET /api/result/resolve" in said


async def test_bytes_that_are_not_those_that_were_put(tmp_path: Path) -> None:
    shop = Shop(tmp_path, data="original")
    ended = await shop.run()
    (stored,) = await shop.world.events("result.stored")
    assert stored.payload_ref is not None
    objects, key = shop.world.payloads.objects, key_of(stored.payload_ref)
    for name in (ended.result["data"]["_ref"], ended.result["data"]["ref"]):
        objects[key] = b"tampered"
        assert (await shop.refused(ref=name)).startswith("artifact.corrupt")
        objects[key] = pack(ACME, bytes(64 << 20), "zstd", NoCipher())
        assert (await shop.refused(ref=name)).startswith("artifact.corrupt")
        del objects[key]
        assert (await shop.refused(ref=name)).startswith("artifact.missing")


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "0" * 63},
        {"sha256": "0" * 64},
        {"sha256": "../../etc/passwd"},
        {"uri": "noetl://tenant/acme/org/../payloads/sha256/" + "0" * 64},
        {"uri": "noetl://tenant/acme/org/care/stages/7"},
        {"uri": "noetl://execution/7/step/a/task/b/7"},
        {"uri": "file:///etc/passwd"},
        {"uri": 5},
        {"sha256": None},
        {"media_type": 5},
        {"byte_length": "1"},
        {"byte_length": None},
        {"byte_length": True},
        {"byte_length": -1},
    ],
)
async def test_references_that_name_something_else(shop: Shop, change: Any) -> None:
    put = (await shop.ask(action="put", data="x")).data
    assert isinstance(put, dict)
    assert (await shop.refused(ref={**put["ref"], **change})).startswith("artifact.config")


async def test_a_reference_of_another_tenant_is_refused(shop: Shop) -> None:
    put: Any = (await shop.ask(action="put", data="x")).data
    foreign = put["ref"]["uri"].replace("/acme/", "/globex/")
    said = await shop.refused(ref={**put["ref"], "uri": foreign})
    assert said.startswith("artifact.refused")
    parts = {"parts": [{"rows": 1, "ref": {**put["ref"], "uri": foreign}}]}
    forged: Any = (await shop.ask(action="put", data=parts, content_type=MANIFEST)).data
    assert (await shop.refused(ref=forged["ref"])).startswith("artifact.refused")


async def test_a_digest_unlike_its_name_is_told_as_that(shop: Shop) -> None:
    put: Any = (await shop.ask(action="put", data="x")).data
    said = await shop.refused(ref={**put["ref"], "sha256": "0" * 64})
    assert said.startswith("artifact.config")
    assert "is not the digest of the reference" in said
    assert "belong" not in said


async def test_more_rows_than_can_be_read_are_too_large(shop: Shop) -> None:
    parts = {"parts": [{"rows": 10**9, "ref": None}]}
    put: Any = (await shop.ask(action="put", data=parts, content_type=MANIFEST)).data
    assert (await shop.refused(ref=put["ref"])).startswith("artifact.too_large")


@pytest.mark.parametrize(
    "shown",
    [
        "{{ save }}",
        "{{ save.data }}",
        "{{ save.result }}",
        "{{ save.ref }}",
        "{{ save._ref }}",
        "{{ save.key }}",
        "{{ {'ref': save.ref} }}",
    ],
)
@pytest.mark.parametrize("is_stored", [True, False])
async def test_what_a_put_answered_gets_what_was_put(
    tmp_path: Path, shown: str, is_stored: bool
) -> None:
    spec = {"result": {"store": {"kind": "s3", "ttl": "1h"}}} if is_stored else {}
    shop = Shop(tmp_path)
    put = task("save", "artifact", {"action": "put", "data": {"x": 1}}, spec=spec)
    get = task("get", "artifact", {"action": "get", "ref": shown})
    world = World(Step(name="once", tasks=(put, get)), {})
    results = Results(world.log, world.clock)
    world.tools["artifact"] = shop.tool = ArtifactTool(world.payloads, results)
    await CommandRunner(world.ports, world.options()).run(await world.command())
    last = await world.last()
    assert (last.type, last.error) == ("command.completed", None)
    assert last.result["data"] == {"x": 1}


async def test_a_key_leads_to_what_its_execution_has_and_no_further(tmp_path: Path) -> None:
    spec = {"result": {"store": {"kind": "s3", "ttl": "1h"}}}
    shop = Shop(tmp_path, spec, data={"x": 1})
    key = (await shop.run()).result["data"]["key"]
    assert (await shop.ask(ref=key)).data == {"x": 1}
    other = key.replace("/payloads/sha256/", "/payloads/sha256/00")[:-2]
    assert (await shop.refused(ref=other)).startswith("artifact.missing")
    assert (await shop.refused(ref=key.replace("/acme/", "/b/"))).startswith("artifact.refused")
    with pytest.raises(NoSuchResult):
        await shop.results.find(key, ACME)
    shop.world.clock.advance(3601)
    assert (await shop.refused(ref=key)).startswith("artifact.expired")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("noetl://execution/1001/step/../task/b/7", "artifact.config"),
        ("noetl://execution/1001/step/a%00/task/b/7", "artifact.config"),
        ("noetl://tenant/globex/org/care/payloads/sha256/" + "0" * 64, "artifact.refused"),
        ("noetl://execution/1001/step/a/task/b/7", "artifact.missing"),
        ("elsewhere", "artifact.config"),
    ],
)
async def test_names_that_name_nothing_of_ours(shop: Shop, name: str, kind: str) -> None:
    assert (await shop.refused(ref=name)).startswith(kind)


async def test_each_row_of_a_frame_puts_a_result_of_its_own(tmp_path: Path) -> None:
    put = task("save", "artifact", {"action": "put", "data": "{{ iter.item }}"})
    world = World(loop_step(put), {})
    world.tools["artifact"] = ArtifactTool(world.payloads)
    await FrameRunner(world.ports, world.options()).run(await world.frame(["a", "b", "a"]))
    stored = await world.events("result.stored")
    assert len({event.meta["result_id"] for event in stored}) == 3
    assert len({event.payload_ref.uri for event in stored if event.payload_ref}) == 2
    assert (await world.events())[-1].type == "frame.committed"
