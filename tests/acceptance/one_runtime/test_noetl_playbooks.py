"""Playbooks in NoETL's spelling on the real roles: the example is exact, also when parts die."""

from __future__ import annotations

from uuid import uuid4

import pytest

from streams.resources import folder
from tests.support.servers.runtime import Runtime

pytestmark = pytest.mark.stack
NUMBERS = 60
TOTAL = NUMBERS * (NUMBERS + 1) * (2 * NUMBERS + 1) // 6
COMMITTED = """
SELECT count(*) >= $2 FROM noetl.event WHERE root_id = $1 AND event_type = 'frame.committed'
"""
SUM = """
SELECT count(*) AS rows, sum(square) AS total, count(*) FILTER (WHERE status = 'done') AS done
FROM noetl_example_queue WHERE execution_id = $1
"""


async def test_a_queue_is_drained_exactly_though_worker_and_planner_are_killed(
    runtime: Runtime,
) -> None:
    text = (folder("examples") / "noetl" / "queue.yaml").read_text("utf-8")
    execution_id = await runtime.start(text, numbers=NUMBERS)
    for count, part in ((5, "worker-0"), (20, "planner-0")):
        await runtime.until(COMMITTED, execution_id, count // 5)
        await runtime.kill(part)
    ended = await runtime.finish(execution_id)
    assert ended.status == "COMPLETED", ended.error
    (row,) = await runtime.author(SUM, str(execution_id))
    assert (row["rows"], row["done"], row["total"]) == (NUMBERS, NUMBERS, TOTAL)
    # Every claim was made once, though its frame was attempted again: one round was enough.
    visits = await runtime.events(execution_id, "step.enter")
    assert [one.node_name for one in visits] == ["start", "drain", "count", "end"]


FRAMES = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: frames, path: PATH}
workflow:
  - step: start
    tool:
      kind: postgres
      auth: pg_local
      command: |
        CREATE TABLE TABLE_NAME (id int, by text, seen text);
        INSERT INTO TABLE_NAME SELECT n FROM generate_series(1, 7) n;
    next: {arcs: [{step: drain}]}
  - step: drain
    loop:
      cursor:
        kind: postgres
        auth: pg_local
        claim: |
          UPDATE TABLE_NAME SET by = 'me' WHERE id IN (
            SELECT id FROM TABLE_NAME WHERE by IS NULL ORDER BY id
            LIMIT {{ __frame_max_rows | int }} FOR UPDATE SKIP LOCKED)
          RETURNING id
      iterator: jobs
      spec: {mode: cursor, max_in_flight: 1, frame: FRAME}
    tool:
      - {name: work, kind: python, input: {rows: "ROWS"}, code: CODE}
      - name: save
        kind: postgres
        auth: pg_local
        command: "UPDATE TABLE_NAME SET seen = '{{ work.ids }}' WHERE id IN ({{ work.ids }})"
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop, result: "{{ drain.stats }}"}
"""
CODE = "import time; time.sleep(0.6); result = {'ids': ', '.join(str(r['id']) for r in rows)}"
FORMS = {
    "row": ("{max_rows: 4, max_seconds: 1}", "{{ [iter.jobs] }}", {str(n) for n in range(1, 8)}),
    "frame": ("{max_rows: 4, process: frame}", "{{ frame.rows }}", {"1, 2, 3, 4", "5, 6, 7"}),
}


@pytest.mark.parametrize("form", FORMS)
async def test_claims_end_at_their_limit_or_are_processed_whole(
    runtime: Runtime, form: str
) -> None:
    frame, rows, expected = FORMS[form]
    table = f"frames_{uuid4().hex}"
    text = FRAMES.replace("PATH", f"test/{table}").replace("TABLE_NAME", table)
    text = text.replace("FRAME", frame).replace("ROWS", rows).replace("CODE", f'"{CODE}"')
    ended = await runtime.run(text)
    assert ended.status == "COMPLETED", ended.error
    seen = await runtime.author(f"SELECT DISTINCT seen FROM {table}")
    assert {row["seen"] for row in seen} == expected
    (last,) = await runtime.events(ended.execution_id, "playbook.completed")
    assert last.result["data"]["total"] == len(expected)
    committed = await runtime.events(ended.execution_id, "frame.committed")
    assert any(one.meta["continues"] for one in committed) is (form == "row")
