"""Business projections over HTTP: listed, read by key, and replayed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiohttp.test_utils import TestClient, TestServer

from streams.api.runtime import ApiRuntime
from streams.api.server import make_app
from streams.clock import SystemClock
from streams.events.model import Root
from streams.projector.business.memory import MemoryBusiness
from streams.projector.business.reading import BusinessQueries
from streams.projector.stores.port import DamagedProjection
from tests.support.projector.business import CARE, BusinessBench, checksums_in

Client = TestClient[Any, Any]
OF_CARE = {"tenant_id": "acme", "organization_id": "care", "execution_id": "1000"}


def rows(*facilities: int) -> list[Any]:
    return [{"facility": n, "patient": n, "score": n, "kind": "mds"} for n in facilities]


@pytest.fixture
async def bench() -> BusinessBench:
    made = BusinessBench()
    await made.project([await made.run(1000, rows(1, 2)), await made.run(2000, rows(2, 3))])
    return made


@pytest.fixture
async def client(bench: BusinessBench) -> AsyncIterator[Client]:
    none = cast(Any, None)
    runtime = ApiRuntime(
        log=bench.log,
        projections=none,
        ledger=none,
        catalog=none,
        payloads=bench.payloads,
        replay=none,
        organizations=none,
        forks=none,
        business_replay=bench.replay(),
        business=BusinessQueries(MemoryBusiness(bench.store)),
        next_id=none,
        clock=SystemClock(),
        scope=CARE,
        credentials=none,
        keys=none,
        resolver=none,
        webhooks=none,
    )
    async with TestClient(TestServer(make_app(runtime))) as opened:
        yield opened


async def get(client: Client, path: str, **query: str) -> tuple[int, Any]:
    async with client.get(path, params=query) as answer:
        return answer.status, await answer.json(content_type=None)


async def test_projections_are_listed_with_their_declarations(client: Client) -> None:
    status, found = await get(client, "/api/projections")

    assert status == 200
    assert [(one["name"], one["executions"]) for one in found["projections"]] == [
        ("frames", 2),
        ("patients", 2),
    ]
    assert found["projections"][1]["declaration"]["source"] == {"step": "load"}


async def test_rows_are_merged_paged_and_filtered_by_key(client: Client) -> None:
    path = "/api/projections/patients"
    _, first = await get(client, path, limit="2")
    _, second = await get(client, path, limit="2", after="[2]")
    _, one = await get(client, path, facility="2")

    assert [row["key"] for row in first["rows"]] == [{"facility": 1}, {"facility": 2}]
    assert first["next"] == [2]
    assert ([row["key"] for row in second["rows"]], second["next"]) == ([{"facility": 3}], None)
    (row,) = one["rows"]
    assert (row["executions"], row["row_count"], row["values"]["scores"]) == (2, 2, 4)


@pytest.mark.parametrize(
    ("path", "query", "status", "what"),
    [
        ("/api/projections/patiens", {}, 404, "'patiens' does not exist here"),
        ("/api/projections/patients", {"version": "2"}, 404, "version 2 does not exist"),
        ("/api/projections/patients", {"score": "1"}, 422, "filter by facility"),
        ("/api/projections/patients", {"after": "2"}, 422, "`next` of the previous page"),
        ("/api/projections/patients", {"after": "[1,2]"}, 422, "`after` has 2 values"),
    ],
)
async def test_what_cannot_be_answered_is_refused(
    client: Client, path: str, query: dict[str, str], status: int, what: str
) -> None:
    answer = await get(client, path, **query)
    assert answer[0] == status
    assert what in str(answer[1])


async def test_another_organization_sees_nothing(client: Client) -> None:
    headers = {"Noetl-Tenant": "acme", "Noetl-Organization": "other"}
    async with client.get("/api/projections", headers=headers) as answer:
        assert await answer.json() == {"projections": []}


async def test_an_execution_is_replayed_to_the_stored_checksums(
    client: Client, bench: BusinessBench
) -> None:
    status, found = await get(client, "/api/replay/state", **OF_CARE, projection="business_object")

    assert status == 200
    stored = {key[1]: value for key, value in checksums_in(bench.store).items() if key[0] == 1000}
    assert found["checksums"] == stored
    assert found["payloads"]["count"] == 2


async def test_a_missing_payload_is_a_problem_that_names_it(
    client: Client, bench: BusinessBench
) -> None:
    uri = bench.tables.reads[0]
    for event in [one async for one in bench.log.read_root(Root("execution", 1000))]:
        if event.payload_ref is not None and event.payload_ref.uri == uri:
            await bench.payloads.delete(event.payload_ref)

    status, found = await get(client, "/api/replay/state", **OF_CARE, projection="business_object")
    assert (status, found["type"]) == (409, "urn:noetl:problem:missing-object")
    assert uri in found["detail"]


async def test_a_damaged_row_is_a_conflict_not_a_bug(
    client: Client, bench: BusinessBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def damaged(*_: object, **__: object) -> None:
        raise DamagedProjection("ab/patients.v1/7")

    monkeypatch.setattr(MemoryBusiness, "page", damaged)

    status, found = await get(client, "/api/projections/patients")

    assert (status, found["type"]) == (409, "urn:noetl:problem:damaged-projection")
    assert "'ab/patients.v1/7' does not match its checksum" in found["detail"]
