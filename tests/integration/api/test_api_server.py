"""What else the API serves: payloads, playbooks, its description; and what it says of mistakes."""

from __future__ import annotations

import pytest

from tests.support.api.server import PLAYBOOK, Client, Stand, get, post

pytestmark = pytest.mark.stack


async def test_a_payload_is_stored_and_fetched_by_its_reference(client: Client) -> None:
    kind = {"Content-Type": "application/vnd.apache.arrow.stream"}
    async with client.post("/api/payloads?row_count=3", data=b"rows", headers=kind) as answer:
        assert answer.status == 201
        ref = await answer.json()
    assert (ref["row_count"], ref["media_type"]) == (3, kind["Content-Type"])
    async with client.get(ref["url"]) as answer:
        assert await answer.read() == b"rows"
    missing = "/api/payloads/" + "0" * 64
    assert (await get(client, f"{missing}?byte_length=4"))[0] == 404
    assert (await get(client, missing))[0] == 422


async def test_a_playbook_is_registered_listed_shown_and_started_at_once(
    client: Client, stand: Stand
) -> None:
    path = f"team/{stand.log.ids.next()}"
    sent = {"content": PLAYBOOK, "path": path}
    status, made = await post(client, "/api/catalog", sent)
    again, _ = await post(client, "/api/catalog", sent)

    _, shown = await get(client, f"/api/catalog/{path}")
    _, listed = await get(client, "/api/catalog")

    assert (status, again, made["version"]) == (201, 200, 1)
    assert (shown["content"], shown["catalog_id"]) == (PLAYBOOK, made["catalog_id"])
    assert path in [one["path"] for one in listed["catalog"]]
    assert (await get(client, f"/api/catalog/{path}?version=7"))[0] == 404
    assert (await post(client, "/api/executions", {"path": path}))[0] == 201


async def test_a_playbook_with_mistakes_is_refused_with_all_of_them(client: Client) -> None:
    content = PLAYBOOK.replace("noop", "nop").replace("workflow:", "workfow: 1\nworkflow:")
    status, answer = await post(client, "/api/catalog", {"content": content})
    assert status == 422
    assert len(answer["problems"]) == 2


async def test_whatever_goes_wrong_is_a_problem(client: Client) -> None:
    for path, status in (
        ("/api/nothing", 404),
        ("/api/executions/abc", 422),
        ("/api/executions/5", 404),
        ("/api/executions?limit=-1", 422),
    ):
        async with client.get(path) as answer:
            body = await answer.json(content_type=None)
            assert (answer.status, answer.content_type) == (status, "application/problem+json")
            assert body["status"] == status
            assert body["detail"]


async def test_the_description_and_the_health_are_served(client: Client) -> None:
    assert (await get(client, "/openapi.json"))[1]["openapi"] == "3.1.0"
    assert await get(client, "/healthz") == (200, {"status": "ok"})
