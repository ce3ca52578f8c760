"""Past states over HTTP: of an execution, and for operators of the organization."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.api.server import OPERATOR_TOKEN, SCOPE, Client, Stand, get
from tests.support.log.databases import root_events
from tests.support.projector.executions import Story

pytestmark = pytest.mark.stack
STATE = f"/api/replay/state?tenant_id={SCOPE.tenant_id}&organization_id={SCOPE.organization_id}"
OPERATOR = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}


async def _run(stand: Stand, execution_id: int) -> None:
    for event in Story(execution_id).whole():
        await stand.log.store.append([event])


async def test_a_past_state_is_that_of_the_fold_then(client: Client, stand: Stand) -> None:
    execution_id = stand.runtime.next_id()
    await _run(stand, execution_id)
    events = await root_events(stand.log.store, execution_id)
    await stand.project()
    row = await stand.reading.fetchrow(
        "SELECT last_seq, state_checksum FROM noetl.execution WHERE execution_id = $1",
        execution_id,
    )
    assert row is not None
    status, newest = await get(client, f"{STATE}&execution_id={execution_id}")
    assert (status, row["last_seq"]) == (200, len(events))
    assert (newest["as_of"]["position"], newest["checksum"]) == (
        len(events),
        row["state_checksum"],
    )
    for event in (events[0], events[4]):
        by = {
            "as_of_event_id": event.event_id,
            "as_of_position": event.seq,
            "as_of_time": event.ingest_time.isoformat().replace("+00:00", "Z"),
        }
        found = [
            (await get(client, f"{STATE}&execution_id={execution_id}&{name}={value}"))[1]
            for name, value in by.items()
        ]
        assert found[0] == found[1]
        last = max(one.seq for one in events if one.ingest_time <= event.ingest_time)
        assert (found[0]["as_of"]["position"], found[2]["as_of"]["position"]) == (event.seq, last)
        assert found[0]["state"]["execution"]["status"] == "RUNNING"


@pytest.mark.parametrize(
    ("query", "status", "what"),
    [
        ("execution_id=7", 404, "execution 7: not in tenant acme"),
        ("execution_id=x", 422, "not a whole number"),
        ("execution_id=7&as_of_position=1&as_of_time=2026-01-01", 422, "are given"),
        ("execution_id=7&as_of_time=yesterday", 422, "is not a time"),
        ("execution_id=7&as_of_offset=here", 422, "TOPIC:PARTITION:OFFSET"),
        ("execution_id=7&projection=patients", 422, "use one of execution"),
        ("execution_id=7&limit=3", 422, "limit: is for a whole organization"),
        ("as_of_moment=3", 422, "'as_of_moment' is not a parameter"),
        ("", 401, "only operators may replay a whole organization"),
    ],
)
async def test_a_question_that_has_no_answer_is_refused(
    client: Client, query: str, status: int, what: str
) -> None:
    found, problem = await get(client, f"{STATE}&{query}".rstrip("&"))
    assert found == status
    assert what in str(problem)


async def test_scope_is_mandatory_and_the_callers_own(client: Client) -> None:
    status, problem = await get(client, "/api/replay/state?execution_id=7")
    assert (status, "tenant_id: is missing" in str(problem)) == (422, True)
    other = "/api/replay/state?tenant_id=other&organization_id=care&execution_id=7"
    status, problem = await get(client, other)
    assert (status, "tenant other" in str(problem)) == (401, True)


async def test_an_organization_as_of_a_cut_has_each_execution_as_of_it(
    client: Client, stand: Stand
) -> None:
    ids = sorted(stand.runtime.next_id() for _ in range(3))
    story = Story(ids[0])
    await stand.log.store.append([story.began()])
    (first,) = await root_events(stand.log.store, ids[0])
    await _run(stand, ids[1])
    url = f"{STATE}&as_of_position={first.position}"
    status, then = await get(client, url, headers=OPERATOR)
    assert (status, then["executions"][-1]["execution_id"]) == (200, str(ids[0]))
    await _run(stand, ids[2])
    assert (await get(client, url, headers=OPERATOR))[1] == then

    status, now = await get(client, STATE, headers=OPERATOR)
    known = {one["execution_id"]: one for one in now["executions"]}
    for execution_id in ids:
        _, one = await get(client, f"{STATE}&execution_id={execution_id}")
        assert known[str(execution_id)]["checksum"] == one["checksum"]
        assert known[str(execution_id)]["status"] == one["state"]["execution"]["status"]
    pages, after = [], "0"
    while after is not None:
        query = f"{STATE}&as_of_position={now['as_of']['log_position']}&limit=2&after={after}"
        _, page = await get(client, query.replace("&after=0", ""), headers=OPERATOR)
        pages += page["executions"]
        after = page["next"]
    assert pages == now["executions"]


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("as_of_event_id=3", "moment of one execution"),
        ("as_of_position=999999999", "the log ends at"),
        (f"as_of_time={(datetime.now(UTC) + timedelta(days=1)):%Y-%m-%dT%H:%M:%SZ}", "future"),
        ("limit=100000", "at most 1000"),
    ],
)
async def test_an_organization_has_no_such_cut(client: Client, query: str, what: str) -> None:
    status, problem = await get(client, f"{STATE}&{query}", headers=OPERATOR)
    assert (status, what in str(problem)) == (422, True)
